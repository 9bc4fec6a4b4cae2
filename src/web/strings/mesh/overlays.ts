import { catalog } from '../../language.ts'
import { numberFormat, quantity } from '../quantity.ts'

export const overlayTexts = catalog('overlays', {
  title: 'Overlays',
  manage: 'Overlays…',
  about:
    'Borders, paths or places from a GeoJSON, KML or GPX file of up to 5 MB. Of each shape only its name, description and colour are kept, as plain text. Nothing in it is loaded from elsewhere.',
  none: 'No overlay yet.',
  add: 'Add a file…',
  adding: (part: number, of: number) => `Sending part ${part} of ${of}`,
  added: 'The overlay is on the map.',
  name: 'Name',
  isPublic: 'Also for visitors without an account',
  isPublicHelp: 'While public access shows them nodes.',
  save: 'Save',
  saved: 'Saved.',
  askRemove: 'Remove…',
  remove: 'Remove',
  removeAsk: (name: string) => `${name} disappears from the map for everybody.`,
  removed: 'The overlay was removed.',
  shapes: (n: number) => quantity(n, 'shape', 'shapes'),
  by: (name: string, time: string) => `${name}, ${time}`,
  fit: (name: string) => `Show ${name} on the map`,
  notLoaded: (name: string) => `${name} could not be loaded.`,
  faults: {
    large: 'This file is larger than 5 MB. Simplify it first.',
    unreadable: 'This is no GeoJSON, KML or GPX file, or it is damaged.',
    empty: 'This file has no shape for the map.',
    many: (most: number) => `This file has more than ${numberFormat.format(most)} shapes.`,
    format: (shape: number) => `Shape ${numberFormat.format(shape)} of this file is no feature of GeoJSON.`,
    geometry: (shape: number) =>
      `Shape ${numberFormat.format(shape)} of this file has a kind of geometry that the map does not know.`,
    coordinates: (shape: number) =>
      `Shape ${numberFormat.format(shape)} of this file has coordinates that are no places in the world.`,
    points: (shape: number, most: number) =>
      `Shape ${numberFormat.format(shape)} of this file has more than ${numberFormat.format(most)} points. Simplify it first.`,
  },
})
