import type { NodeFacts, RadioFact } from './radio-fact.ts'
import { FIRST_NUMBER, MAX_NUMBER, RADIO_CHANNELS } from './channel-identity.ts'
import type { Packet } from './packet.ts'
import type { Payload, Waypoint } from './payload/payload.ts'
import type { PositionFix } from './payload/position.ts'
import type { Metric } from './payload/telemetry.ts'
import { removeHidden } from '../shared/hidden-characters.ts'

/** Lengths in characters. The protocol allows as many bytes. */
const MAX_LONG_NAME = 39
const MAX_SHORT_NAME = 4
export const MAX_CHANNEL_NAME = 11
const MAX_WAYPOINT_NAME = 29
/** The protocol has room for 18; forks use more. */
const MAX_VERSION = 40
/** The protocol has room for 79; forks use more, at most what fits into a packet. */
const MAX_STATUS = 233

/** The protocol has three bits. */
const MAX_HOPS = 7
const MAX_PRECISION_BITS = 32
/** dB: one byte in quarters. */
const MAX_SNR = 32

type Range = readonly [least: number, most: number]

/** Metres; includes objects in low orbit. */
const ALTITUDE: Range = [-1_000_000, 1_000_000]
const RSSI: Range = [-200, 20]
const PERCENT: Range = [0, 100]
/** By the last part of a metric's name. 101: external power. */
const RANGES: Readonly<Record<string, Range>> = {
  batteryLevel: [0, 101],
  voltage: [0, 100],
  channelUtilization: PERCENT,
  airUtilTx: PERCENT,
  temperature: [-273.15, 2000],
  soilTemperature: [-273.15, 2000],
  relativeHumidity: PERCENT,
  barometricPressure: [0, 2000],
  soilMoisture: PERCENT,
  windDirection: [0, 360],
  spO2: PERCENT,
}

