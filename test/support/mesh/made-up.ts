import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import * as wire from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../src/meshtastic/gen/position_pb.ts'
import { TelemetrySchema } from '../../../src/meshtastic/gen/telemetry_pb.ts'

/** What a packet changes, described independently: nothing here is decoded from bytes. Times in milliseconds. */
export type Effect =
  | { readonly kind: 'text'; readonly text: string; readonly replyId: number | null; readonly emoji: boolean }
  | { readonly kind: 'place'; readonly place: Place }
  | { readonly kind: 'values'; readonly values: Readonly<Record<string, number>>; readonly t: number | null }
  | { readonly kind: 'user'; readonly user: Identity }
  | { readonly kind: 'route'; readonly requestId: number; readonly route: object }
  | { readonly kind: 'neighbors'; readonly neighbors: ReadonlyMap<number, number> }
  | { readonly kind: 'waypoint'; readonly waypoint: Waypoint }
  | { readonly kind: 'none' }

export type Place = {
  readonly latitude: number
  readonly longitude: number
  readonly altitude: number | null
  readonly precisionBits: number | null
  readonly t: number | null
}

export type Identity = {
  readonly longName: string
  readonly shortName: string
  readonly role: 0 | 2
  readonly isLicensed: boolean
  readonly key: number
}

export type Waypoint = {
  readonly id: number
  readonly name: string
  readonly latitude: number
  readonly longitude: number
  readonly isOver: boolean
  readonly lockedTo: number | null
}

/** A packet as it is sent over the air. */
export type Sent = {
  readonly from: number
  readonly to: number
  readonly id: number
  readonly channel: number
  /** Null: ciphertext. */
  readonly port: number | null
  readonly payload: Uint8Array
  readonly data: { readonly requestId?: number; readonly replyId?: number; readonly emoji?: number }
  /** What the packet log shows of its content. */
  readonly logged: object
  readonly effect: Effect
}

export type Random = {
  below(count: number): number
  pick<T>(all: readonly [T, ...T[]]): T
  chance(share: number): boolean
  bytes(count: number): Uint8Array
}

export function createDice(random: () => number): Random {
  const below = (count: number) => Math.floor(random() * count)
  return {
    below,
    pick: (all) => all[below(all.length)] ?? all[0],
    chance: (share) => random() < share,
    bytes: (count) => Uint8Array.from({ length: count }, () => below(256)),
  }
}

const encode = <Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>) =>
  toBinary(schema, create(schema, init))

type Content = Pick<Sent, 'port' | 'payload' | 'logged' | 'effect'> & { data?: Sent['data']; to?: number }

/** An em dash before a Ã is E2 80 94 C3 83: the start of a frame in the middle of a text. */
const WORDS = ['hello', '— Ã', 'Grüße', '\u0014Ã', '🦉', '\u001b[31mred', 'a b  c', '"quoted"', '—Ã—Ã'] as const

/** Names and reactions with control characters are rejected: see plausible.test.ts. */
function printable(words: string): string {
  return words.replaceAll(/\p{Cc}/gu, '')
}

function makeText(dice: Random): Content {
  const words = Array.from({ length: 1 + dice.below(12) }, () => dice.pick(WORDS)).join(' ')
  const replyId = dice.chance(0.2) ? 1 + dice.below(1e9) : null
  const emoji = replyId !== null && dice.chance(0.5)
  const text = emoji ? printable(words) : words
  return {
    port: PortNum.TEXT_MESSAGE_APP,
    payload: new TextEncoder().encode(text),
    data: { replyId: replyId ?? 0, emoji: emoji ? 1 : 0 },
    logged: { kind: 'text', text, origin: 'message' },
    effect: { kind: 'text', text, replyId, emoji },
  }
}

const someTime = (dice: Random, seconds: number) => (dice.chance(0.3) ? 0 : seconds - dice.below(3000))
const toMs = (seconds: number) => (seconds === 0 ? null : seconds * 1000)

function makePosition(dice: Random, seconds: number): Content {
  const time = someTime(dice, seconds)
  const [latitudeI, longitudeI] = [dice.below(1.8e9) - 9e8, dice.below(3.6e9) - 1.8e9]
  const altitude = dice.chance(0.7) ? dice.below(3000) - 100 : null
  const precisionBits = dice.chance(0.7) ? 10 + dice.below(23) : null
  const isPlaced = dice.chance(0.9)
  const init = {
    ...(isPlaced && { latitudeI, longitudeI }),
    ...(altitude !== null && { altitude }),
    precisionBits: precisionBits ?? 0,
    time,
  }
  const degrees = { latitude: latitudeI / 1e7, longitude: longitudeI / 1e7, altitude, precisionBits }
  const fix = isPlaced ? { ...degrees, time: toMs(time), satsInView: null } : null
  return {
    port: PortNum.POSITION_APP,
    payload: encode(PositionSchema, init),
    logged: { kind: 'position', fix },
    effect: isPlaced ? { kind: 'place', place: { ...degrees, t: toMs(time) } } : { kind: 'none' },
  }
}

