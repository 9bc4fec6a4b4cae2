import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { listFlags } from './flags.ts'
import type { FIELD_TYPES, RISKS } from './kinds.ts'
import { SECTION_SCHEMAS } from './sections.ts'
import { ModuleConfig_MeshBeaconConfig_FlagsSchema } from '../gen/module_config_pb.ts'
import {
  Config_NetworkConfig_ProtocolFlagsSchema,
  Config_PositionConfig_PositionFlagsSchema,
  Config_PowerConfig_PowerMonStateSchema,
} from '../gen/config_pb.ts'

/** Data about a field for an editor. */
export type ConfigField = {
  /** Protobuf JSON names below the section, with dots. In channels `*` stands for the index. */
  readonly path: string
  readonly type: (typeof FIELD_TYPES)[number]
  /** Whether it is a list of such values. The value of flags is a list of names anyway. */
  readonly list: boolean
  readonly options: readonly string[] | null
  /** The minimum of a number. */
  readonly min: number | null
  readonly max: number | null
  /** The maximum length of a text in bytes of UTF-8. */
  readonly maxBytes: number | null
  /** The permitted lengths of a bytes field. */
  readonly sizes: readonly number[] | null
  readonly maxItems: number | null
  /** Writable, but never shown. */
  readonly secret: boolean
  readonly readOnly: boolean
  readonly risk: (typeof RISKS)[number] | null
}

/** A field of a section, its path through the messages, and the table of its options. */
export type SectionField = ConfigField & { readonly way: readonly DescField[]; readonly enum: DescEnum | null }

type Note = Partial<Omit<ConfigField, 'path' | 'list' | 'options'>> & {
  /** The names of the bits of a number. */
  readonly flags?: DescEnum
  /** Neither shown nor written; it keeps its value. */
  readonly hidden?: true
}

const IPV4 = { type: 'ipv4', risk: 'link' } as const satisfies Note
const KEY = { sizes: [32] } as const satisfies Note
const MESH = { risk: 'mesh' } as const satisfies Note
const BYTE = { max: 255 } as const satisfies Note
const BEACON_KEY = { secret: true, sizes: [0, 1, 16, 32] } as const satisfies Note
const LINK = { risk: 'link' } as const satisfies Note

// Lengths and counts are those that fit the firmware (its nanopb sizes, less the final NUL of a text). A message with
// anything larger is lost.
const NOTES: Readonly<Record<string, Note>> = {
  'owner.id': { hidden: true },
  'owner.macaddr': { hidden: true },
  'owner.hwModel': { hidden: true },
  'owner.role': { hidden: true },
  'owner.publicKey': { hidden: true },
  'owner.longName': { maxBytes: 39 },
  'owner.shortName': { maxBytes: 4 },
  // A licensed operator may not encrypt: the radio drops its keys.
  'owner.isLicensed': { risk: 'region' },
  'channels.*.index': { readOnly: true, min: 0, max: 7 },
  'channels.*.role': MESH,
  'channels.*.settings.id': { hidden: true },
  'channels.*.settings.psk': { secret: true, sizes: [0, 1, 16, 32], risk: 'mesh' },
  'channels.*.settings.name': { maxBytes: 11, risk: 'mesh' },
  'channels.*.settings.moduleSettings.positionPrecision': { max: 32 },
  'device.role': MESH,
  'device.tzdef': { maxBytes: 64 },
  'position.positionFlags': { flags: Config_PositionConfig_PositionFlagsSchema },
  // Switches Wi-Fi off on some hardware.
  'power.isPowerSaving': LINK,
  'power.powermonEnables': { flags: Config_PowerConfig_PowerMonStateSchema },
  'network.wifiEnabled': LINK,
  'network.wifiSsid': { maxBytes: 32, risk: 'link' },
  'network.wifiPsk': { secret: true, maxBytes: 64, risk: 'link' },
  'network.ethEnabled': LINK,
  'network.addressMode': LINK,
  'network.ntpServer': { maxBytes: 32 },
  'network.rsyslogServer': { maxBytes: 32 },
  'network.enabledProtocols': { flags: Config_NetworkConfig_ProtocolFlagsSchema },
  'network.ipv4Config.ip': IPV4,
  'network.ipv4Config.gateway': IPV4,
  'network.ipv4Config.subnet': IPV4,
  'network.ipv4Config.dns': IPV4,
  'network.ipv6Enabled': LINK,
  'lora.usePreset': MESH,
  'lora.modemPreset': MESH,
  'lora.bandwidth': { risk: 'mesh', max: 65_535 },
  'lora.spreadFactor': { risk: 'mesh', max: 12 },
  'lora.codingRate': { risk: 'mesh', max: 8 },
  'lora.frequencyOffset': { risk: 'region' },
  'lora.region': { risk: 'region' },
  'lora.hopLimit': { max: 7 },
  'lora.txEnabled': MESH,
  'lora.txPower': { risk: 'region', min: -128, max: 127 },
  'lora.channelNum': { risk: 'mesh', max: 65_535 },
  'lora.overrideDutyCycle': { risk: 'region' },
  'lora.overrideFrequency': { risk: 'region' },
  'lora.ignoreIncoming': { maxItems: 3 },
  // Some hardware has either Bluetooth or Wi-Fi.
  'bluetooth.enabled': LINK,
  // Without a PIN, anybody nearby can read everything, including secrets.
  'bluetooth.mode': { risk: 'access' },
  'bluetooth.fixedPin': { secret: true, max: 999_999 },
  // The radio derives it from the private key.
  'security.publicKey': { ...KEY, readOnly: true },
  'security.privateKey': { ...KEY, secret: true, risk: 'access' },
  'security.adminKey': { ...KEY, maxItems: 3, risk: 'access' },
  'security.isManaged': { risk: 'access' },
  'security.adminChannelEnabled': { risk: 'access' },
  // A strict radio drops packets of older nodes.
  'security.packetSignaturePolicy': MESH,
  'mqtt.address': { maxBytes: 63 },
  'mqtt.username': { maxBytes: 63 },
  'mqtt.password': { secret: true, maxBytes: 31 },
  'mqtt.root': { maxBytes: 31 },
  'mqtt.mapReportSettings.positionPrecision': { max: 32 },
  'power.deviceBatteryInaAddress': BYTE,
  'externalNotification.outputVibra': BYTE,
  'externalNotification.outputBuzzer': BYTE,
  'externalNotification.nagTimeout': { max: 65_535 },
  'audio.pttPin': BYTE,
  'audio.i2sWs': BYTE,
  'audio.i2sSd': BYTE,
  'audio.i2sDin': BYTE,
  'audio.i2sSck': BYTE,
  'ambientLighting.current': BYTE,
  'ambientLighting.red': BYTE,
  'ambientLighting.green': BYTE,
  'ambientLighting.blue': BYTE,
  'detectionSensor.monitorPin': BYTE,
  'cannedMessage.allowInputSource': { maxBytes: 15 },
  'detectionSensor.name': { maxBytes: 19 },
  'statusmessage.nodeStatus': { maxBytes: 79 },
  'meshBeacon.flags': { flags: ModuleConfig_MeshBeaconConfig_FlagsSchema },
  'meshBeacon.broadcastOnRegion': { risk: 'region' },
  'meshBeacon.broadcastMessage': { maxBytes: 100 },
  'meshBeacon.broadcastOfferChannel.psk': BEACON_KEY,
  'meshBeacon.broadcastOfferChannel.name': { maxBytes: 11 },
  'meshBeacon.broadcastOfferChannel.id': { hidden: true },
  'meshBeacon.broadcastOfferChannel.moduleSettings.positionPrecision': { max: 32 },
  'meshBeacon.broadcastOnChannel.psk': BEACON_KEY,
  'meshBeacon.broadcastOnChannel.name': { maxBytes: 11 },
  'meshBeacon.broadcastOnChannel.id': { hidden: true },
  'meshBeacon.broadcastOnChannel.moduleSettings.positionPrecision': { max: 32 },
}

