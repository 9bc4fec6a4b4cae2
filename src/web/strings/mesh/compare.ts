import { catalog } from '../../language.ts'

/** What is said when nodes are compared. */
export const compareTexts = catalog('compareTexts', {
  compare: 'Compare',
  title: 'Compare nodes',
  help: (most: number) => `Choose up to ${most} nodes.`,
  add: 'Add a node',
  pick: (name: string) => `Compare ${name}`,
  pickHelp: (most: number) => `Choose two to ${most} nodes in the list.`,
  picked: (n: number, most: number) => `${n} of at most ${most} nodes chosen`,
  comparePicked: (n: number) => `Compare ${n} nodes`,
  snrHelp: 'Of packets that were heard directly, from the packet log.',
})