/** Some metrics of each variant. */
const METRICS = {
  deviceMetrics: ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx', 'uptimeSeconds'],
  environmentMetrics: ['temperature', 'relativeHumidity', 'barometricPressure', 'iaq', 'lux'],
  airQualityMetrics: ['pm10Standard', 'pm25Environmental', 'co2', 'formHumidity'],
  powerMetrics: ['ch1Voltage', 'ch1Current', 'ch8Current'],
  healthMetrics: ['heartBpm', 'temperature'],
  cellularMetrics: ['rsrq', 'band'],
  localStats: ['numPacketsTx', 'airUtilTx', 'numOnlineNodes'],
  hostMetrics: ['uptimeSeconds', 'load1'],
  trafficManagementStats: ['packetsInspected', 'rateLimitDrops'],
} as const satisfies Record<string, readonly string[]>
type Variant = keyof typeof METRICS
const VARIANTS: readonly [Variant, ...Variant[]] = [
  'deviceMetrics',
  'deviceMetrics',
  'environmentMetrics',
  'airQualityMetrics',
  'powerMetrics',
  'healthMetrics',
  'cellularMetrics',
  'localStats',
  'hostMetrics',
  'trafficManagementStats',
]
/** Counts and loads, which are sent only where they are not 0: what is absent is a measured 0. */
const COUNTED: { readonly [V in Variant]?: readonly string[] } = {
  localStats: [
    'channelUtilization',
    'airUtilTx',
    'numPacketsTx',
    'numPacketsRx',
    'numPacketsRxBad',
    'numOnlineNodes',
    'numTotalNodes',
    'numRxDupe',
    'numTxRelay',
    'numTxRelayCanceled',
    'numTxDropped',
  ],
  hostMetrics: ['freememBytes', 'diskfree1Bytes', 'load1', 'load5', 'load15'],
}
const WHOLE = /Level|Seconds|iaq|pm|co2|heart|band|num|load|packets|rate/i

function makeTelemetry(dice: Random, seconds: number): Content {
  const variant = dice.pick(VARIANTS)
  const time = someTime(dice, seconds)
  // A 0 of these is not sent.
  const isPlain = variant === 'localStats' || variant === 'hostMetrics' || variant === 'trafficManagementStats'
  const names = METRICS[variant].filter(() => dice.chance(0.7))
  const entries = names.map((name) => {
    const value = dice.chance(0.2) && !isPlain ? 0 : 1 + dice.below(100)
    return [name, WHOLE.test(name) ? value : value / 4] as const
  })
  const init: unknown = { case: variant, value: Object.fromEntries(entries) }
  const zeros = (COUNTED[variant] ?? []).map((name) => [name, 0] as const)
  const values = Object.fromEntries([...zeros, ...entries].map(([name, value]) => [`${variant}.${name}`, value]))
  return {
    port: PortNum.TELEMETRY_APP,
    payload: encode(TelemetrySchema, { time, variant: Object(init) }),
    logged: { kind: 'telemetry', variant, time: toMs(time), metrics: values },
    effect: { kind: 'values', values, t: toMs(time) },
  }
}

export function keyBytes(key: number): Uint8Array {
  return new Uint8Array(32).fill(key)
}

function makeUser(dice: Random, from: number): Content {
  const longName = `Node ${from} ${printable(dice.pick(WORDS))}`.trim()
  const role = dice.pick([0, 2] as const)
  const user = { longName, shortName: `N${dice.below(99)}`, role, isLicensed: dice.chance(0.3), key: 1 + dice.below(3) }
  const { key, ...named } = user
  const publicKey = Buffer.from(keyBytes(key)).toString('base64')
  const names = { ...named, role: role === 2 ? 'ROUTER' : 'CLIENT', hwModel: 'HELTEC_V3' }
  return {
    port: PortNum.NODEINFO_APP,
    payload: encode(wire.UserSchema, { ...named, role, hwModel: 43, publicKey: keyBytes(key) }),
    logged: { kind: 'nodeinfo', user: { ...names, publicKey, isUnmessagable: null } },
    effect: { kind: 'user', user },
  }
}