/** The limit for text or bytes without another known limit, because an admin message must fit in one packet. */
const MAX_BYTES = 200
const MAX_ITEMS = 16
const MAX_U32 = 0xffffffff

const known = new Map<string, readonly SectionField[]>()

/** The fields of a section that are shown or written; none for an unknown section. */
export function listFields(section: string): readonly SectionField[] {
  const found = known.get(section)
  if (found !== undefined) return found
  const { schema, kind } = SECTION_SCHEMAS.get(section) ?? { schema: null, kind: null }
  const prefix = kind === 'channels' ? 'channels.*.' : ''
  const fields = schema === null ? [] : walk(schema, kind === 'channels' ? '' : `${section}.`, prefix, [])
  known.set(section, fields)
  return fields
}

/** `way`: the fields from the section down to `schema`. */
function walk(schema: DescMessage, section: string, prefix: string, way: readonly DescField[]): SectionField[] {
  return schema.fields.flatMap((field) => {
    const path = `${prefix}${field.jsonName}`
    const steps = [...way, field]
    if (field.fieldKind === 'message') return walk(field.message, section, `${path}.`, steps)
    const note = NOTES[`${section}${path}`] ?? {}
    return note.hidden === true || field.fieldKind === 'map' || field.message !== undefined
      ? []
      : [describeField(field, path, steps, note)]
  })
}

function describeField(field: DescField, path: string, way: readonly DescField[], note: Note): SectionField {
  const { hidden: _hidden, flags, ...shown } = note
  const list = field.fieldKind === 'list'
  const { type, min, max } = flags === undefined ? typeOf(field) : FLAGS
  const isSized = type === 'string' || type === 'bytes'
  return {
    path,
    type,
    list,
    options: flags === undefined ? (field.enum?.values.map(({ name }) => name) ?? null) : listFlags(flags),
    min,
    max,
    maxBytes: isSized ? MAX_BYTES : null,
    sizes: null,
    maxItems: list ? MAX_ITEMS : null,
    secret: false,
    readOnly: false,
    risk: null,
    ...shown,
    ...(shown.sizes === undefined ? {} : { maxBytes: null }),
    way,
    enum: flags ?? field.enum ?? null,
  }
}

type Bounds = Pick<ConfigField, 'type' | 'min' | 'max'>

const FLAGS: Bounds = { type: 'flags', min: null, max: null }

function typeOf({ name, enum: options, scalar }: DescField): Bounds {
  if (options !== undefined) return { type: 'enum', min: null, max: null }
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: 'boolean', min: null, max: null }
    case ScalarType.STRING:
      return { type: 'string', min: null, max: null }
    case ScalarType.BYTES:
      return { type: 'bytes', min: null, max: null }
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { type: 'number', min: null, max: null }
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: 'integer', min: -0x80000000, max: 0x7fffffff }
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: 'integer', min: 0, max: MAX_U32 }
    default:
      // 64-bit numbers exceed a JSON number; those in the table are flags.
      throw new Error(`no way to edit ${name}`)
  }
}
