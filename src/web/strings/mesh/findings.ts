import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

/** What the page of findings says. */
export const findingTexts = catalog('findingTexts', {
  help: 'What seems wrong in the mesh, and which node to visit. Looked for each hour in what is stored here; nothing is sent for it, and none of it is certain.',
  none: 'Nothing found',
  noneHelp: 'No rule found anything in what is stored here.',
  notYet: 'Not looked at yet',
  notYetHelp: 'The first look comes within an hour.',
  looked: 'Last look',
  count: (n: number) => quantity(n, 'finding', 'findings'),
  mutedOnes: (n: number) => quantity(n, 'muted finding', 'muted findings'),
  likely: 'likely',
  possible: 'possible',
  since: 'found',
  mute: 'Mute',
  unmute: 'Tell again',
  mutedBy: (name: string) => `muted by ${name}`,
  more: (n: number) => quantity(n, 'other node', 'other nodes'),
  showOnMap: 'Show on the map',
  tellMe: 'Tell me about this',
  tellMeHelp:
    'You are told when a look that is made each hour finds it, and the look before did not, and when it is gone.',
  where: 'Where',
  onlyHere: (name: string) => `At ${name}`,
  anywhere: 'At any node',
  marked: (n: number) => quantity(n, 'node is marked.', 'nodes are marked.'),
  withoutPlace: (n: number) => quantity(n, 'has no known position.', 'have no known position.'),
  unmark: 'Show all nodes',
  all: 'All findings',
  names: {
    one_way: 'Heard, but hears not',
    depends: 'Many depend on one node',
    routers: 'Two routers beside each other',
    chatty: 'Sends very much',
    battery: 'Battery falls day by day',
    restarts: 'Restarts again and again',
    clock: 'Wrong clock',
    key: 'Weak or shared key',
    hops: 'More hops than needed',
    busy: 'Channel nearly full',
    only_gateway: 'Only one gateway delivers them',
    region_silent: 'A region fell silent',
    firmware: 'Broken firmware',
    precise: 'Too precise a position',
  },
  exactly: 'exactly',
  within: (distance: string) => `to within ${distance}`,
  rules: {
    one_way: (a: string, b: string, snr: string) =>
      `${b} hears ${a} with ${snr}, but ${a} does not hear ${b}. Look at the antenna and the transmit power of ${b}.`,
    depends: (node: string, lost: string, names: string) =>
      `Without ${node}, ${lost} would not be reached any more: ${names}.`,
    routers: (a: string, b: string, snr: string) =>
      `${a} and ${b} are both routers and hear each other with ${snr}: they repeat the same packets. One of them could be a client.`,
    chatty: (node: string, share: string, packets: string) =>
      `${node} sent ${share} of all packets yesterday, ${packets}. Look at its intervals.`,
    battery: (node: string, level: string, fall: string, days: string) =>
      `The battery of ${node} goes down to ${level} and loses ${fall} a day: it may be empty in ${days}.`,
    restarts: (node: string, times: string) => `${node} restarted ${times} in the last 24 hours.`,
    clock: (node: string, duration: string) =>
      `The clock of ${node} is wrong by ${duration}, so its measurements stand at another time.`,
    weakKey: (node: string) =>
      `The public key of ${node} is weak: others can read messages to it. Its owner should update the firmware and make a new key.`,
    sharedKey: (node: string, names: string) =>
      `${node} has the same public key as ${names}. One of them should make a new key.`,
    hops: (node: string, limit: string, needed: string) =>
      `Packets of ${node} may take ${limit}, but none needed more than ${needed} in the last day. A lower limit saves airtime.`,
    busy: (node: string, use: string) =>
      `Where ${node} is, the channel was in use for ${use} of the last day: packets collide.`,
    only_gateway: (node: string, names: string) =>
      `Only the gateway ${node} delivers ${names}: without it, nothing of them arrives.`,
    region_silent: (names: string, when: string) =>
      `${names}, near each other, fell silent within an hour, the last on ${when}: perhaps the power, a storm, or a repeater that they share.`,
    firmware: (node: string, version: string) =>
      `${node} runs firmware ${version}, which could make weak keys (CVE-2025-52464). Update it, then make a new key.`,
    precise: (node: string, area: string, channel: string) =>
      `${node} tells where it is ${area} on ${channel}, whose key everybody has. A precision of at most 15 bits suits such a channel.`,
    seemsPrecise: (node: string, area: string, channel: string) =>
      `${node} tells where it is ${area} on ${channel}, which seems to have the key that everybody has. A precision of at most 15 bits suits such a channel.`,
  },
  times: (n: number) => quantity(n, 'time', 'times'),
  nodes: (n: number) => quantity(n, 'node', 'nodes'),
  packets: (n: number) => quantity(n, 'packet', 'packets'),
  hops: (n: number) => quantity(n, 'hop', 'hops'),
  days: (n: number) => quantity(n, 'day', 'days'),
})
