import { catalog } from '../../language.ts'
import { numberFormat } from '../quantity.ts'

/** Texts about senders that imitate a node. Only the node's page loads them. */
export const identityTexts = catalog('identityTexts', {
  suspicions: {
    own: 'A packet in the name of this radio did not come from its connection',
    signature: 'A signature does not match the key',
    unsigned: 'A packet without a signature, although the node signs',
    key: 'Another key, which does not belong to the node',
    name: 'Other names than those that are certain',
    position: 'A position that the node cannot have reached',
    sealed: 'A direct message encrypted with another key than the known one',
  },
  heardBySource: (source: string) => `heard by ${source}`,
  reportedByGateway: (gateway: string, source: string) => `gateway ${gateway} at ${source}`,
  times: (n: number) => (n === 1 ? 'once' : `${numberFormat.format(n)} times`),
  refusedNames: (names: string) => `Announced, not accepted: ${names}`,
  refusedUnknown: 'refused by an earlier version',
  claimed: (sources: string) => `${sources} calls this node its own radio`,
  claimEnded:
    'A radio of this service hears it as another node, so it is an ordinary node, and that collector does not speak for it.',
  claimBelieved: 'That collector is believed about it. Its reports by others are not.',
  declaredOwn: 'Confirmed: it is a radio of this service.',
  declaredOther: 'Decided: it is no radio of this service.',
  isOwn: 'It is ours',
  isNotOwn: 'It is not ours',
  ownSure: (name: string) =>
    `Is ${name} a radio of this service? Then its collector alone is believed about it. Confirm this only if you know the collector.`,
  notOwnSure: (name: string) => `Is ${name} no radio of this service? Then no collector can speak for it.`,
  undecide: 'Leave it to the radios',
  undecideSure: (name: string) => `Leave it to what the radios hear whose radio ${name} is?`,
  keepKnown: 'Keep what is shown',
  takeRefused: 'Take the other names',
  keepSure: (name: string) => `Keep ${name} as it is shown? The warnings end, and come back if it happens again.`,
  takeSure: (name: string) =>
    `Take the other names for ${name}? The warnings end. Do this only if its owner has confirmed them.`,
  settled: 'Settled',
  keyConfirmed: 'Key confirmed',
})
