import { catalog } from '../../language.ts'

export const rulerTexts = catalog('mapRuler', {
  title: 'Measure',
  first: 'Press two places on the map, or move the map and add its middle.',
  next: 'Press the next place, or add the middle of the map.',
  leg: (distance: string, degrees: string) => `${distance}, bearing ${degrees}°`,
  total: (distance: string, last: string) => `${distance} in all; last part: ${last}`,
  add: 'Add the middle',
  undo: 'Undo',
  done: 'Done',
})
