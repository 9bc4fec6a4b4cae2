import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const neighbors = catalog('neighbors', {
  title: 'Neighbours',
  node: 'Node',
  neighbor: 'Hears',
  signal: 'Signal',
  other: 'Other direction',
  difference: 'Difference',
  notReported: 'not reported',
  reported: 'Last report',
  none: 'No node has reported its neighbours yet',
  noneRecent: 'No node has reported its neighbours in this time',
  showAll: 'Show all reports',
  age: 'Reported',
  noneHelp: 'Nodes report them every few hours if their neighbour info module is on.',
  count: (n: number) => (n === 1 ? 'one link' : quantity(n, 'link', 'links')),
  hears: 'Hears',
  heardBy: 'Heard by',
})
