import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { type AdminMessage, AdminMessageSchema } from '../../../meshtastic/gen/admin_pb.ts'
import { Channel_Role, ChannelSchema } from '../../../meshtastic/gen/channel_pb.ts'
import { Config_LoRaConfig_RegionCode as Region, ConfigSchema } from '../../../meshtastic/gen/config_pb.ts'
import { ModuleConfigSchema } from '../../../meshtastic/gen/module_config_pb.ts'
import type { MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { type FromRadio, FromRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import type { DemoNode } from './mesh.ts'

type Variant = NonNullable<Exclude<MessageInitShape<typeof FromRadioSchema>, FromRadio>['payloadVariant']>

/** The settings of the simulated radio, which can be changed like those of a real one. */
export type DemoSettings = {
  /** Encoded FromRadio: channels and sections. */
  describe(): Uint8Array[]
  startCount(): number
  /**
   * Processes an admin packet to the radio itself. `ends`: the packet made it save or restart. Null for any other
   * packet.
   */
  take(packet: MeshPacket): { readonly ends: boolean } | null
}

/** Renames `own` on request. */
export function createDemoSettings(own: DemoNode): DemoSettings {
  const channels = new Map(CHANNELS.map((each) => create(ChannelSchema, each)).map((each) => [each.index, each]))
  const configs = new Map(configsOf(own).map((each) => [each.payloadVariant.case, each]))
  const modules = new Map(
    MODULES.map((each) => create(ModuleConfigSchema, each)).map((each) => [each.payloadVariant.case, each]),
  )
  let starts = 1
  const apply = ({ payloadVariant: { case: variant, value } }: AdminMessage) => {
    if (variant === 'setChannel') channels.set(value.index, value)
    if (variant === 'setConfig') configs.set(value.payloadVariant.case, value)
    if (variant === 'setModuleConfig') modules.set(value.payloadVariant.case, value)
    if (variant === 'setOwner') Object.assign(own, { longName: value.longName, shortName: value.shortName })
    return variant === 'commitEditSettings' || variant === 'rebootSeconds'
  }
  return {
    describe: () => [
      ...[...channels.values()].map((value) => encode({ case: 'channel', value })),
      ...[...configs.values()].map((value) => encode({ case: 'config', value })),
      ...[...modules.values()].map((value) => encode({ case: 'moduleConfig', value })),
    ],
    startCount: () => starts,
    take({ to, payloadVariant }) {
      const data = payloadVariant.case === 'decoded' ? payloadVariant.value : null
      if (data?.portnum !== PortNum.ADMIN_APP || to !== own.nodeNum) return null
      const ends = apply(fromBinary(AdminMessageSchema, data.payload))
      if (ends) starts += 1
      return { ends }
    },
  }
}

const CHANNELS: readonly MessageInitShape<typeof ChannelSchema>[] = [
  {
    index: 0,
    role: Channel_Role.PRIMARY,
    settings: { psk: Uint8Array.of(1), moduleSettings: { positionPrecision: 13 } },
  },
  { index: 1, role: Channel_Role.SECONDARY, settings: { name: 'Rescue', psk: Uint8Array.of(2) } },
]

const MODULES: readonly MessageInitShape<typeof ModuleConfigSchema>[] = [
  {
    payloadVariant: {
      case: 'mqtt',
      value: { address: 'mqtt.example.org', encryptionEnabled: true, root: 'msh/EU_868' },
    },
  },
  { payloadVariant: { case: 'telemetry', value: { deviceUpdateInterval: 1800, deviceTelemetryEnabled: true } } },
  { payloadVariant: { case: 'neighborInfo', value: { enabled: true, updateInterval: 14_400 } } },
  { payloadVariant: { case: 'storeForward', value: {} } },
  { payloadVariant: { case: 'rangeTest', value: {} } },
]

function configsOf({ role }: DemoNode) {
  const all: readonly MessageInitShape<typeof ConfigSchema>[] = [
    { payloadVariant: { case: 'device', value: { role, nodeInfoBroadcastSecs: 10_800 } } },
    { payloadVariant: { case: 'position', value: { positionBroadcastSecs: 43_200, fixedPosition: true } } },
    { payloadVariant: { case: 'power', value: { minWakeSecs: 10 } } },
    { payloadVariant: { case: 'network', value: { ethEnabled: true, ntpServer: 'ntp.example.org' } } },
    { payloadVariant: { case: 'display', value: { screenOnSecs: 60 } } },
    { payloadVariant: { case: 'lora', value: LORA } },
    { payloadVariant: { case: 'bluetooth', value: { enabled: true } } },
    { payloadVariant: { case: 'security', value: { serialEnabled: true } } },
  ]
  return all.map((each) => create(ConfigSchema, each))
}

const LORA = { usePreset: true, region: Region.EU_868, hopLimit: 3, txEnabled: true, txPower: 27 } as const

function encode(payloadVariant: Variant): Uint8Array {
  return toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant }))
}
