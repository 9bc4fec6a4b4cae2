import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import type { Marks } from '../../../app/mesh/sending/app-packets.ts'
import { restoreConfig, restoreModuleConfig, redactDeviceUi } from '../../../meshtastic/config/redaction.ts'
import {
  type AdminMessage,
  AdminMessage_ConfigType as ConfigType,
  AdminMessage_ModuleConfigType as ModuleType,
  AdminMessageSchema,
} from '../../../meshtastic/gen/admin_pb.ts'
import { Channel_Role, ChannelSchema } from '../../../meshtastic/gen/channel_pb.ts'
import { type Config, ConfigSchema } from '../../../meshtastic/gen/config_pb.ts'
import { DeviceUIConfigSchema } from '../../../meshtastic/gen/device_ui_pb.ts'
import { ModuleConfigSchema } from '../../../meshtastic/gen/module_config_pb.ts'
import { Routing_Error } from '../../../meshtastic/gen/payloads_pb.ts'
import { type AdminVariant, encodeAdminBytes, readSharedContact } from '../../../meshtastic/link/admin-variants.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import type { RadioParts } from './copy.ts'
import { showRadio } from './handshake.ts'
import { showNode } from './shown.ts'
import type { Sight } from './sight.ts'

type Shares = Pick<VirtualNodeOptions, 'sharesChannelKeys'>

/** The answer to a `get` out of the copy; null: there is no such section or channel. */
export function answerFromCopy(
  variant: AdminVariant,
  parts: RadioParts,
  sight: Sight,
  options: Shares,
): Uint8Array | null {
  const radio = showRadio(parts, sight, options)
  const own = parts.myInfo.myNodeNum
  switch (variant.number) {
    case 1: {
      // Counted from 1, because 0 would be no request.
      const slot = (variant.value ?? 0) - 1
      if (slot < 0 || slot >= RADIO_CHANNELS) return null
      return encode({ case: 'getChannelResponse', value: radio.channel(slot) })
    }
    case 3: {
      const node = parts.nodes.get(own)
      const user = node === undefined ? undefined : showNode(node, sight, own)?.user
      return user === undefined ? null : encode({ case: 'getOwnerResponse', value: user })
    }
    case 5: {
      const config = radio.config(CONFIG_SECTIONS.get(variant.value ?? 0) ?? '')
      return config === null ? null : encode({ case: 'getConfigResponse', value: config })
    }
    case 7: {
      const config = radio.module(MODULE_SECTIONS.get(variant.value ?? 0) ?? '')
      return config === null ? null : encode({ case: 'getModuleConfigResponse', value: config })
    }
    case 12:
      return parts.metadata === null ? null : encode({ case: 'getDeviceMetadataResponse', value: parts.metadata })
    case 44:
      if (parts.deviceUi === null) return null
      return encodeAdminBytes(45, toBinary(DeviceUIConfigSchema, redactDeviceUi(parts.deviceUi)))
    default:
      return null
  }
}

type Variant = NonNullable<Exclude<MessageInitShape<typeof AdminMessageSchema>, AdminMessage>['payloadVariant']>

function encode(payloadVariant: Variant): Uint8Array {
  return toBinary(AdminMessageSchema, create(AdminMessageSchema, { payloadVariant }))
}

const CONFIG_SECTIONS: ReadonlyMap<number, string> = new Map([
  [ConfigType.DEVICE_CONFIG, 'device'],
  [ConfigType.POSITION_CONFIG, 'position'],
  [ConfigType.POWER_CONFIG, 'power'],
  [ConfigType.NETWORK_CONFIG, 'network'],
  [ConfigType.DISPLAY_CONFIG, 'display'],
  [ConfigType.LORA_CONFIG, 'lora'],
  [ConfigType.BLUETOOTH_CONFIG, 'bluetooth'],
  [ConfigType.SECURITY_CONFIG, 'security'],
  [ConfigType.SESSIONKEY_CONFIG, 'sessionkey'],
  [ConfigType.DEVICEUI_CONFIG, 'deviceUi'],
])

const MODULE_SECTIONS: ReadonlyMap<number, string> = new Map([
  [ModuleType.MQTT_CONFIG, 'mqtt'],
  [ModuleType.SERIAL_CONFIG, 'serial'],
  [ModuleType.EXTNOTIF_CONFIG, 'externalNotification'],
  [ModuleType.STOREFORWARD_CONFIG, 'storeForward'],
  [ModuleType.RANGETEST_CONFIG, 'rangeTest'],
  [ModuleType.TELEMETRY_CONFIG, 'telemetry'],
  [ModuleType.CANNEDMSG_CONFIG, 'cannedMessage'],
  [ModuleType.AUDIO_CONFIG, 'audio'],
  [ModuleType.REMOTEHARDWARE_CONFIG, 'remoteHardware'],
  [ModuleType.NEIGHBORINFO_CONFIG, 'neighborInfo'],
  [ModuleType.AMBIENTLIGHTING_CONFIG, 'ambientLighting'],
  [ModuleType.DETECTIONSENSOR_CONFIG, 'detectionSensor'],
  [ModuleType.PAXCOUNTER_CONFIG, 'paxcounter'],
  [ModuleType.STATUSMESSAGE_CONFIG, 'statusmessage'],
  [ModuleType.TRAFFICMANAGEMENT_CONFIG, 'trafficManagement'],
  [ModuleType.TAK_CONFIG, 'tak'],
  [ModuleType.MESHBEACON_CONFIG, 'meshBeacon'],
])

