// Plugins for the build of the worker that leave out code which it never runs.
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { parseSync } from 'vite'
import { noCertificates, withoutCertificates } from './certificates.js'
import { replaceExports } from './exports.js'

/** The name under which `withoutDescriptions` imports zod, so that unused schemas are left out. */
export const SCHEMAS = '$schemas'

export function workerPlugins(root) {
  return [
    withoutAttestations(root),
    withoutApiDocuments(root),
    withoutProxySignIn(root),
    withoutRestore(root),
    withoutPorts(),
    withoutDescriptions(),
    withoutTextFormats(),
    withoutGeneratedCode(),
    withoutRelations(),
    onlyNextRuns(),
    readableDescriptors(),
  ]
}

function withoutAttestations(root) {
  return {
    name: 'without-attestations',
    enforce: 'pre',
    resolveId: (id) => noCertificates(root, id),
    load: withoutCertificates,
  }
}

/** The API document is a file beside the worker; nothing else needs JSON schemas from zod. No input is recursive. */
function withoutApiDocuments(root) {
  const routes = join(root, 'src/app/http/openapi/routes.ts')
  const files = join(root, 'src/edge/api-documents.ts')
  return {
    name: 'without-api-documents',
    enforce: 'pre',
    load(id) {
      if (id === routes) return `export { docsRoutes } from ${JSON.stringify(files)}`
      return /zod\/v4\/core\/(?:json-schema-processors|memoizer|to-json-schema)\.js$/.test(id)
        ? replaceExports(id, '() => undefined')
        : null
    },
  }
}

/** No proxy is trusted on the edge, and PROXY_AUTH_HEADER is refused there. */
function withoutProxySignIn(root) {
  const file = join(root, 'src/app/accounts/proxy.ts')
  const code = "import { Hono } from 'hono'\nexport const proxyRoutes = new Hono()"
  return { name: 'without-proxy-sign-in', enforce: 'pre', load: (id) => (id === file ? code : null) }
}

/** Only the Node service restores backups: there is never a list of what a restore revived. */
function withoutRestore(root) {
  const file = join(root, 'src/app/system/revived.ts')
  const code = `export * from ${JSON.stringify(join(root, 'src/edge/no-restore.ts'))}`
  return { name: 'without-restore', enforce: 'pre', load: (id) => (id === file ? code : null) }
}

/** The ports of `NO_PORTS` that src/edge/worker.ts does not replace: disks and sockets. */
const ABSENT = new Set([
  'backups',
  'radio',
  'events',
  'meter',
  'compressor',
  'mail',
  'mapArchive',
  'clockWatch',
  'disk',
])
const HOLDERS = new Set(['ctx', 'ports', 'c.var.ctx', "c.get('ctx')"])

/** Checks for a port that the edge never has always give the same answer: code that needs the port is left out. */
function withoutPorts() {
  return {
    name: 'without-ports',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/src\/app\/.*\.ts$/.test(id)) return null
      const textOf = ({ start, end }) => code.slice(start, end)
      const isPort = (node) =>
        node?.type === 'MemberExpression' && ABSENT.has(node.property.name) && HOLDERS.has(textOf(node.object))
      // It throws, so nothing after it runs.
      const isDemand = (node) => node?.type === 'CallExpression' && /^demand(?:Backups|Events)$/.test(node.callee.name)
      const cuts = []
      each(parseSync(id, code).program, (node) => {
        if (isPort(node)) cuts.push([node.start, node.end, 'null'])
        if (node.type === 'ChainExpression' && isPort(firstLink(node.expression)))
          cuts.push([node.start, node.end, 'undefined'])
        if (node.type === 'CallExpression' && isDemand(node.callee.object))
          cuts.push([node.callee.object.end, node.end, ''])
        if (node.type === 'BlockStatement') {
          const at = node.body.findIndex((one) => isDemand(one.expression) || isDemand(one.declarations?.[0]?.init))
          const [first, last] = at < 0 ? [] : [node.body[at + 1], node.body.at(-1)]
          if (first !== undefined) cuts.push([first.start, last.end, ''])
        }
      })
      return cuts.length === 0 ? null : { code: cut(code, cuts), map: null }
    },
  }
}

/** What stands before the first `?.` of a chain. */
function firstLink(node) {
  const inner = node.object ?? node.callee
  if (inner === undefined) return null
  return firstLink(inner) ?? (node.optional ? inner : null)
}

