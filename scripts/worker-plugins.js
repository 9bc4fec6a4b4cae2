// What keeps the worker small: plugins of its build, which leave out what it never runs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'

/** The name under which `withoutDescriptions` has zod imported: a schema that nobody uses is left out. */
export const SCHEMAS = '$schemas'

export function workerPlugins(root) {
  return [
    withoutAttestations(root),
    withoutApiDocuments(root),
    withoutProxySignIn(root),
    withoutRestore(root),
    withoutDescriptions(),
    withoutTextFormats(),
    withoutRelations(),
    onlyNextRuns(),
    compressibleDescriptors(),
  ]
}

const WEBAUTHN = /@simplewebauthn\/server\/esm\/(.*)\.js$/

/** Passkeys are made without an attestation, or with one by the key itself, for which nobody has a certificate. */
const CERTIFICATES = [
  /^helpers\/(?:convertX509PublicKeyToCOSE|getCertificateInfo|isCertRevoked|mapX509SignatureAlgToCOSEAlg|validateCertificatePath|validateExtFIDOGenCEAAGUID)$/,
  /^metadata\/verifyAttestationWithMetadata$/,
  /^registration\/verifications\/(?:tpm\/)?verifyAttestation(?!Packed)/,
  /^services\/metadataService$/,
]

/** Each attestation but these is refused; of certificates nothing is left. */
function withoutAttestations(root) {
  const noCertificates = join(root, 'src/edge/passkeys/no-certificates.ts')
  return {
    name: 'without-attestations',
    enforce: 'pre',
    resolveId: (id) => (/^@peculiar\/asn1-(?:ecc|schema)$/.test(id) ? noCertificates : null),
    load(id) {
      const part = WEBAUTHN.exec(id)?.[1]
      if (part === undefined) return null
      if (part.startsWith('services/defaultRootCerts/')) return replaceExports(id, "''")
      if (!CERTIFICATES.some((one) => one.test(part))) return null
      return replaceExports(id, "() => { throw new Error('certificates are not part of the worker') }")
    },
  }
}

/** The API document is a file beside the worker; nothing else asks zod for JSON schemas. No input refers to itself. */
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

/** No address of a proxy can be believed on the edge, where PROXY_AUTH_HEADER stops the start. */
function withoutProxySignIn(root) {
  const file = join(root, 'src/app/auth/proxy.ts')
  const code = "import { Hono } from 'hono'\nexport const proxyRoutes = new Hono()"
  return { name: 'without-proxy-sign-in', enforce: 'pre', load: (id) => (id === file ? code : null) }
}

/** Only the Node service restores backups: there is never a list of what a restore revived. */
function withoutRestore(root) {
  const file = join(root, 'src/app/system/revived.ts')
  const code = `export * from ${JSON.stringify(join(root, 'src/edge/no-restore.ts'))}`
  return { name: 'without-restore', enforce: 'pre', load: (id) => (id === file ? code : null) }
}

/** The same exports, each of them `value`. */
function replaceExports(file, value) {
  const code = readFileSync(file, 'utf8')
  const single = [...code.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm)].map(([, name]) => name)
  const lists = [...code.matchAll(/^export \{([^}]*)\};?$/gm)].flatMap(([, names]) => names.split(','))
  const listed = lists.flatMap((name) => name.match(/\w+(?=\s*$)/) ?? [])
  const names = new Set([...single, ...listed])
  return `const value = ${value}\nexport { ${[...names].map((name) => `value as ${name}`).join(', ')} }`
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
        // What a variable means is for the documentation; what is expected of it is for the log.
        if (callee.name === 'variable' && given.length > 2) cuts.push([given[2].start, given[2].end, "''"])
        if (callee.name === 'answers') cuts.push([given[0].start, given.at(-1).end, "'', {}"])
        const about = ['describe', 'describing'].includes(callee.name) ? given.at(-1) : undefined
        // The service itself asks only for this one.
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
  if (Array.isArray(node)) for (const each of node) visit(each, onCall)
  else if (typeof node === 'object' && node !== null) {
    if (node.type === 'CallExpression') onCall(node)
    for (const each of Object.values(node)) visit(each, onCall)
  }
}

/** Replaces ranges, from the end to the beginning; what stands within another one goes with it. */
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

/** Queries along the relations of tables, which the service does not make. */
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

/** Of croner only when a pattern is due next is asked: its timers and what looks back are left out. */
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
      // A method is kept when its name stands in what is kept.
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

/** What the descriptors of protobuf are read with: of the rest of descriptor.proto only the names are left. */
const READ_DESCRIPTORS =
  /^(?:File|Field|Oneof|Enum|EnumValue)?DescriptorProto$|^(?:File|Message|Field|Enum)Options$|^FeatureSet$/

/** Base64 hides from the compression that most of a descriptor is names. */
function compressibleDescriptors() {
  return {
    name: 'compressible-descriptors',
    enforce: 'pre',
    transform(code, id) {
      if (id.endsWith('/wkt/google/protobuf/descriptor_pb.js')) {
        return { code: code.replace(/boot\((\{.*\})\)/, (_, json) => `boot(${readPart(json)})`), map: null }
      }
      if (!id.includes('/src/meshtastic/gen/')) return null
      const text = (_, base64) => `fileDesc(btoa(${JSON.stringify(Buffer.from(base64, 'base64').toString('latin1'))})`
      return { code: code.replace(/fileDesc\("([^"]+)"/, text), map: null }
    },
  }
}

function readPart(json) {
  const file = JSON.parse(json)
  const messageType = file.messageType.map((each) => (READ_DESCRIPTORS.test(each.name) ? each : { name: each.name }))
  return JSON.stringify({ ...file, messageType })
}
