import { catalog } from '../../language.ts'

export const horizonTexts = catalog('horizon', {
  height: (unit: string) => `Antenna above ground (${unit})`,
  about: 'Draws how far the antenna sees.',
  reach: (distance: string) =>
    `On a smooth earth the antenna sees the ground up to ${distance} away, with the usual bending of radio waves (4/3 earth). An antenna further up is seen from further away. Hills, woods and houses between are not known here.`,
})