function makeRoute(dice: Random, others: readonly [number, ...number[]]): Content {
  const isReply = dice.chance(0.7)
  const requestId = 1 + dice.below(1e9)
  const hops = Array.from({ length: dice.below(3) }, () => dice.pick([...others, 0xffffffff]))
  const towards = [...hops, 0].map(() => dice.pick([-128, -20, 5, 24]))
  const route = {
    route: hops.map((hop) => (hop === 0xffffffff ? null : hop)),
    snrTowards: towards.map((snr) => (snr === -128 ? null : snr / 4)),
    routeBack: [],
    snrBack: [],
  }
  return {
    port: PortNum.TRACEROUTE_APP,
    to: dice.pick(others),
    payload: encode(wire.RouteDiscoverySchema, { route: hops, snrTowards: towards }),
    data: isReply ? { requestId } : {},
    logged: { kind: 'traceroute', isReply, route },
    effect: isReply ? { kind: 'route', requestId, route } : { kind: 'none' },
  }
}

function makeNeighbors(dice: Random, from: number, others: readonly number[]): Content {
  const neighbors = new Map(others.filter(() => dice.chance(0.4)).map((each) => [each, (dice.below(80) - 60) / 4]))
  const list = [...neighbors].map(([nodeId, snr]) => ({ nodeId, snr }))
  return {
    port: PortNum.NEIGHBORINFO_APP,
    payload: encode(wire.NeighborInfoSchema, { nodeId: from, neighbors: list }),
    logged: {
      kind: 'neighborinfo',
      nodeNum: from,
      neighbors: list.map(({ nodeId, snr }) => ({ nodeNum: nodeId, snr })),
    },
    effect: { kind: 'neighbors', neighbors },
  }
}

function makeWaypoint(dice: Random, from: number): Content {
  const [latitudeI, longitudeI] = [1 + dice.below(9e8), 1 + dice.below(9e8)]
  const isOver = dice.chance(0.2)
  const lockedTo = dice.chance(0.3) ? from : null
  const named = { id: 1 + dice.below(6), name: printable(dice.pick(WORDS)) }
  const place = { latitude: latitudeI / 1e7, longitude: longitudeI / 1e7 }
  const init = { ...named, latitudeI, longitudeI, expire: isOver ? 1 : 0, lockedTo: lockedTo ?? 0, icon: 128205 }
  const end = { expiresAt: isOver ? 1000 : null, lockedTo, description: '', icon: '📍' }
  return {
    port: PortNum.WAYPOINT_APP,
    payload: encode(wire.WaypointSchema, init),
    logged: { kind: 'waypoint', waypoint: { ...named, ...place, ...end } },
    effect: { kind: 'waypoint', waypoint: { ...named, ...place, isOver, lockedTo } },
  }
}

/** Unknown ports, known ports with invalid bytes, and ciphertext for others. */
function makeOpaque(dice: Random): Content {
  const bytes = dice.bytes(1 + dice.below(60))
  const isMalformed = dice.chance(0.3)
  if (!isMalformed && dice.chance(0.4)) {
    return { port: null, payload: bytes, logged: { kind: 'encrypted' }, effect: { kind: 'none' } }
  }
  // A length that reaches beyond the end.
  const payload = isMalformed ? Uint8Array.of(0x0a, 0x7f, ...bytes.slice(0, 20)) : bytes
  const port = isMalformed ? PortNum.TRACEROUTE_APP : dice.pick([256, 300, 511, 77])
  const logged = { kind: isMalformed ? 'malformed' : 'unknown', bytes: Buffer.from(payload).toString('base64') }
  return { port, payload, logged, effect: { kind: 'none' } }
}

/** The next packet of `from`. `id` is one that it never had. */
export function makePacket(
  dice: Random,
  from: number,
  id: number,
  at: number,
  others: readonly [number, ...number[]],
): Sent {
  const seconds = Math.floor(at / 1000)
  const content = dice.pick<() => Content>([
    () => makeText(dice),
    () => makeText(dice),
    () => makePosition(dice, seconds),
    () => makePosition(dice, seconds),
    () => makeTelemetry(dice, seconds),
    () => makeTelemetry(dice, seconds),
    () => makeTelemetry(dice, seconds),
    () => makeUser(dice, from),
    () => makeRoute(dice, others),
    () => makeNeighbors(dice, from, others),
    () => makeWaypoint(dice, from),
    () => makeOpaque(dice),
  ])()
  const to = content.to ?? (dice.chance(0.8) ? 0xffffffff : dice.pick(others))
  return { data: {}, ...content, from, to, id, channel: dice.below(3) }
}
