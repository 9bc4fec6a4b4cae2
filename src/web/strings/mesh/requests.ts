import { catalog } from '../../language.ts'

/** What the page of a node says about asking it, and about what radios know of it. */
export const requestTexts = catalog('requestTexts', {
  title: 'Ask this node',
  help: 'A radio of this service sends the request, and the node answers it if it can. Packets to one node count as direct messages: only people who may read those see the answer.',
  what: 'Ask for',
  ask: 'Ask',
  asked: 'The request is queued',
  none: 'Nobody has asked this node for anything.',
  kinds: {
    position: 'Position',
    'node-info': 'Names and key',
    device: 'Device metrics',
    environment: 'Environment metrics',
    'air-quality': 'Air quality metrics',
    power: 'Power metrics',
    health: 'Health metrics',
    'local-stats': 'Statistics of its radio',
    host: 'Statistics of its computer',
  },
  states: {
    queued: 'waiting to be sent',
    sent: 'sent',
    relayed: 'repeated by another node',
    delivered: 'received, no answer yet',
    failed: 'failed',
    unknown: 'no answer',
  },
  answered: 'answered',
  noAnswerToGive: 'the node has nothing to answer with',
  because: (state: string, reason: string) => `${state}: ${reason}`,
  marks: {
    title: 'Not the same on every radio',
    favorite: (radio: string) => `${radio} does not have this node as a favourite.`,
    notFavorite: (radio: string) => `${radio} still has this node as a favourite.`,
    ignored: (radio: string) => `${radio} does not ignore this node.`,
    notIgnored: (radio: string) => `${radio} still ignores this node.`,
    muted: (radio: string) => `${radio} does not have this node as muted.`,
    notMuted: (radio: string) => `${radio} still has this node as muted.`,
    problems: {
      waiting: 'It has not confirmed the change yet.',
      unknown_node: 'It does not know this node: it is told when it has heard the node and connects again.',
      full: 'It protects as many nodes as it can. End another favourite first, then mark this node again.',
      not_taken: 'It was told, but did not do it. It is told again when it connects.',
      away: 'It is not connected: it is told when it connects.',
    },
  },
})
