import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { channelsSection, type ConfigPart, ownerSection, type RawSection, sectionOf } from '../config/sections.ts'
import {
  AdminMessage_ConfigType as ConfigType,
  AdminMessage_ModuleConfigType as ModuleType,
  type AdminMessage,
  AdminMessageSchema,
} from '../gen/admin_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { ToRadioSchema } from '../gen/stream_pb.ts'

// Facts about remote administration: AdminModule.cpp and Router.cpp of firmware 2.8.

/** How an admin packet reaches a node: encrypted for its public key (32 bytes), or on a channel named admin. */
export type RemoteWay =
  | { readonly kind: 'pkc'; readonly publicKey: Uint8Array }
  | { readonly kind: 'channel'; readonly index: number }

/** A packet to a node that is administered over the mesh. */
export type RemotePacket = {
  readonly to: number
  readonly way: RemoteWay
  readonly id: number
  readonly hopLimit: number
  readonly payload: Uint8Array
  /**
   * True only for requests that are answered with data. Firmware marks its other answers as encrypted for a key, which
   * it then refuses to do for their port, so that they are never sent; without the mark, it acknowledges the packet.
   */
  readonly wantResponse: boolean
}

/** An encoded ToRadio. With `publicKey`, the radio refuses the packet if it knows another key of the node. */
export function encodeRemotePacket({ to, way, id, hopLimit, payload, wantResponse }: RemotePacket): Uint8Array {
  const isPkc = way.kind === 'pkc'
  const decoded = { portnum: PortNum.ADMIN_APP, payload, wantResponse }
  const value = {
    to,
    id,
    hopLimit,
    channel: isPkc ? 0 : way.index,
    pkiEncrypted: isPkc,
    publicKey: isPkc ? way.publicKey : new Uint8Array(0),
    wantAck: true,
    payloadVariant: { case: 'decoded', value: decoded },
  } as const
  return toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant: { case: 'packet', value } }))
}

const CONFIG_TYPES: Readonly<Record<string, ConfigType>> = {
  device: ConfigType.DEVICE_CONFIG,
  position: ConfigType.POSITION_CONFIG,
  power: ConfigType.POWER_CONFIG,
  network: ConfigType.NETWORK_CONFIG,
  display: ConfigType.DISPLAY_CONFIG,
  lora: ConfigType.LORA_CONFIG,
  bluetooth: ConfigType.BLUETOOTH_CONFIG,
  security: ConfigType.SECURITY_CONFIG,
}

const MODULE_TYPES: Readonly<Record<string, ModuleType>> = {
  mqtt: ModuleType.MQTT_CONFIG,
  serial: ModuleType.SERIAL_CONFIG,
  externalNotification: ModuleType.EXTNOTIF_CONFIG,
  storeForward: ModuleType.STOREFORWARD_CONFIG,
  rangeTest: ModuleType.RANGETEST_CONFIG,
  telemetry: ModuleType.TELEMETRY_CONFIG,
  cannedMessage: ModuleType.CANNEDMSG_CONFIG,
  audio: ModuleType.AUDIO_CONFIG,
  remoteHardware: ModuleType.REMOTEHARDWARE_CONFIG,
  neighborInfo: ModuleType.NEIGHBORINFO_CONFIG,
  ambientLighting: ModuleType.AMBIENTLIGHTING_CONFIG,
  detectionSensor: ModuleType.DETECTIONSENSOR_CONFIG,
  paxcounter: ModuleType.PAXCOUNTER_CONFIG,
  statusmessage: ModuleType.STATUSMESSAGE_CONFIG,
  trafficManagement: ModuleType.TRAFFICMANAGEMENT_CONFIG,
  meshBeacon: ModuleType.MESHBEACON_CONFIG,
}

const CHANNELS = 8

/** The sections that can be read over the mesh, in this order. Firmware does not answer for TAK. */
export const REMOTE_SECTIONS: readonly string[] = [
  'owner',
  'channels',
  ...Object.keys(CONFIG_TYPES),
  ...Object.keys(MODULE_TYPES),
]

/** A request for one message of a section: `prefix` as in its parts. */
export type PartAsk = { readonly prefix: string; readonly payload: Uint8Array }

type Variant = Parameters<typeof encodeAdmin>[0]