/** What is passed to the radio, or why not. */
export type Prepared = { readonly ok: true; readonly payload: Uint8Array; readonly what: string | null } | Unprepared

type Unprepared = {
  readonly ok: false
  readonly error: Routing_Error
  readonly why: string
  readonly what: string | null
}

/** Sections with keys and passwords: an app without them would write back made-up ones. */
const WITH_KEYS: ReadonlySet<string> = new Set(['security', 'network', 'mqtt', 'meshBeacon'])
const NEVER: ReadonlySet<string> = new Set(['sessionkey', 'deviceUi'])
const NO_KEYS = 'this port does not share keys, so an app would write made-up ones'
const NOT_GIVEN = 'it would replace a secret that apps do not get, or send it elsewhere'

/** A write as the radio gets it: secrets that the app got masked are those of the radio. Pure. */
export function prepareWrite(
  variant: AdminVariant,
  payload: Uint8Array,
  parts: RadioParts,
  sight: Sight,
  { sharesChannelKeys }: Shares,
): Prepared {
  switch (variant.number) {
    case 33: {
      const channel = decode(ChannelSchema, variant.bytes)
      if (channel === null || channel.index < 0 || channel.index >= RADIO_CHANNELS) return badRequest('no such channel')
      const what = `channel ${channel.index}`
      if (!sharesChannelKeys) return notAllowed(NO_KEYS, what)
      const before = parts.channels.get(channel.index)
      const isUsed = before !== undefined && before.role !== Channel_Role.DISABLED
      if (isUsed && !sight.canReadSlot(channel.index))
        return notAllowed('the user of this port may not read that channel', what)
      return { ok: true, payload, what }
    }
    case 34: {
      const config = decode(ConfigSchema, variant.bytes)
      const section = config?.payloadVariant.case
      if (config === null || section === undefined || NEVER.has(section)) return badRequest('no such section')
      if (WITH_KEYS.has(section) && !sharesChannelKeys) return notAllowed(NO_KEYS, section)
      const value = restoreConfig(config, parts.configs.get(section))
      if (value === null) return notAllowed(NOT_GIVEN, section)
      restoreIgnored(value, parts.configs.get(section), sight)
      return { ok: true, payload: encode({ case: 'setConfig', value }), what: section }
    }
    case 35: {
      const config = decode(ModuleConfigSchema, variant.bytes)
      const section = config?.payloadVariant.case
      if (config === null || section === undefined) return badRequest('no such section')
      if (WITH_KEYS.has(section) && !sharesChannelKeys) return notAllowed(NO_KEYS, section)
      const value = restoreModuleConfig(config, parts.modules.get(section))
      if (value === null) return notAllowed(NOT_GIVEN, section)
      return { ok: true, payload: encode({ case: 'setModuleConfig', value }), what: section }
    }
    default:
      return { ok: true, payload, what: null }
  }
}

/** The most nodes that firmware ignores in the LoRa section (config.options). */
const MAX_IGNORED = 3

/** Puts the ignored nodes back that the app did not get, because they are hidden from it. */
function restoreIgnored({ payloadVariant: written }: Config, before: Config | undefined, sight: Sight): void {
  const had = before?.payloadVariant
  if (written.case !== 'lora' || had?.case !== 'lora') return
  const kept = had.value.ignoreIncoming.filter((nodeNum) => !sight.seesNode(nodeNum))
  if (kept.length === 0) return
  written.value.ignoreIncoming = [...new Set([...kept, ...written.value.ignoreIncoming])].slice(0, MAX_IGNORED)
}

/**
 * Why a contact is not taken; null: the radio has this node with this key. Nothing is left to do then, because a radio
 * would take names and marks from it, too. Pure.
 */
export function refuseContact(variant: AdminVariant, parts: RadioParts, sight: Sight): Unprepared | null {
  const contact = variant.bytes === null ? null : readSharedContact(variant.bytes)
  if (contact === null) return badRequest('it cannot be read')
  const key = parts.nodes.get(contact.nodeNum)?.info.user?.publicKey ?? new Uint8Array(0)
  const isSame =
    key.length > 0 && key.length === contact.publicKey.length && key.every((byte, at) => byte === contact.publicKey[at])
  if (!isSame || contact.shouldIgnore || !sight.seesNode(contact.nodeNum)) {
    return notAllowed('the radio has no such node with this key', null)
  }
  return null
}

/** The marks that a message sets; null: none. A radio turns the mark of a muted node over. */
export function marksOf({ number, value }: AdminVariant, parts: RadioParts): Marks | null {
  const node = number === TOGGLE_MUTED ? parts.nodes.get(value ?? 0) : undefined
  return node === undefined ? (MARKS.get(number) ?? null) : { isMuted: !node.info.isMuted }
}

const TOGGLE_MUTED = 49

const MARKS: ReadonlyMap<number, Marks> = new Map<number, Marks>([
  [39, { isFavorite: true }],
  [40, { isFavorite: false }],
  [47, { isIgnored: true }],
  [48, { isIgnored: false }],
])

/** Answers of the radio that go to the app which asked: canned messages, ringtone, pins. */
export const PASSED_ANSWERS: ReadonlySet<number> = new Set([11, 15, 20])

function decode<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array | null): MessageShape<Desc> | null {
  try {
    return bytes === null ? null : fromBinary(schema, bytes)
  } catch {
    return null
  }
}

function notAllowed(why: string, what: string | null): Unprepared {
  return { ok: false, error: Routing_Error.NOT_AUTHORIZED, why, what }
}

function badRequest(why: string): Unprepared {
  return { ok: false, error: Routing_Error.BAD_REQUEST, why, what: null }
}
