import { type DescMessage, type JsonObject, type Message, toJson } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import { listFields } from './fields.ts'
import { type Config, ConfigSchema } from '../gen/config_pb.ts'
import { type ModuleConfig, ModuleConfigSchema } from '../gen/module_config_pb.ts'

/** One section of a radio's settings, without its secrets: only which of them are set. */
export type SettingsSection = {
  /** E.g. `lora`, `mqtt`. */
  readonly section: string
  readonly kind: 'config' | 'moduleConfig'
  /** Protobuf JSON with defaults filled in. Fields newer than our table are left out: one might be a secret. */
  readonly values: JsonObject
  readonly secretsSet: readonly string[]
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
