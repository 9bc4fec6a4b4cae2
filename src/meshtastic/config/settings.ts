import { create, type DescMessage, type JsonObject, type Message, toJson } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import { listFields } from './fields.ts'
import type { Channel, ChannelSettings } from '../gen/channel_pb.ts'
import { Channel_RoleSchema, ChannelSettingsSchema } from '../gen/channel_pb.ts'
import { type Config, ConfigSchema } from '../gen/config_pb.ts'
import { type ModuleConfig, ModuleConfigSchema } from '../gen/module_config_pb.ts'
import { enumName } from '../enum-name.ts'

/** One section of a radio's settings, without its secrets: only which of them are set. */
export type SettingsSection = {
  /** E.g. `lora`, `mqtt`. */
  readonly section: string
  readonly kind: 'config' | 'moduleConfig'
  /** Protobuf JSON with defaults filled in. Fields newer than our table are left out: one might be a secret. */
  readonly values: JsonObject
  readonly secretsSet: readonly string[]
}

/** A slot of the channel table, without its key. */
export type ChannelInfo = {
  /** 0 to 7. */
  readonly index: number
  /** `DISABLED`, `PRIMARY`, `SECONDARY`. */
  readonly role: string
  /** Empty: the channel has the name of the modem preset. */
  readonly name: string
  /** Bytes: 0 no encryption, 1 a well-known key, 16 or 32 a private key. */
  readonly keySize: number
  readonly hasKey: boolean
  readonly uplinkEnabled: boolean
  readonly downlinkEnabled: boolean
  /** Precision in bits of positions shared on the channel: 0 none, 32 exact. */
  readonly positionPrecision: number
  /** As from `identifyChannel`; null when the channel is off or not known yet. */
  readonly identity: string | null
}

export function describeChannel(channel: Channel, identity: string | null): ChannelInfo {
  const settings: ChannelSettings = channel.settings ?? create(ChannelSettingsSchema)
  const { psk } = settings
  return {
    index: channel.index,
    role: enumName(Channel_RoleSchema, channel.role),
    name: settings.name,
    keySize: psk.length,
    // A single byte is an index into well-known keys; 0 means "none".
    hasKey: psk.length > 1 || (psk[0] ?? 0) > 0,
    uplinkEnabled: settings.uplinkEnabled,
    downlinkEnabled: settings.downlinkEnabled,
    positionPrecision: settings.moduleSettings?.positionPrecision ?? 0,
    identity,
  }
}

/** Null for a section newer than our table. */
export function describeConfig(config: Config): SettingsSection | null {
  const { case: section, value } = config.payloadVariant
  return section === undefined ? null : describeSection('config', ConfigSchema, section, value)
}

/** Null for a section newer than our table. */
export function describeModuleConfig(config: ModuleConfig): SettingsSection | null {
  const { case: section, value } = config.payloadVariant
  return section === undefined ? null : describeSection('moduleConfig', ModuleConfigSchema, section, value)
}

function describeSection(
  kind: SettingsSection['kind'],
  parent: DescMessage,
  section: string,
  value: Message,
): SettingsSection | null {
  const schema = parent.fields.find((field) => field.localName === section)?.message
  if (schema === undefined) return null
  const secrets = listFields(section).flatMap(({ secret, path }) => (secret ? [path] : []))
  const reflected = reflect(schema, value)
  const isSet = (name: string) => schema.fields.some((field) => field.localName === name && reflected.isSet(field))
  const all = toJson(schema, value, { alwaysEmitImplicit: true })
  const values = isObject(all) ? all : {}
  for (const path of secrets) remove(values, path.split('.'))
  return { section, kind, values, secretsSet: secrets.filter(isSet) }
}

function remove(values: JsonObject, [name = '', ...rest]: readonly string[]): void {
  const inner = values[name]
  if (rest.length === 0) delete values[name]
  else if (inner !== undefined && isObject(inner)) remove(inner, rest)
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
