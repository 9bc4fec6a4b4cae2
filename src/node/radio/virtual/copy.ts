import { clone, create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { createReplayDetector } from '../../../meshtastic/replay.ts'
import type { Channel } from '../../../meshtastic/gen/channel_pb.ts'
import type { Config } from '../../../meshtastic/gen/config_pb.ts'
import type { DeviceUIConfig } from '../../../meshtastic/gen/device_ui_pb.ts'
import type { ModuleConfig } from '../../../meshtastic/gen/module_config_pb.ts'
import { type NodeInfo, NodeInfoSchema } from '../../../meshtastic/gen/node_pb.ts'
import type { Data, MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { UserSchema } from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../meshtastic/gen/position_pb.ts'
import {
  type DeviceMetadata,
  type FileInfo,
  type FromRadio,
  FromRadioSchema,
  LockdownStatus_State as Lockdown,
  type LoRaRegionPresetMap,
  type MyNodeInfo,
} from '../../../meshtastic/gen/stream_pb.ts'
import { TelemetrySchema } from '../../../meshtastic/gen/telemetry_pb.ts'
import { countHops, isKeptFromOthers } from '../../../meshtastic/packet.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'

/** More than a radio itself remembers. */
const MAX_NODES = 5000

/** How a position or measurement came: in the radio's memory, by the radio itself, or in this packet. */
export type Whence =
  | 'memory'
  | 'own'
  | (Pick<MeshPacket, 'to' | 'channel' | 'pkiEncrypted'> & {
      /** See `isWithheld` of a packet. */
      readonly isWithheld: boolean
    })

export type CopiedNode = { readonly info: NodeInfo; readonly position: Whence; readonly metrics: Whence }

/** All that a radio told in one handshake, secrets included. It must stay in memory. */
export type RadioParts = {
  readonly myInfo: MyNodeInfo
  deviceUi: DeviceUIConfig | null
  metadata: DeviceMetadata | null
  regionPresets: LoRaRegionPresetMap | null
  readonly channels: Map<number, Channel>
  readonly configs: Map<string, Config>
  readonly modules: Map<string, ModuleConfig>
  readonly files: FileInfo[]
  readonly nodes: Map<number, CopiedNode>
}

/** The copy of a radio: what it told in its last complete handshake, and what it heard since. */
export type RadioCopy = {
  /** Takes each message of the radio. Returns what it means for the copy, and whether it is a packet out of memory. */
  take(message: FromRadio, now: number): { readonly isRead: boolean; readonly isOld: boolean }
  /** Null until the first handshake is complete. */
  parts(): RadioParts | null
  /** The number that the radio told last, perhaps in a handshake that still lasts. */
  latestNum(): number | null
  isLocked(): boolean
  /** Changes what the copy says about a node; unknown ones are left alone. */
  mark(nodeNum: number, marks: Partial<Pick<NodeInfo, 'isFavorite' | 'isIgnored' | 'isMuted'>>): void
  forget(nodeNum: number): void
}

const LOCKED: ReadonlySet<Lockdown> = new Set([Lockdown.NEEDS_PROVISION, Lockdown.LOCKED, Lockdown.UNLOCK_FAILED])

export function createRadioCopy(): RadioCopy {
  const replay = createReplayDetector()
  let current: RadioParts | null = null
  let reading: RadioParts | null = null
  let isLocked = false
  const known = () => reading ?? current
  return {
    parts: () => current,
    latestNum: () => known()?.myInfo.myNodeNum ?? null,
    isLocked: () => isLocked,
    take(message, now) {
      const isOld = replay.isReplayed(message, now)
      const { case: variant, value } = message.payloadVariant
      switch (variant) {
        case 'myInfo':
          reading = startReading(value)
          break
        case 'nodeInfo':
          noteNode(known(), value)
          break
        case 'packet':
          if (current !== null) hear(known() ?? current, value, isOld, now)
          break
        case 'lockdownStatus':
          // Once unlocked it is read again: until then the copy may be outdated.
          isLocked ||= LOCKED.has(value.state)
          break
        case 'configCompleteId':
          if (reading === null) break
          current = reading
          reading = null
          isLocked = false
          return { isRead: true, isOld }
        default:
          noteSetting(known(), message)
      }
      return { isRead: false, isOld }
    },
    mark(nodeNum, marks) {
      const node = current?.nodes.get(nodeNum)
      if (node !== undefined) current?.nodes.set(nodeNum, { ...node, info: { ...node.info, ...marks } })
    },
    forget: (nodeNum) => void current?.nodes.delete(nodeNum),
  }
}

function startReading(myInfo: MyNodeInfo): RadioParts {
  return {
    myInfo,
    deviceUi: null,
    metadata: null,
    regionPresets: null,
    channels: new Map(),
    configs: new Map(),
    modules: new Map(),
    files: [],
    nodes: new Map(),
  }
}

function noteNode(parts: RadioParts | null, info: NodeInfo): void {
  if (parts === null || info.num === 0 || info.num === BROADCAST) return
  const isOwn = info.num === parts.myInfo.myNodeNum
  if (!isOwn && parts.nodes.size >= MAX_NODES && !parts.nodes.has(info.num)) return
  const whence: Whence = isOwn ? 'own' : 'memory'
  parts.nodes.set(info.num, { info, position: whence, metrics: whence })
}

/** The most files that a radio lists. */
const MAX_FILES = 64

function noteSetting(parts: RadioParts | null, { payloadVariant: { case: variant, value } }: FromRadio): void {
  if (parts === null) return
  if (variant === 'deviceuiConfig') parts.deviceUi = value
  if (variant === 'metadata') parts.metadata = value
  if (variant === 'regionPresets') parts.regionPresets = value
  if (variant === 'channel' && value.index >= 0 && value.index < 8) parts.channels.set(value.index, value)
  if (variant === 'config') parts.configs.set(value.payloadVariant.case ?? '', value)
  if (variant === 'moduleConfig') parts.modules.set(value.payloadVariant.case ?? '', value)
  if (variant === 'fileInfo' && parts.files.length < MAX_FILES) parts.files.push(value)
}

/** As a radio notes in its own list of nodes what it hears. */
function hear({ nodes, myInfo }: RadioParts, packet: MeshPacket, isOld: boolean, now: number): void {
  const { from, rxRssi } = packet
  const isOwn = from === myInfo.myNodeNum
  // A packet with the radio's own number that was received by radio is forged.
  if (from === 0 || from === BROADCAST || (isOwn && rxRssi !== undefined)) return
  const before = nodes.get(from) ?? {
    info: create(NodeInfoSchema, { num: from }),
    position: 'memory',
    metrics: 'memory',
  }
  const info = clone(NodeInfoSchema, before.info)
  if (!isOwn && !isOld) noteArrival(info, packet, now)
  const data = packet.payloadVariant.case === 'decoded' ? packet.payloadVariant.value : null
  const content = data === null ? null : noteContent(info, data, isOld)
  const { to, channel, pkiEncrypted } = packet
  const isWithheld = data !== null && isKeptFromOthers(data)
  const whence: Whence = isOwn ? 'own' : isOld ? 'memory' : { to, channel, pkiEncrypted, isWithheld }
  nodes.set(from, {
    info,
    position: content === 'position' ? whence : before.position,
    metrics: content === 'metrics' ? whence : before.metrics,
  })
  if (nodes.size > MAX_NODES) nodes.delete(longestSilent(nodes, myInfo.myNodeNum))
}

function noteArrival(info: NodeInfo, packet: MeshPacket, now: number): void {
  info.lastHeard = packet.rxTime || Math.floor(now / 1000)
  info.snr = packet.rxSnr
  info.viaMqtt = packet.viaMqtt
  if (packet.payloadVariant.case === 'decoded' && !packet.pkiEncrypted) info.channel = packet.channel
  const hops = countHops(packet.hopStart, packet.hopLimit)
  if (hops !== null) info.hopsAway = hops
}

function noteContent(info: NodeInfo, { portnum, payload }: Data, isOld: boolean): 'position' | 'metrics' | null {
  if (portnum === PortNum.NODEINFO_APP) {
    const user = decode(UserSchema, payload)
    // A radio keeps the first key of a node, and what comes with it.
    const key = info.user?.publicKey ?? new Uint8Array(0)
    const isOther = user !== null && key.length > 0 && !isSame(key, user.publicKey)
    if (user !== null && !isOther) info.user = user
  }
  if (portnum === PortNum.POSITION_APP) {
    const position = decode(PositionSchema, payload)
    if (position?.latitudeI === undefined || (isOld && info.position !== undefined)) return null
    info.position = position
    return 'position'
  }
  if (portnum === PortNum.TELEMETRY_APP) {
    const telemetry = decode(TelemetrySchema, payload)
    if (telemetry?.variant.case !== 'deviceMetrics' || (isOld && info.deviceMetrics !== undefined)) return null
    info.deviceMetrics = telemetry.variant.value
    return 'metrics'
  }
  return null
}

function decode<Desc extends DescMessage>(schema: Desc, payload: Uint8Array): MessageShape<Desc> | null {
  try {
    return fromBinary(schema, payload)
  } catch {
    return null
  }
}

function longestSilent(nodes: ReadonlyMap<number, CopiedNode>, own: number): number {
  const others = [...nodes.values()].filter(({ info }) => info.num !== own)
  return others.reduce(
    (oldest, { info }) => (info.lastHeard < oldest.lastHeard ? info : oldest),
    others[0]?.info ?? { num: own, lastHeard: 0 },
  ).num
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}

/** Who the radio is: its number, its public key and its firmware. Apps of an earlier one must start over. */
export function identityOf({ myInfo, metadata, nodes, configs }: RadioParts): string {
  const security = configs.get('security')?.payloadVariant
  const ofConfig = security?.case === 'security' ? security.value.publicKey : new Uint8Array(0)
  const key = ofConfig.length > 0 ? ofConfig : (nodes.get(myInfo.myNodeNum)?.info.user?.publicKey ?? ofConfig)
  return JSON.stringify([myInfo.myNodeNum, Buffer.from(key).toString('base64'), metadata?.firmwareVersion ?? ''])
}

/** Bytes that differ if a channel or setting differs. */
export function settingsOf({ channels, configs, modules }: RadioParts): string {
  const all = [
    ...[...channels].map(([index, value]) => [index, { case: 'channel', value }] as const),
    ...[...configs].map(([name, value]) => [name, { case: 'config', value }] as const),
    ...[...modules].map(([name, value]) => [name, { case: 'moduleConfig', value }] as const),
  ]
  const lines = all.map(([name, payloadVariant]) => {
    const bytes = toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant }))
    return `${name} ${Buffer.from(bytes).toString('base64')}`
  })
  return lines.toSorted().join()
}