const UNPRINTABLE_BUT_LINES = /[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u

/** Whether a radio can have this name. */
export function isName(text: string, most: number): boolean {
  return hasRoom(text, most) && removeHidden(text) === text
}

function hasRoom(text: string, most: number): boolean {
  return text.length <= most * 2 && [...text].length <= most
}

/**
 * The fact without values that no radio can send, and the fields that contained them; the rest is unchanged. A removed
 * value is absent: null, or 0 where 0 means absent in the protocol.
 */
export function refuseImpossible(fact: RadioFact): { readonly fact: RadioFact; readonly refused: readonly string[] } {
  const refused: string[] = []
  const refuse: Refuse = (field) => refused.push(field)
  switch (fact.type) {
    case 'packet': {
      const packet = checkPacket(fact.packet, refuse)
      return { fact: { ...fact, packet }, refused }
    }
    case 'node-info': {
      const node = checkNode(fact.node, refuse)
      return { fact: { ...fact, node }, refused }
    }
    case 'channel': {
      const { channel } = fact
      if (isName(channel.name, MAX_CHANNEL_NAME)) return { fact, refused }
      const isRadioIndex = channel.index < RADIO_CHANNELS
      return {
        fact: isRadioIndex ? { ...fact, channel: { ...channel, name: '' } } : { type: 'other', variant: 'channel' },
        refused: ['channelName'],
      }
    }
    case 'metadata': {
      const firmwareVersion = checkVersion(fact.metadata, refuse)
      return {
        fact: refused.length === 0 ? fact : { ...fact, metadata: { ...fact.metadata, firmwareVersion } },
        refused,
      }
    }
    default:
      return { fact, refused }
  }
}

type Refuse = (field: string) => void

function checkPacket(packet: Packet, refuse: Refuse): Packet {
  const { snr, rssi, hopStart, hopLimit, isEmoji, payload } = packet
  const areHops = hopStart <= MAX_HOPS && hopLimit <= MAX_HOPS
  if (hopStart > MAX_HOPS) refuse('hopStart')
  if (hopLimit > MAX_HOPS) refuse('hopLimit')
  // Reactions are limited because they are shown beside other people's messages.
  const isReaction = isEmoji && payload.kind === 'text'
  const isBadReaction = isReaction && UNPRINTABLE.test(payload.text)
  if (isBadReaction) refuse('emoji')
  return {
    ...packet,
    channel: checkChannel(packet.channel, refuse),
    snr: within('snr', snr, [-MAX_SNR, MAX_SNR], refuse),
    rssi: within('rssi', rssi, RSSI, refuse),
    ...(areHops ? {} : { hopsAway: null }),
    ...(hopStart > MAX_HOPS ? { hopStart: 0 } : {}),
    ...(hopLimit > MAX_HOPS ? { hopLimit: 0 } : {}),
    ...(isBadReaction ? { isEmoji: false } : {}),
    payload: checkPayload(payload, refuse),
  }
}

function checkNode(node: NodeFacts, refuse: Refuse): NodeFacts {
  const { user, fix, metrics, snr, hopsAway } = node
  return {
    ...node,
    channel: checkChannel(node.channel, refuse),
    user: user === null ? null : { ...user, ...checkNames(user, refuse) },
    fix: fix === null ? null : checkFix(fix, refuse),
    metrics: checkMetrics(metrics, refuse),
    snr: within('snr', snr, [-MAX_SNR, MAX_SNR], refuse),
    hopsAway: within('hopsAway', hopsAway, [0, MAX_HOPS], refuse),
  }
}

/** An impossible channel number becomes the number of an unknown channel, with the hash in its last byte. */
function checkChannel(channel: number, refuse: Refuse): number {
  if (channel <= MAX_NUMBER) return channel
  refuse('channel')
  return FIRST_NUMBER + (channel % 256)
}

function checkPayload(payload: Payload, refuse: Refuse): Payload {
  switch (payload.kind) {
    case 'position':
      if (payload.isOffGlobe === true) refuse('coordinates')
      return payload.fix === null ? payload : { ...payload, fix: checkFix(payload.fix, refuse) }
    case 'nodeinfo':
      return { ...payload, user: { ...payload.user, ...checkNames(payload.user, refuse) } }
    case 'telemetry':
      return { ...payload, metrics: checkMetrics(payload.metrics, refuse) }
    case 'traceroute': {
      const { snrTowards, snrBack } = payload.route
      const check = (snrs: typeof snrTowards) => snrs.map((snr) => within('snr', snr, [-MAX_SNR, MAX_SNR], refuse))
      return { ...payload, route: { ...payload.route, snrTowards: check(snrTowards), snrBack: check(snrBack) } }
    }
    case 'neighborinfo': {
      const neighbors = payload.neighbors.filter(({ snr }) => within('snr', snr, [-MAX_SNR, MAX_SNR], refuse) !== null)
      return { ...payload, neighbors }
    }
    case 'status':
      return { ...payload, status: checkStatus(payload.status, refuse) }
    case 'beacon':
      if (payload.channelName === null || isName(payload.channelName, MAX_CHANNEL_NAME)) return payload
      refuse('channelName')
      return { ...payload, channelName: '' }
    case 'waypoint':
      return { ...payload, waypoint: checkWaypoint(payload.waypoint, refuse) }
    case 'mapreport':
      return {
        ...payload,
        report: {
          ...payload.report,
          ...checkNames(payload.report, refuse),
          ...checkCell(payload.report, refuse),
          firmwareVersion: checkVersion(payload.report, refuse),
          altitude: within('altitude', payload.report.altitude, ALTITUDE, refuse),
        },
      }
    default:
      return payload
  }
}

type Names = { readonly longName: string | null; readonly shortName: string | null; readonly isNameAltered?: true }

/**
 * A faulty client may leave a control character in a name, and an imitator may insert an invisible one. Without them,
 * the rest is the name.
 */
function checkNames({ longName, shortName }: Names, refuse: Refuse): Names {
  let isNameAltered = false
  const check = (field: string, name: string | null, most: number) => {
    if (name === null || isName(name, most)) return name
    refuse(field)
    const clean = removeHidden(name).trim()
    if (clean === '' || !hasRoom(clean, most)) return null
    isNameAltered = true
    return clean
  }
  return {
    longName: check('longName', longName, MAX_LONG_NAME),
    shortName: check('shortName', shortName, MAX_SHORT_NAME),
    ...(isNameAltered ? { isNameAltered } : {}),
  }
}

/** One line: null if no radio can send it. */
function checkStatus(status: string | null, refuse: Refuse): string | null {
  if (status === null || isName(status, MAX_STATUS)) return status
  refuse('status')
  const clean = removeHidden(status).trim()
  return hasRoom(clean, MAX_STATUS) ? clean : null
}

function checkVersion({ firmwareVersion }: { firmwareVersion: string | null }, refuse: Refuse): string | null {
  if (firmwareVersion === null || isName(firmwareVersion, MAX_VERSION)) return firmwareVersion
  refuse('firmwareVersion')
  return null
}

function checkFix(fix: PositionFix, refuse: Refuse): PositionFix {
  return {
    ...fix,
    ...checkCell(fix, refuse),
    altitude: within('altitude', fix.altitude, ALTITUDE, refuse),
  }
}

function checkCell({ precisionBits }: { readonly precisionBits: number | null }, refuse: Refuse) {
  return { precisionBits: within('precisionBits', precisionBits, [0, MAX_PRECISION_BITS], refuse) }
}

/** Volts. Where no battery is connected, the converter measures a little less than nothing. */
const MIN_VOLTAGE = -0.05

function checkMetrics(metrics: readonly Metric[], refuse: Refuse): readonly Metric[] {
  const levelled = metrics.map(([name, value]): Metric => {
    const isNothing = name.endsWith('.voltage') && value < 0 && value >= MIN_VOLTAGE
    return isNothing ? [name, 0] : [name, value]
  })
  return levelled.filter(([name, value]) => {
    const field = name.slice(name.lastIndexOf('.') + 1)
    const range = Object.hasOwn(RANGES, field) ? RANGES[field] : undefined
    return range === undefined || within(field, value, range, refuse) !== null
  })
}

function checkWaypoint(waypoint: Waypoint, refuse: Refuse): Waypoint {
  const { name, description, icon } = waypoint
  const isNamed = isName(name, MAX_WAYPOINT_NAME)
  if (!isNamed) refuse('waypointName')
  const clean = isNamed ? name : removeHidden(name).trim()
  const lines = description.replaceAll(UNPRINTABLE_BUT_LINES, '')
  if (lines !== description) refuse('waypointDescription')
  const isDrawn = icon === null || !UNPRINTABLE.test(icon)
  if (!isDrawn) refuse('icon')
  return {
    ...waypoint,
    name: hasRoom(clean, MAX_WAYPOINT_NAME) ? clean : '',
    description: lines,
    icon: isDrawn ? icon : null,
  }
}

function within(field: string, value: number | null, [least, most]: Range, refuse: Refuse): number | null {
  if (value === null || (value >= least && value <= most)) return value
  refuse(field)
  return null
}
