import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DescEnum, DescField, DescFile, DescMessage } from '@bufbuild/protobuf'
import { build, type PluginOption } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const GENERATED = join(ROOT, 'src/meshtastic/gen')
const NAMES = readdirSync(GENERATED).map((file) => file.replace(/_pb\.ts$/, ''))
const ENTRY = 'all-descriptors'

/** The generated modules, built by the plugins of the worker into one file. */
async function buildDescriptors(): Promise<Record<string, DescFile>> {
  const all = NAMES.map((name) => `export { file_${name} } from ${JSON.stringify(join(GENERATED, `${name}_pb.ts`))}`)
  const plugins: PluginOption[] = Object(await import(join(ROOT, 'scripts/worker-plugins.js'))).workerPlugins(ROOT)
  const built = await build({
    configFile: false,
    logLevel: 'error',
    plugins: [
      {
        name: ENTRY,
        resolveId: (id) => (id === ENTRY ? id : null),
        load: (id) => (id === ENTRY ? all.join('\n') : null),
      },
      ...plugins,
    ],
    ssr: { target: 'webworker', noExternal: true },
    build: { ssr: true, write: false, rolldownOptions: { input: ENTRY } },
  })
  const [first] = [built].flat().filter((each) => 'output' in each)
  const chunk = first?.output[0]
  const code = chunk !== undefined && 'code' in chunk ? chunk.code : ''
  // Without the descriptors that the decoder has for itself, and without binary ones.
  expect(code).not.toContain('descriptor.proto')
  return import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
}

function describeEnum({ typeName, open, values, sharedPrefix }: DescEnum) {
  return {
    typeName,
    open,
    sharedPrefix,
    values: values.map(({ name, localName, number }) => [name, localName, number]),
  }
}

function describeField(field: DescField) {
  const { name, localName, jsonName, number, fieldKind, scalar, presence, oneof } = field
  const more = Object.entries(field).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
  const types = [field.message?.typeName, field.enum?.typeName, oneof?.localName]
  const initial = field.fieldKind === 'scalar' || field.fieldKind === 'enum' ? field.getDefaultValue() : undefined
  return { name, localName, jsonName, number, fieldKind, scalar, presence, types, initial, more }
}

function describeMessage(message: DescMessage): unknown {
  const { typeName, fields, oneofs, members, nestedEnums, nestedMessages } = message
  return {
    typeName,
    fields: fields.map(describeField),
    oneofs: oneofs.map(({ localName, fields: parts }) => [localName, parts.map(({ name }) => name)]),
    members: members.map(({ kind, name }) => [kind, name]),
    nestedEnums: nestedEnums.map(describeEnum),
    nestedMessages: nestedMessages.map(describeMessage),
  }
}

/** What a radio says to its app alone: the worker refuses it unread, so it knows only the names. */
const TO_THE_APP =
  /^mesh\.(?:ClientNotification|FileInfo|Heartbeat|LoRaPresetGroup|LoRaRegionPreset\w+|Lockdown\w+|LogRecord|Mqtt\w+|QueueStatus)$/

function describeFile({ name, edition, dependencies, enums, messages }: DescFile) {
  return {
    name,
    edition,
    dependencies: dependencies.map((file) => file.name),
    enums: enums.map(describeEnum),
    messages: messages.map((each) => (TO_THE_APP.test(each.typeName) ? each.typeName : describeMessage(each))),
  }
}

/** Files of radio settings: the worker refuses them unread, so it knows only the names of messages and these enums. */
const SETTINGS: ReadonlySet<string> = new Set(['config', 'module_config', 'device_ui'])
const USED_ENUMS: ReadonlySet<string> = new Set([
  'mesh.Config.DeviceConfig.Role',
  'mesh.Config.LoRaConfig.ModemPreset',
  'mesh.Config.LoRaConfig.RegionCode',
])

function listMessages(messages: readonly DescMessage[]): DescMessage[] {
  return messages.flatMap((message) => [message, ...listMessages(message.nestedMessages)])
}

function describeSettings({ messages }: DescFile) {
  const all = listMessages(messages)
  const enums = all.flatMap(({ nestedEnums }) => nestedEnums)
  return {
    messages: all.map(({ typeName }) => typeName),
    enums: enums.map(({ typeName }) => typeName),
    used: enums.filter(({ typeName }) => USED_ENUMS.has(typeName)).map(describeEnum),
  }
}

test('the descriptors of the worker equal those that protoc generated, less the fields of settings', async () => {
  const built = await buildDescriptors()
  for (const name of NAMES) {
    const made: Record<string, DescFile> = await import(join(GENERATED, `${name}_pb.ts`))
    const [original, ofWorker] = [made[`file_${name}`], built[`file_${name}`]]
    if (original === undefined || ofWorker === undefined) throw new Error(`no descriptor of ${name}`)
    if (SETTINGS.has(name)) {
      expect(describeSettings(ofWorker), name).toStrictEqual(describeSettings(original))
      expect(listMessages(ofWorker.messages).flatMap(({ fields }) => fields)).toEqual([])
    } else expect(describeFile(ofWorker), name).toStrictEqual(describeFile(original))
  }
  expect(NAMES.length).toBeGreaterThan(10)
})
