import { clone, create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { type AdminMessage, AdminMessageSchema } from '../../../src/meshtastic/gen/admin_pb.ts'
import { type Channel, ChannelSchema } from '../../../src/meshtastic/gen/channel_pb.ts'
import { type Config, Config_LoRaConfigSchema, ConfigSchema } from '../../../src/meshtastic/gen/config_pb.ts'
import { type ModuleConfig, ModuleConfigSchema } from '../../../src/meshtastic/gen/module_config_pb.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { Routing_Error, RoutingSchema, type User, UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { LoRaRegionPresetMapSchema, LockdownStatus_State } from '../../../src/meshtastic/gen/stream_pb.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from './device.ts'

/** How the radio behaves. */
export type Manners = {
  /** Answers each admin packet with this error and does nothing. */
  refuseWith: Routing_Error | null
  /** Admin packets that it accepts before it refuses or falls silent, and how many it then refuses. */
  takes: number
  times: number
  /** Applies changes, but neither saves nor restarts. */
  ignoresCommit: boolean
  /** Accepts each set and hangs up instead of answering. */
  hangsUpMidway: boolean
  /** Answers that it will restart, and does not. */
  ignoresRestart: boolean
  /** Does not answer admin packets. */
  isMute: boolean
  /** Answers the commit before it hangs up. */
  answersCommit: boolean
  /** Counts its starts. */
  countsStarts: boolean
  /** Changes the values that it has just saved. */
  onSave: ((settings: Settings) => void) | null
  /** Hangs up and never comes back. */
  diesOnCommit: boolean
  /** Is in lockdown: shows nothing of its settings. */
  isLocked: boolean
  /** Gets what it is told to send to other nodes. */
  onOther: ((packet: MeshPacket) => void) | null
}

export type Settings = {
  owner: User
  readonly channels: Map<number, Channel>
  readonly configs: Map<string, Config>
  readonly modules: Map<string, ModuleConfig>
  /** Firmware before 2.8 does not report them. */
  readonly regionPresets: MessageInitShape<typeof LoRaRegionPresetMapSchema> | null
}

export type SettingsInit = {
  readonly regionPresets?: MessageInitShape<typeof LoRaRegionPresetMapSchema> | null
  readonly owner?: MessageInitShape<typeof UserSchema>
  readonly channels?: readonly MessageInitShape<typeof ChannelSchema>[]
  readonly configs?: readonly MessageInitShape<typeof ConfigSchema>[]
  readonly modules?: readonly MessageInitShape<typeof ModuleConfigSchema>[]
}

/** A radio on loopback with settings that can be changed as in the firmware. */
export type ConfigDevice = RadioDevice & {
  readonly manners: Manners
  /** The settings in its memory, and those it would start with. */
  readonly active: Settings
  readonly saved: Settings
  /** Admin messages that it accepted, in order. */
  readonly admin: readonly AdminMessage[]
  readonly packets: readonly MeshPacket[]
  starts(): number
  /** It was told to begin an edit, and has neither saved nor restarted since. */
  isEditing(): boolean
  /** Another radio takes its place, with the same settings. */
  replace(nodeNum: number): void
  /** An answer in its name that it heard by radio. */
  forge(requestId: number, error: Routing_Error): void
}

export async function startConfigDevice(firstNum: number, init: SettingsInit): Promise<ConfigDevice> {
  const manners: Manners = {
    refuseWith: null,
    takes: 0,
    times: Infinity,
    ignoresCommit: false,
    hangsUpMidway: false,
    ignoresRestart: false,
    isMute: false,
    answersCommit: true,
    countsStarts: true,
    onSave: null,
    diesOnCommit: false,
    isLocked: false,
    onOther: null,
  }
  const admin: AdminMessage[] = []
  const packets: MeshPacket[] = []
  let saved = makeSettings(init)
  let active = copySettings(saved)
  let nodeNum = firstNum
  let isEditing = false
  let starts = 1
  let unwilling = 0

  const reply = (packet: MeshPacket, error: Routing_Error) => device.send(routingReply(nodeNum, packet.id, error))
  const restart = () => {
    active = copySettings(saved)
    isEditing = false
    starts += 1
    device.kick()
    if (manners.diesOnCommit) device.refuse(true)
  }
  const commit = (packet: MeshPacket) => {
    if (manners.ignoresCommit) return reply(packet, Routing_Error.NONE)
    saved = copySettings(active)
    manners.onSave?.(saved)
    if (manners.answersCommit) reply(packet, Routing_Error.NONE)
    device.afterWritten(restart)
  }
  const take = (packet: MeshPacket) => {
    packets.push(packet)
    const data = packet.payloadVariant.case === 'decoded' ? packet.payloadVariant.value : null
    if (packet.to !== nodeNum) return manners.onOther?.(packet)
    if (data?.portnum !== PortNum.ADMIN_APP) return
    const message = fromBinary(AdminMessageSchema, data.payload)
    admin.push(message)
    const { case: variant } = message.payloadVariant
    const isWilling = admin.length <= manners.takes || unwilling >= manners.times
    if (!isWilling && (manners.isMute || manners.refuseWith !== null)) {
      unwilling += 1
      return manners.refuseWith === null ? undefined : reply(packet, manners.refuseWith)
    }
    if (variant === 'beginEditSettings') isEditing = true
    else if (variant === 'commitEditSettings') return isEditing ? commit(packet) : undefined
    else apply(active, message)
    const isSet = variant?.startsWith('set') === true
    if (isSet && manners.hangsUpMidway) return device.kick()
    reply(packet, Routing_Error.NONE)
    if (variant === 'rebootSeconds' && !manners.ignoresRestart) device.afterWritten(restart)
  }
  const device = await startRadioDevice({
    onPacket: take,
    handshake(nonce) {
      const rebootCount = manners.countsStarts ? starts : 0
      return describeSettings({ nodeNum, rebootCount, isLocked: manners.isLocked }, active, nonce)
    },
  })
  return {
    ...device,
    manners,
    get active() {
      return active
    },
    get saved() {
      return saved
    },
    admin,
    packets,
    starts: () => starts,
    isEditing: () => isEditing,
    replace(other) {
      nodeNum = other
    },
    forge: (requestId, error) => device.send(routingReply(nodeNum, requestId, error, -80)),
  }
}

export function makeSettings({
  owner = {},
  channels = [],
  configs = [],
  modules = [],
  regionPresets = null,
}: SettingsInit): Settings {
  return {
    regionPresets,
    owner: create(UserSchema, owner),
    channels: new Map(channels.map((each) => create(ChannelSchema, each)).map((each) => [each.index, each])),
    configs: byCase(configs.map((each) => create(ConfigSchema, each))),
    modules: byCase(modules.map((each) => create(ModuleConfigSchema, each))),
  }
}

function byCase<T extends Config | ModuleConfig>(all: readonly T[]): Map<string, T> {
  return new Map(all.map((each) => [each.payloadVariant.case ?? '', each]))
}

export function copySettings({ owner, channels, configs, modules, regionPresets }: Settings): Settings {
  return {
    regionPresets,
    owner: clone(UserSchema, owner),
    channels: new Map([...channels].map(([index, each]) => [index, clone(ChannelSchema, each)])),
    configs: new Map([...configs].map(([name, each]) => [name, clone(ConfigSchema, each)])),
    modules: new Map([...modules].map(([name, each]) => [name, clone(ModuleConfigSchema, each)])),
  }
}

/** A set replaces the whole section that it names. */
function apply(settings: Settings, { payloadVariant: { case: variant, value } }: AdminMessage): void {
  if (variant === 'setOwner') settings.owner = value
  if (variant === 'setChannel') settings.channels.set(value.index, value)
  if (variant === 'setConfig') settings.configs.set(value.payloadVariant.case ?? '', value)
  if (variant === 'setModuleConfig') settings.modules.set(value.payloadVariant.case ?? '', value)
}

type About = { readonly nodeNum: number; readonly rebootCount: number; readonly isLocked: boolean }

function describeSettings({ nodeNum, rebootCount, isLocked }: About, told: Settings, nonce: number): Uint8Array[] {
  const { owner, channels, configs, modules, regionPresets } = isLocked ? redact(told) : told
  return [
    fromRadio({ case: 'myInfo', value: { myNodeNum: nodeNum, rebootCount, nodedbCount: 1 } }),
    fromRadio({ case: 'nodeInfo', value: { num: nodeNum, user: owner } }),
    fromRadio({ case: 'metadata', value: isLocked ? {} : { firmwareVersion: '2.8.0.test', hwModel: 43 } }),
    ...(regionPresets === null ? [] : [fromRadio({ case: 'regionPresets', value: regionPresets })]),
    ...[...channels.values()].map((value) => fromRadio({ case: 'channel', value })),
    ...[...configs.values()].map((value) => fromRadio({ case: 'config', value })),
    ...[...modules.values()].map((value) => fromRadio({ case: 'moduleConfig', value })),
    fromRadio({ case: 'configCompleteId', value: nonce }),
    ...(isLocked ? [lockdownStatus(LockdownStatus_State.LOCKED)] : []),
  ]
}

export function lockdownStatus(state: LockdownStatus_State): Uint8Array {
  return fromRadio({ case: 'lockdownStatus', value: { state, lockReason: 'needs_auth' } })
}

/**
 * As firmware 2.8 sends them to a client without the passphrase: eight empty channels, and some sections empty or in
 * part. The others are complete.
 */
function redact(settings: Settings): Settings {
  const { configs, modules, channels } = copySettings(settings)
  const lora = configs.get('lora')?.payloadVariant
  const { region, modemPreset, usePreset, channelNum, hopLimit } =
    lora?.case === 'lora' ? lora.value : create(Config_LoRaConfigSchema)
  const emptied: MessageInitShape<typeof ConfigSchema>[] = [
    { payloadVariant: { case: 'network', value: {} } },
    { payloadVariant: { case: 'security', value: {} } },
    { payloadVariant: { case: 'lora', value: { region, modemPreset, usePreset, channelNum, hopLimit } } },
  ]
  for (const [name, value] of byCase(emptied.map((each) => create(ConfigSchema, each)))) configs.set(name, value)
  modules.set('mqtt', create(ModuleConfigSchema, { payloadVariant: { case: 'mqtt', value: {} } }))
  return {
    ...settings,
    configs,
    modules,
    channels: new Map(Array.from(channels.keys(), (index) => [index, create(ChannelSchema)])),
  }
}

function routingReply(nodeNum: number, requestId: number, error: Routing_Error, rxRssi?: number): Uint8Array {
  const routing = create(RoutingSchema, { variant: { case: 'errorReason', value: error } })
  const data = { portnum: PortNum.ROUTING_APP, payload: toBinary(RoutingSchema, routing), requestId }
  const payloadVariant = { case: 'decoded', value: data } as const
  const signal = rxRssi === undefined ? {} : { rxRssi }
  return fromRadio({
    case: 'packet',
    value: { from: nodeNum, to: nodeNum, id: (requestId ^ 0x5555) >>> 0, ...signal, payloadVariant },
  })
}
