import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const topologyTexts = catalog('topology', {
  label: 'Graph of who hears whom',
  keys: 'Arrow keys choose the next node in a direction, + and − zoom, 0 shows all.',
  heard: 'Heard',
  count: (nodes: number, links: number) => `${quantity(nodes, 'node', 'nodes')}, ${quantity(links, 'link', 'links')}`,
  none: 'Nobody has heard anybody directly yet',
  noneHelp:
    'Links appear with what the radios and gateways hear, with traceroutes, and with the neighbour info of nodes.',
  arranging: 'Arranging the nodes…',
  failed: 'The graph could not be arranged. The list has the same information.',
  lost: (node: string, n: number) =>
    `Without ${node}, ${n === 1 ? 'one node is' : `${quantity(n, 'node', 'nodes')} are`} lost.`,
  moreLost: (n: number) => `${quantity(n, 'more node', 'more nodes')} on which others depend.`,
  noneLost: 'No node is lost without any other one.',
  lostHelp:
    'As far as the links are known: a node is lost if nothing connects it to a radio of this service or a gateway.',
  notWhole: 'There are more links than are shown here: the latest ones.',
  fit: 'Show all',
  list: 'Nodes',
  more: (n: number) => `${quantity(n, 'more node', 'more nodes')}: search for them.`,
  links: (n: number) => quantity(n, 'link', 'links'),
  radio: 'our radio or a gateway',
  back: 'All nodes',
  page: 'Page of the node',
  hears: 'hears this node',
  heardBy: 'is heard by this node',
  notKnown: 'not known',
  ways: { heard: 'received', reported: 'neighbour info', traced: 'traceroute' },
  legend: {
    radio: 'our radio or a gateway',
    cut: 'others are lost without it',
    one: 'heard in one direction: the arrow points at who hears',
    old: 'older than a day',
  },
})
