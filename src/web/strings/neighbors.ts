export const neighbors = {
  title: 'Neighbours',
  node: 'Node',
  neighbor: 'Hears',
  signal: 'Signal',
  told: 'Last told',
  none: 'No node has told its neighbours yet',
  noneHelp: 'Nodes tell them every few hours, when their neighbour info module is on.',
  count: (n: number) => (n === 1 ? 'one link' : `${n} links`),
  hears: 'Hears',
  heardBy: 'Is heard by',
} as const
