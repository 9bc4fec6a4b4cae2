import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

/** What the page of a node says about its past, and about its silence. */
export const pastTexts = catalog('pastTexts', {
  why: 'Why is it silent?',
  whyHelp:
    'What speaks for a reason, from what is stored here, the most likely first. Nothing was sent, and none of it is certain.',
  noReason: 'Nothing that is stored here speaks for a reason. Ask its owner, or go and look.',
  likely: 'likely',
  possible: 'possible',
  usually: (pause: string) => `Before, it was heard about every ${pause}.`,
  reasons: {
    battery: (level: string) => `Its battery was low: ${level}.`,
    batteryFell: (level: string, fall: string) => `Its battery was at ${level} and fell by ${fall} a day.`,
    repeater: (names: string) => `What it sent came over ${names}, silent since about the same time.`,
    repeaterOthers: (n: number) =>
      quantity(n, 'other node on its way is still heard.', 'other nodes on its way are still heard.'),
    moved: (distance: string, when: string) => `It had moved by ${distance} on ${when}.`,
    changed: (field: string, before: string, after: string, when: string) =>
      `${field} changed from ${before} to ${after} on ${when}.`,
    keyChanged: (when: string) => `Its public key changed on ${when}.`,
    sameKey: (name: string) =>
      `${name} has the same public key and was first heard about then: it may be this node with a new number.`,
    sameName: (name: string) =>
      `${name} has the same name and was first heard about then: it may be this node, set up anew.`,
    radio: (source: string, when: string) => `${source}, which heard it, has heard nothing since ${when}.`,
    broker: (source: string, when: string) =>
      `From the broker ${source}, which delivered it, nothing has come since ${when}.`,
    gateway: (name: string, source: string, when: string) =>
      `The gateway ${name}, which delivered it to ${source}, has delivered nothing since ${when}.`,
    notConnected: 'It is not connected now.',
    suspicion: (packets: number) =>
      `${quantity(packets, 'packet', 'packets')} in its name came since, and ${quantity(packets, 'was', 'were')} set aside because somebody else seems to send them. See the warning on this page.`,
    removed: (source: string, when: string) =>
      `${source}, which last heard it on ${when}, is no longer connected to this service: it was removed or switched off here.`,
    collector: (source: string) =>
      `The collector ${source} still delivers, but from no node the kinds that this one mostly sent: its filter may leave them out.`,
    newcomers: (source: string, numbers: number) =>
      `${source} brought too many new nodes, and ${quantity(numbers, 'of them was', 'of them were')} not stored. If this node has a new number, it may be among those.`,
    unread: (packets: number, when: string) =>
      `${quantity(packets, 'packet', 'packets')} in its name came since ${when} that nobody here can read: it uses a channel or a key that our radios do not have, or no longer have.`,
    notOurs: 'It may use a channel or a key that our radios no longer have.',
    channelsChanged: (who: string, source: string, when: string) =>
      `${who} changed the channels of ${source} on ${when}.`,
    ignored: 'It is ignored: the radios of this service drop what it sends.',
    clockAhead: (duration: string) =>
      `By the clock of this service it was last heard ${duration} in the future: the clock was wrong then, or is now.`,
    clockUnsure: 'The clock of this service is not confirmed, so times may be wrong.',
    clockOfNode: (duration: string) =>
      `Its own clock is wrong by ${duration}, so its measurements stand at another time.`,
    retention: (when: string) =>
      `Packets from before ${when} are no longer kept, so what happened then cannot be seen any more.`,
  },
  heard: 'When it was heard',
  heardHelp:
    'Each column is one of the last 30 days, each square an hour of it, midnight on top. The stronger the colour, the more packets.',
  heardHours: (heard: number, of: number) => `Heard in ${heard} of ${of} hours`,
  nothingHeard: 'It was not heard in the last 30 days.',
  hour: (when: string, packets: number) => `${when}: ${quantity(packets, 'packet', 'packets')}`,
  day: (when: string, packets: number, direct: number, hops: string) =>
    `${when} (UTC): ${direct} of ${quantity(packets, 'packet', 'packets')} came directly${hops}`,
  overHops: (from: number, to: number) =>
    from === to
      ? `; the others over ${quantity(to, 'hop', 'hops')}`
      : `; the others over ${from} to ${quantity(to, 'hop', 'hops')}`,
  directShare: (share: string, hops: string) => `${share} of its packets came directly${hops}.`,
  by: 'Heard by',
  noReceiver: 'No packet of it is in the log.',
  direct: 'direct',
  hops: (n: number) => quantity(n, 'hop', 'hops'),
  packets: (n: number) => quantity(n, 'packet', 'packets'),
  over: (gateway: string, source: string) => `${gateway}, over ${source}`,
  story: 'What happened to it',
  more: 'Show all',
  firstHeard: 'First heard',
  silentFor: (duration: string) => `Silent for ${duration}`,
  silentNow: 'Silent since then',
  restarted: (uptime: string) => `Restarted after ${uptime}`,
  movedBy: (distance: string) => `Moved by ${distance}`,
  becomes: (field: string, before: string, after: string) => `${field}: ${before} → ${after}`,
  newKey: 'Another public key',
  setHere: (who: string, what: string) => `${who} changed here: ${what}`,
  setThere: (who: string, section: string, what: string) => `${who} changed its settings ${section}: ${what}`,
  restartedBy: (who: string) => `${who} restarted it`,
  theService: 'The service',
  alert: (what: string) => `Alert: ${what}`,
  marks: {
    isFavorite: 'favourite',
    isIgnored: 'ignored',
    isMuted: 'muted',
    isHidden: 'hidden',
    notes: 'notes',
    own: 'own radio',
    remoteKey: 'remote administration',
    publicKey: 'public key',
  },
  withdrawn: 'nothing',
  fields: {
    longName: 'Name',
    shortName: 'Short name',
    role: 'Role',
    hwModel: 'Hardware',
    firmwareVersion: 'Firmware',
    publicKey: 'Public key',
    restarted: 'Uptime',
  },
})
