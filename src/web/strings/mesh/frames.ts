import { catalog } from '../../language.ts'

export const frameTexts = catalog('frames', {
  open: 'Open',
  openMap: 'Open the map on its own page',
  openNode: (name: string) => `Open the page of ${name}`,
  close: 'Close',
  gone: 'This node is not shown here, or it was forgotten.',
})
