// The descriptors of Meshtastic in the worker.
import { fromBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'

/** Files whose messages are settings of a radio: a delivery with one is refused before anything reads its fields. */
const SETTINGS_FILES = /\/src\/meshtastic\/gen\/(?:config|module_config|device_ui)_pb\.ts$/
/** What other messages use of these files. */
const SETTINGS_ENUMS = new Set(['Role', 'ModemPreset', 'RegionCode'])
/** Refused in the same way: what a radio says to its app alone. */
const TO_THE_APP = new Set([
  'ClientNotification',
  'FileInfo',
  'Heartbeat',
  'LoRaPresetGroup',
  'LoRaRegionPresetMap',
  'LoRaRegionPresets',
  'LockdownStatus',
  'LogRecord',
  'MqttClientProxyMessage',
  'QueueStatus',
])

/** The same names at the same places, without fields and without the values of other enums. */
function withoutFields({ name, nestedType = [], enumType = [] }) {
  return { name, nestedType: nestedType.map(withoutFields), enumType: enumType.map(withoutValues) }
}

function withoutValues(made) {
  return SETTINGS_ENUMS.has(made.name) ? made : { name: made.name, value: made.value.slice(0, 1) }
}

/** Fails the build if the worker uses a descriptor that `withoutFields` emptied. */
function refuseEmptied(chunks) {
  for (const { modules } of Object.values(chunks)) {
    for (const [id, { renderedExports }] of Object.entries(modules ?? {})) {
      if (!SETTINGS_FILES.test(id)) continue
      const used = renderedExports.find(
        (name) => name.endsWith('Schema') && !SETTINGS_ENUMS.has(/_([A-Za-z]+)Schema$/.exec(name)?.[1]),
      )
      if (used !== undefined) throw new Error(`${used} has no fields in the worker: see SETTINGS_FILES`)
    }
  }
}

/**
 * The descriptors of Meshtastic as objects instead of bytes in Base64. Nothing reads descriptors as messages, so
 * descriptor.proto itself is left out, and the compression sees their names.
 */
export function readableDescriptors() {
  return {
    name: 'readable-descriptors',
    enforce: 'pre',
    load: (id) => (id.endsWith('/@bufbuild/protobuf/dist/esm/codegenv2/file.js') ? FILE_DESCRIPTORS : null),
    transform(code, id) {
      if (!id.includes('/src/meshtastic/gen/')) return null
      const object = (_, base64) => {
        const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, 'base64'))
        const plain = plainDescriptor(file)
        const isUnread = ({ name }) => SETTINGS_FILES.test(id) || TO_THE_APP.has(name)
        const messageType = plain.messageType?.map((each) => (isUnread(each) ? withoutFields(each) : each))
        return `fileDesc(${JSON.stringify({ ...plain, messageType })}`
      }
      return { code: code.replace(/fileDesc\("([^"]+)"/, object), map: null }
    },
    generateBundle: (_, chunks) => refuseEmptied(chunks),
  }
}

/** The fields that are set in a descriptor and used by the registry. */
function plainDescriptor(message) {
  if (message.$unknown?.length > 0) throw new Error(`unknown options in ${message.$typeName}`)
  const isSet = ([name, value]) =>
    !/^(?:\$.*|dependency|reserved\w+|extensionRange)$/.test(name) && value !== undefined && value.length !== 0
  const plain = (value) => {
    if (Array.isArray(value)) return value.map(plain)
    return typeof value === 'object' ? plainDescriptor(value) : value
  }
  const made = Object.fromEntries(
    Object.entries(message)
      .filter(isSet)
      .map(([name, value]) => [name, plain(value)]),
  )
  if (made.field !== undefined) shorten(made)
  if (made.value !== undefined) made.value = withoutCounts(made.value, 0)
  return made
}

/** Leaves out what \`message\` in FILE_DESCRIPTORS derives: labels, counts, and the group that an optional field has. */
function shorten(made) {
  const groups = made.oneofDecl ?? []
  const optional = made.field.filter(({ proto3Optional }) => proto3Optional)
  made.oneofDecl = groups.slice(0, groups.length - optional.length)
  if (made.oneofDecl.length === 0) delete made.oneofDecl
  made.field = withoutCounts(made.field, 1).map(({ label, oneofIndex, ...field }) => ({
    ...field,
    ...(label !== 1 && { label }),
    ...(oneofIndex !== undefined && !field.proto3Optional && { oneofIndex }),
  }))
}

/** Leaves out numbers that are one more than the one before. */
function withoutCounts(list, first) {
  return list.map(({ number, ...rest }, at) =>
    number === (at === 0 ? first : list[at - 1].number + 1) ? rest : { ...rest, number },
  )
}

/** The original, which decodes bytes, adds the same defaults in the prototypes of messages. */
const FILE_DESCRIPTORS = `
import { createEmbeddedFileRegistry } from '../registry.js'
import { restoreJsonNames } from './restore-json-names.js'
const FEATURES = { fieldPresence: 0, enumType: 0, repeatedFieldEncoding: 0, utf8Validation: 0, messageEncoding: 0 }
const FILE = { $typeName: 'google.protobuf.FileDescriptorProto', syntax: '', edition: 0, package: '', messageType: [],
  enumType: [], extension: [], service: [] }
const MESSAGE = { field: [], nestedType: [], enumType: [], oneofDecl: [], extension: [] }
const FIELD = { label: 1, typeName: '', defaultValue: '', oneofIndex: 0, jsonName: '', proto3Optional: false }
const withDefaults = (defaults, given) => {
  const { options } = given
  if (options?.features !== undefined) options.features = { ...FEATURES, ...options.features }
  return Object.assign(Object.create(defaults), given)
}
const counted = (list, first) => {
  let next = first
  return list.map((each) => {
    const { number = next } = each
    next = number + 1
    return { ...each, number }
  })
}
const enumeration = (given) => withDefaults({}, { ...given, value: counted(given.value, 0) })
const message = (given) => {
  const made = withDefaults(MESSAGE, given)
  const oneofs = [...made.oneofDecl]
  made.field = counted(made.field, 1).map((each) => {
    if (each.proto3Optional) each.oneofIndex = oneofs.push({ name: '_' + each.name }) - 1
    return withDefaults(FIELD, each)
  })
  made.oneofDecl = oneofs
  made.nestedType = made.nestedType.map(message)
  made.enumType = made.enumType.map(enumeration)
  return made
}
export function fileDesc(given, imports = []) {
  const root = withDefaults(FILE, given)
  root.messageType = root.messageType.map(message)
  root.enumType = root.enumType.map(enumeration)
  root.messageType.forEach(restoreJsonNames)
  root.dependency = imports.map((file) => file.proto.name)
  return createEmbeddedFileRegistry(root, (name) => imports.find((file) => file.proto.name === name)).getFile(root.name)
}
`