/** Only the API document reads what describes routes and fields; only migrations read a table's indexes. */
function withoutDescriptions() {
  return {
    name: 'without-descriptions',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/src\/(?:app|db|shared)\/.*\.ts$/.test(id) || id.endsWith('/http/describe.ts')) return null
      const cuts = []
      visit(parseSync(id, code).program, (call) => {
        const { callee, arguments: given } = call
        // The meaning of a variable is only for the documentation; its expected value is for the log.
        if (callee.name === 'variable' && given.length > 2) cuts.push([given[2].start, given[2].end, "''"])
        if (callee.name === 'answers') cuts.push([given[0].start, given.at(-1).end, "'', {}"])
        const about = ['describe', 'describing'].includes(callee.name) ? given.at(-1) : undefined
        // The service itself uses only this one.
        const isAsked = about !== undefined && code.slice(about.start, about.end).includes('getOnly')
        if (about?.type === 'ObjectExpression' && !isAsked) cuts.push([about.start, about.end, '{}'])
        if (callee.name === 'sqliteTable' && given.length === 3) cuts.push([given[1].end, given[2].end, ''])
        if (['describe', 'meta'].includes(callee.property?.name)) cuts.push([callee.object.end, call.end, ''])
      })
      const schemas = cut(code, cuts).replace(/(?<![\w$.'"`])z(?=\s*\.[a-z]\w*\()/g, SCHEMAS)
      const isChanged = /^import \* as z from 'zod'$/m.test(code)
      return { code: isChanged ? `import * as ${SCHEMAS} from 'zod'\n${schemas}` : cut(code, cuts), map: null }
    },
  }
}

function visit(node, onCall) {
  each(node, (one) => {
    if (one.type === 'CallExpression') onCall(one)
  })
}

function each(node, onNode) {
  if (Array.isArray(node)) for (const one of node) each(one, onNode)
  else if (typeof node === 'object' && node !== null) {
    if (typeof node.type === 'string') onNode(node)
    for (const one of Object.values(node)) each(one, onNode)
  }
}

/** Replaces ranges, from the end to the beginning; a range within another one is replaced with it. */
function cut(code, ranges) {
  const outer = ranges.filter(([from, to]) => !ranges.some(([a, b]) => a <= from && to <= b && b - a > to - from))
  return outer
    .toSorted(([a], [b]) => b - a)
    .reduce((text, [from, to, instead]) => text.slice(0, from) + instead + text.slice(to), code)
}

/** Every string of zod has methods for e-mail addresses and two dozen more, which nobody calls. */
function withoutTextFormats() {
  const method = /^ {4}\w+\(params\) \{\n {8}return this\.check\(core\._\w+\(Zod\w+, params\)\);\n {4}\},\n/gm
  return {
    name: 'without-text-formats',
    transform: (code, id) =>
      id.endsWith('/zod/v4/classic/schemas.js') ? { code: code.replace(method, ''), map: null } : null,
  }
}

/** On workerd zod generates no code for objects, because code from strings is forbidden there. */
function withoutGeneratedCode() {
  return {
    name: 'without-generated-code',
    transform: (code, id) =>
      id.endsWith('/zod/v4/classic/schemas.js')
        ? { code: code.replace('core.$ZodObjectJIT.init', 'core.$ZodObject.init'), map: null }
        : null,
  }
}

/** Relational queries, which the service does not use. */
function withoutRelations() {
  return {
    name: 'without-relations',
    enforce: 'pre',
    load: (id) =>
      /drizzle-orm\/(?:relations|sqlite-core\/query-builders\/query)\.js$/.test(id)
        ? replaceExports(id, 'class {}')
        : null,
    transform(code, id) {
      if (!id.endsWith('/drizzle-orm/sqlite-core/dialect.js')) return null
      const dialect = parseSync(id, code).program.body.find(({ id: name }) => name?.name === 'SQLiteDialect')
      const methods = dialect.body.body.filter(({ key }) => key.name === 'buildRelationalQuery')
      return {
        code: cut(
          code,
          methods.map(({ start, end }) => [start, end, '']),
        ),
        map: null,
      }
    },
  }
}

/** The service asks croner only for the next time of a pattern; its timers and past times are left out. */
function onlyNextRuns() {
  return {
    name: 'only-next-runs',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('/croner/dist/croner.js')) return null
      const methods = []
      const collect = (node) => {
        if (Array.isArray(node)) for (const each of node) collect(each)
        else if (typeof node === 'object' && node !== null) {
          if (node.type === 'MethodDefinition' && !node.computed && node.kind === 'method') methods.push(node)
          for (const each of Object.values(node)) collect(each)
        }
      }
      collect(parseSync(id, code).program)
      // A method is kept if kept code contains its name.
      const words = (text) => new Set(text.match(/[A-Za-z_$][\w$]*/g))
      const rangeOf = ({ start, end }) => [start, end, '']
      const used = words(`nextRun ${cut(code, methods.map(rangeOf))}`)
      const rest = new Set(methods)
      for (let found = methods; found.length > 0;) {
        found = [...rest].filter(({ key }) => used.has(key.name))
        for (const one of found) {
          rest.delete(one)
          for (const word of words(code.slice(one.start, one.end))) used.add(word)
        }
      }
      return { code: cut(code, [...rest].map(rangeOf)), map: null }
    },
  }
}

/**
 * The descriptors of Meshtastic as objects instead of bytes in Base64. Nothing reads descriptors as messages, so
 * descriptor.proto itself is left out, and the compression sees their names.
 */
function readableDescriptors() {
  return {
    name: 'readable-descriptors',
    enforce: 'pre',
    load: (id) => (id.endsWith('/@bufbuild/protobuf/dist/esm/codegenv2/file.js') ? FILE_DESCRIPTORS : null),
    transform(code, id) {
      if (!id.includes('/src/meshtastic/gen/')) return null
      const object = (_, base64) => {
        const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, 'base64'))
        return `fileDesc(${JSON.stringify(plainDescriptor(file))}`
      }
      return { code: code.replace(/fileDesc\("([^"]+)"/, object), map: null }
    },
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
  return Object.fromEntries(
    Object.entries(message)
      .filter(isSet)
      .map(([name, value]) => [name, plain(value)]),
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
const message = (given) => {
  const made = withDefaults(MESSAGE, given)
  made.field = made.field.map((each) => withDefaults(FIELD, each))
  made.nestedType = made.nestedType.map(message)
  made.enumType = made.enumType.map((each) => withDefaults({}, each))
  return made
}
export function fileDesc(given, imports = []) {
  const root = withDefaults(FILE, given)
  root.messageType = root.messageType.map(message)
  root.enumType = root.enumType.map((each) => withDefaults({}, each))
  root.messageType.forEach(restoreJsonNames)
  root.dependency = imports.map((file) => file.proto.name)
  return createEmbeddedFileRegistry(root, (name) => imports.find((file) => file.proto.name === name)).getFile(root.name)
}
`