function encodeAdmin(payloadVariant: Exclude<AdminMessage['payloadVariant'], { case: undefined }>): Uint8Array {
  return toBinary(AdminMessageSchema, create(AdminMessageSchema, { payloadVariant }))
}

/** The requests that read a section, or those of its parts with these prefixes; none for an unknown section. */
export function listAsks(section: string, prefixes: readonly string[] | null = null): PartAsk[] {
  const config = CONFIG_TYPES[section]
  const module = MODULE_TYPES[section]
  const one = (variant: Variant) => [{ prefix: '', payload: encodeAdmin(variant) }]
  if (section === 'owner') return one({ case: 'getOwnerRequest', value: true })
  if (config !== undefined) return one({ case: 'getConfigRequest', value: config })
  if (module !== undefined) return one({ case: 'getModuleConfigRequest', value: module })
  if (section !== 'channels') return []
  return Array.from({ length: CHANNELS }, (_, index) => ({
    prefix: `channels.${index}.`,
    // The firmware counts from 1 here.
    payload: encodeAdmin({ case: 'getChannelRequest', value: index + 1 }),
  })).filter(({ prefix }) => prefixes === null || prefixes.includes(prefix))
}

export function encodeMetadataAsk(): Uint8Array {
  return encodeAdmin({ case: 'getDeviceMetadataRequest', value: true })
}

/** A payload that changes something, with the passkey of the node's session, without which it is refused. */
export function withPasskey(payload: Uint8Array, sessionPasskey: Uint8Array): Uint8Array {
  // Encoded messages that are joined merge.
  return Uint8Array.from([...payload, ...toBinary(AdminMessageSchema, create(AdminMessageSchema, { sessionPasskey }))])
}

/** An answer with data. */
export type RemoteAnswer = {
  readonly passkey: Uint8Array
  /** The part of a section; null for something else, and for a section that the firmware does not know. */
  readonly part: (ConfigPart & { readonly section: string }) | null
  readonly firmwareVersion: string | null
  /** It contained the node's private key, which firmware before 2.8 sends. It is not in `part`. */
  readonly hadPrivateKey: boolean
}

/** Null for bytes that are no answer to a request. */
export function readRemoteAnswer(payload: Uint8Array): RemoteAnswer | null {
  const message = decode(payload)
  if (message === null) return null
  const { payloadVariant, sessionPasskey: passkey } = message
  const nothing = { passkey, part: null, firmwareVersion: null, hadPrivateKey: false }
  const withSection = (section: RawSection | null): RemoteAnswer => {
    const [part] = section?.parts ?? []
    if (section === null || part === undefined) return nothing
    return { ...nothing, part: { ...part, section: section.section } }
  }
  switch (payloadVariant.case) {
    case 'getOwnerResponse':
      return withSection(ownerSection(payloadVariant.value))
    case 'getChannelResponse':
      return withSection(channelsSection([payloadVariant.value]))
    case 'getModuleConfigResponse':
      return withSection(sectionOf(payloadVariant.value.payloadVariant))
    case 'getConfigResponse': {
      const config = payloadVariant.value.payloadVariant
      if (config.case !== 'security') return withSection(sectionOf(config))
      const hadPrivateKey = config.value.privateKey.length > 0
      config.value.privateKey.fill(0)
      config.value.privateKey = new Uint8Array(0)
      return { ...withSection(sectionOf(config)), hadPrivateKey }
    }
    case 'getDeviceMetadataResponse':
      return { ...nothing, firmwareVersion: payloadVariant.value.firmwareVersion }
    default:
      return null
  }
}

function decode(payload: Uint8Array): AdminMessage | null {
  try {
    return fromBinary(AdminMessageSchema, payload)
  } catch {
    return null
  }
}

/** What firmware 2.8 sends over the mesh instead of a password, and takes as "as it is". */
const WITHHELD = 'sekrit'

/** The secrets of a section that the node did not send, by path: it cannot be verified whether they were changed. */
export function listWithheld(section: string, values: ReadonlyMap<string, unknown>): ReadonlySet<string> {
  if (section === 'security') return new Set(['privateKey'])
  return new Set(['wifiPsk', 'password'].filter((path) => values.get(path) === WITHHELD))
}
