import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const routes = catalog('routes', {
  title: 'Traceroutes',
  one: 'Traceroute',
  list: 'Traceroutes, newest first',
  trace: 'Start a traceroute',
  ask: 'New traceroute',
  askHelp:
    'The radio sends at most one traceroute every 30 seconds, to leave airtime for others; further ones wait. A reply can take a minute, or never arrive.',
  noRadioHere: 'This runtime has no radio to send traceroutes with. Traceroutes that collectors deliver appear below.',
  target: 'Node',
  showWay: 'Show the route on the map',
  showOnMap: 'Show traceroute on the map',
  earlier: (n: number) => (n === 1 ? '1 earlier traceroute' : quantity(n, 'earlier traceroute', 'earlier traceroutes')),
  asked: 'Traceroute requested. The reply can take a minute.',
  none: 'No traceroutes yet.',
  noneHelp:
    'Start one here or on the page of a node. Traceroutes of other nodes that the radio overhears appear here too.',
  all: 'All traceroutes of this node',
  onlyOf: (name: string) => `Only ${name}`,
  to: ' to ',
  towards: 'Towards',
  back: 'Back',
  silentHop: 'A node on the route that did not report its number',
  overheard: 'overheard',
  askedBy: (name: string) => `requested by ${name}`,
  signals: { good: 'good signal', fair: 'fair signal', weak: 'weak signal', unknown: 'unknown signal' },
  state: {
    queued: 'waiting for the radio',
    sent: 'sent',
    relayed: 'on its way',
    delivered: 'replied',
    failed: 'no route found',
    unknown: 'no reply',
  },
  stateHelp: {
    queued: 'Waits for its turn at the radio.',
    sent: 'The radio has sent it and is waiting for the reply.',
    relayed: 'Another node has relayed it. The radio is waiting for the reply.',
    delivered: '',
    failed: 'The mesh found no route to the node.',
    unknown: 'No reply within two minutes. The node may be off or out of range.',
  },
})
