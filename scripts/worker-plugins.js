// Plugins for the build of the worker that leave out code which it never runs.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import { noCertificates, withoutCertificates } from './certificates.js'
import { readableDescriptors } from './descriptors.js'
import { replaceExports } from './exports.js'
import { each } from './unused-methods.js'

/** The name under which `withoutDescriptions` imports zod, so that unused schemas are left out. */
export const SCHEMAS = '$schemas'

/** What most isolates never need, in src. */
const LAZY = [
  'app/accounts/routes/factor-sign-in',
  'app/accounts/routes/factors',
  'app/accounts/routes/invitations',
  'app/accounts/routes/mail',
  'app/accounts/routes/oidc',
  'app/accounts/routes/public-access',
  'app/accounts/routes/tokens',
  'app/accounts/routes/users',
  'app/alerts/destinations/of-user-routes',
  'app/alerts/findings/on-batch',
  'app/alerts/routes',
  'app/automation/routes',
  'app/device-config/collected-routes',
  'app/device-config/routes',
  'app/mesh/boards/routes',
  'app/mesh/findings/routes',
  'app/mesh/history/routes',
  'app/mesh/overlays/routes',
  'app/mesh/playback/routes',
  'app/mesh/routes/ingest',
  'app/mesh/routes/node-requests',
  'app/mesh/survey/routes',
  'app/system/audit/routes',
  'app/system/backup/routes',
  'app/system/metrics/routes',
  'app/system/moving-in/routes',
  'app/system/settings-routes',
  'app/system/status/routes',
  'edge/schedule',
]

export function workerPlugins(root) {
  return [
    withoutAttestations(root),
    withoutApiDocuments(root),
    withoutProxySignIn(root),
    withoutRestore(root),
    withoutRadioSettings(root),
    withoutSomeRoutes(root),
    withLazyModules(root),
    withoutConnections(root),
    withoutCopies(root),
    withoutNodeVariables(root),
    onlyReadJson(root),
    withoutPorts(),
    narrowSql(),
    withoutDescriptions(),
    withoutUnreadConstants(),
    withoutTextFormats(),
    withoutGeneratedCode(),
    withoutRelations(),
    withoutOtherColumns(),
    withoutNodeCrypto(),
    onlyNextRuns(),
    oneRouter(),
    plainMessages(),
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
  const code = `import { Hono } from 'hono'
    import { describe } from '../http/describe.ts'
    import { AppError } from '../http/errors.ts'
    const refuse = () => { throw new AppError('proxy_auth_disabled') }
    export const proxyRoutes = new Hono().get('/login', describe(refuse, { getOnly: true }))`
  return { name: 'without-proxy-sign-in', enforce: 'pre', load: (id) => (id === file ? code : null) }
}

/** Only the Node service restores backups: nothing is ever staged, and no list of access that one brought back. */
function withoutRestore(root) {
  const own = join(root, 'src/app/system/restore')
  const edge = join(root, 'src/edge')
  const files = new Map([
    [join(own, 'restored-access.ts'), join(edge, 'no-restore.ts')],
    [join(own, 'staging.ts'), join(edge, 'no-staging.ts')],
  ])
  const load = (id) => (files.has(id) ? `export * from ${JSON.stringify(files.get(id))}` : null)
  return { name: 'without-restore', enforce: 'pre', load }
}

/** Only the service beside a radio decodes its settings: a collector delivers names and values, and of few sections. */
function withoutRadioSettings(root) {
  const described = join(root, 'src/app/device-config/described.ts')
  const read = join(root, 'src/meshtastic/config/settings.ts')
  return {
    name: 'without-radio-settings',
    enforce: 'pre',
    load(id) {
      if (id === described) return `export * from ${JSON.stringify(join(root, 'src/edge/described-settings.ts'))}`
      return id === read ? replaceExports(id, '() => null') : null
    },
  }
}

/**
 * The edge has no radio and no disk: the routes of files named radio-routes.ts and disk-routes.ts check who asks, and then
 * refuse. Each router there is one exported chain, `export const x = new Hono<AppEnv>().get('/', requirePermission(…), …)`.
 */
function withoutSomeRoutes(root) {
  const app = join(root, 'src/app')
  return {
    name: 'without-some-routes',
    enforce: 'pre',
    load(id) {
      if (!id.startsWith(app) || !/\/(?:radio|disk)-routes\.ts$/.test(id)) return null
      return `import { AppError } from ${JSON.stringify(join(app, 'http/errors.ts'))}
        const refuse = () => { throw new AppError('unsupported_on_this_runtime') }
        ${routersOf(id, () => 'refuse')}`
    },
  }
}

/** What the id of the small module ends with that stands for one of `LAZY`. */
const LATER = '?later'

/**
 * What is parsed at the start of an isolate should be little: these modules are loaded by their first use. Of the routers
 * that one exports, written as above, this is the first request that an access rule lets through; of its functions, which
 * are async, the first call.
 */
function withLazyModules(root) {
  const files = new Set(LAZY.map((name) => join(root, 'src', `${name}.ts`)))
  for (const file of files) if (!existsSync(file)) throw new Error(`there is no ${file}`)
  const helper = JSON.stringify(join(root, 'src/edge/lazy-route.ts'))
  return {
    name: 'with-lazy-modules',
    enforce: 'pre',
    resolveId(id, importer) {
      if (importer === undefined || importer.endsWith(LATER) || !id.startsWith('.')) return null
      const file = join(dirname(importer), id)
      return files.has(file) ? file + LATER : null
    },
    load(id) {
      if (!id.endsWith(LATER)) return null
      const file = id.slice(0, -LATER.length)
      const answer = (router, method, path, isGetOnly) =>
        `lazily(async () => (await load()).${router}, { method: '${method}', path: '${path}', isGetOnly: ${isGetOnly} })`
      const calls = functionsOf(file).map(
        (name) => `export const ${name} = async (...given) => (await load()).${name}(...given)`,
      )
      return `import { lazily } from ${helper}
        const load = () => import(${JSON.stringify(file)})
        ${[routersOf(file, answer), ...calls].join('\n')}`
    },
  }
}

/** The routers of a file: the routes have their access rules, and then only what `answer` writes. */
function routersOf(file, answer) {
  const code = readFileSync(file, 'utf8')
  const { body } = parseSync(file, code).program
  const textOf = ({ start, end }) => code.slice(start, end)
  const names = new Set(['Hono'])
  const routers = exportsOf(body).flatMap(({ name, value }) => {
    // A router that is told what to call: `(onBatch) => new Hono<AppEnv>()…`.
    const params = value?.type === 'ArrowFunctionExpression' ? value.params.map((param) => param.name).join(', ') : null
    const router = params === null ? name : `${name}(${params})`
    const routes = routesOf(params === null ? value : value.body).map(({ method, path, rule, more }) => {
      each(rule, ({ type, name: used }) => type === 'Identifier' && names.add(used))
      if (method === 'route') return `.route('${path}', ${textOf(rule)})`
      const route = [router, method.toUpperCase(), path, more.some((one) => one.name === 'getOnly')]
      return `.${method}('${path}', ${textOf(rule)}, ${answer(...route)})`
    })
    if (routes.length === 0) return []
    return [`export const ${name} = ${params === null ? '' : `(${params}) => `}new Hono()${routes.join('')}`]
  })
  if (routers.length === 0) return ''
  const imports = body.flatMap(({ type, importKind, specifiers, source }) => {
    if (type !== 'ImportDeclaration' || importKind === 'type') return []
    const used = specifiers.filter(({ type, local }) => type === 'ImportSpecifier' && names.delete(local.name))
    const from = source.value.startsWith('.') ? join(dirname(file), source.value) : source.value
    return used.length === 0 ? [] : [`import { ${used.map(textOf).join(', ')} } from ${JSON.stringify(from)}`]
  })
  if (names.size > 0) throw new Error(`an access rule of ${file} is not imported: ${[...names].join(', ')}`)
  return [...imports, ...routers].join('\n')
}

function functionsOf(file) {
  const isAsync = ({ value }) => /Function/.test(value?.type) && value.async
  return exportsOf(parseSync(file, readFileSync(file, 'utf8')).program.body)
    .filter(isAsync)
    .map(({ name }) => name)
}

function exportsOf(body) {
  return body.flatMap(({ type, declaration }) => {
    if (type !== 'ExportNamedDeclaration' || declaration === null) return []
    if (declaration.type === 'FunctionDeclaration') return [{ name: declaration.id.name, value: declaration }]
    return (declaration.declarations ?? []).map(({ id, init }) => ({ name: id.name, value: init }))
  })
}

/** The edge connects to nothing: its list of connections is empty. */
function withoutConnections(root) {
  const file = join(root, 'src/app/connections/connections.ts')
  const code = 'export const connectionSchema = null; export const listConnections = async () => []'
  const load = (id) => (id === file ? code : null)
  return { name: 'without-connections', enforce: 'pre', load }
}

/** Only the Node service copies backups elsewhere. */
function withoutCopies(root) {
  const file = join(root, 'src/app/alerts/world/failing-copies.ts')
  const load = (id) => (id === file ? 'export const readFailingCopies = async () => []' : null)
  return { name: 'without-copies', enforce: 'pre', load }
}

/** The routes of a chain of calls, in order: method, path, and the call that says who may use it. */
function routesOf(node) {
  const { type, callee, arguments: given } = node ?? {}
  if (type !== 'CallExpression' || callee.type !== 'MemberExpression' || callee.object.name !== undefined) return []
  const [path, rule, ...more] = given
  return [...routesOf(callee.object), { method: callee.property.name, path: path.value, rule, more }]
}

/** Variables that have no effect on the edge (src/edge/environment.ts): they have their defaults, whatever is given. */
function withoutNodeVariables(root) {
  const file = join(root, 'src/app/config/config.ts')
  const isUnread = (name) =>
    /^(?:(?:MESHTASTIC|COLLECTOR|HOME_ASSISTANT|RESTORE|MAP_ARCHIVE)_\w+|PORT|HOST|DATA_DIR|DEMO|RESTART_BY)$/.test(
      name,
    )
  return {
    name: 'without-node-variables',
    enforce: 'pre',
    async transform(code, id) {
      if (id !== file) return null
      const { config } = (await import(file)).parseConfig({})
      const cuts = []
      each(parseSync(id, code).program, ({ type, key, value }) => {
        if (type !== 'Property' || value.callee?.name !== 'variable' || !isUnread(key.name)) return
        const [schema, expected] = value.arguments
        const fallback = JSON.stringify(config[key.name])
        cuts.push(
          [schema.start, schema.end, `z.unknown().transform(() => (${fallback}))`],
          [expected.start, expected.end, "''"],
        )
      })
      return { code: cut(code, cuts), map: null }
    },
  }
}

/** Of package.json the worker reads the version, and of the journal the number of migrations. */
function onlyReadJson(root) {
  const manifest = join(root, 'package.json')
  const read = (id, pick) => JSON.stringify(pick(JSON.parse(readFileSync(id, 'utf8'))))
  return {
    name: 'only-read-json',
    enforce: 'pre',
    load(id) {
      if (id === manifest) return read(id, ({ version }) => ({ version }))
      if (!id.endsWith('/drizzle/meta/_journal.json')) return null
      return read(id, ({ entries: { length } }) => ({ entries: { length } }))
    },
  }
}

/** The indentation of SQL. No statement has a line break inside a string. */
function narrowSql() {
  return {
    name: 'narrow-sql',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/src\/(?:app|db)\/.*\.ts$/.test(id)) return null
      const cuts = []
      each(parseSync(id, code).program, ({ type, tag, quasi }) => {
        if (type !== 'TaggedTemplateExpression' || tag.name !== 'sql') return
        for (const { start, end } of quasi.quasis) {
          const text = code.slice(start, end)
          const narrow = text.replace(/\s*\n\s*/g, ' ')
          if (narrow !== text) cuts.push([start, end, narrow])
        }
      })
      return cuts.length === 0 ? null : { code: cut(code, cuts), map: null }
    },
  }
}

/** The ports of `NO_PORTS` that src/edge/worker.ts does not replace: disks and sockets. */
const ABSENT = new Set([
  'radio',
  'connecting',
  'meter',
  'compressor',
  'mail',
  'syslog',
  'mapArchive',
  'clockWatch',
  'disk',
])
const HOLDERS = new Set(['ctx', 'ports', 'needs', 'c.var.ctx', "c.get('ctx')"])
/** What functions return here: without e-mail nobody ever gets a link, and no radio can send, or change a waypoint. */
const ANSWERS = new Map([
  ['siteOfMail', 'null'],
  ['findLink', 'null'],
  ['findInvited', 'null'],
  ['listSenders', '[]'],
  ['ableSenders', '[]'],
  ['findSender', 'null'],
  ['chooseRadio', 'null'],
  ['configuredRadios', 'null'],
  ['isClockTrusted', 'true'],
  ['restOfWaypoint', "''"],
])

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
      const answerOf = ({ type, callee }) => (type === 'CallExpression' ? ANSWERS.get(callee.name) : undefined)
      // It throws, so nothing after it runs.
      const isDemand = (node) => node?.type === 'CallExpression' && node.callee.name === 'demandAccountMail'
      const cuts = []
      const { program } = parseSync(id, code)
      each(program, (node) => {
        cuts.push(...withoutTakenPorts(node, textOf))
        if (isPort(node)) cuts.push([node.start, node.end, 'null'])
        const answer = answerOf(node.type === 'AwaitExpression' ? node.argument : node)
        if (answer !== undefined) cuts.push([node.start, node.end, answer])
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

/** `{ store, events }: Ports` and `const { store, events } = ctx`: the port becomes a constant. */
function withoutTakenPorts(node, textOf) {
  if (node.type === 'VariableDeclaration') {
    return node.declarations.flatMap(({ id, init, end }) =>
      HOLDERS.has(init === null ? '' : textOf(init)) ? takeFrom(id, (name) => [end, end, `, ${name} = null`]) : [],
    )
  }
  if (node.body?.type !== 'BlockStatement' || node.params === undefined) return []
  const at = node.body.start + 1
  return node.params.flatMap((pattern) =>
    /\b(?:Ports|\w*Ctx|\w*Needs|Given)\b/.test(pattern.typeAnnotation ? textOf(pattern.typeAnnotation) : '')
      ? takeFrom(pattern, (name) => [at, at, `const ${name} = null;`])
      : [],
  )
}

function takeFrom(pattern, declare) {
  if (pattern.type !== 'ObjectPattern') return []
  return pattern.properties.flatMap(({ start, end, shorthand, key }) =>
    shorthand && ABSENT.has(key.name) ? [[start, end, `${key.name}: _${key.name}`], declare(key.name)] : [],
  )
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

/**
 * No constant of a module does anything but be read: one that nobody reads is left out, also if it is the result of a
 * call, such as a schema that only described an answer.
 */
function withoutUnreadConstants() {
  return {
    name: 'without-unread-constants',
    enforce: 'pre',
    transform(code, id) {
      const isOurs = /\/src\/(?:app|db|shared|meshtastic)\/.*\.ts$/.test(id) && !id.includes('/gen/')
      if (!isOurs && !/\/node_modules\/(?:oslo|@oslojs|uint8array-extras)\//.test(id)) return null
      const cuts = parseSync(id, code).program.body.flatMap((statement) => {
        const { type, kind, declarations } = statement.declaration ?? statement
        if (type !== 'VariableDeclaration' || kind !== 'const') return []
        return declarations.flatMap(({ init }) =>
          init !== null && /^(?:Call|New|TaggedTemplate)Expression$/.test(init.type)
            ? [
                [init.start, init.start, '/*#__PURE__*/ (() => ('],
                [init.end, init.end, '))()'],
              ]
            : [],
        )
      })
      return cuts.length === 0 ? null : { code: cut(code, cuts), map: null }
    },
  }
}

function visit(node, onCall) {
  each(node, (one) => {
    if (one.type === 'CallExpression') onCall(one)
  })
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

/** hono tries two routers. Only the second one can hold all of our paths, so it is the one that answers. */
function oneRouter() {
  return {
    name: 'one-router',
    enforce: 'pre',
    transform: (code, id) =>
      id.endsWith('/node_modules/hono/dist/hono.js')
        ? {
            code: code
              .replace(/new SmartRouter\(.*\)/, 'new TrieRouter()')
              .replace(/^import .*(?:smart|reg-exp)-.*$/gm, ''),
            map: null,
          }
        : null,
  }
}

/** Of protobuf: what changes messages through reflection, and what only older forms of descriptors have. */
function plainMessages() {
  const parts = new Map([
    // Checks of values that are set. The worker only reads.
    ['reflect/reflect-check', '() => undefined'],
    ['wkt/wrappers', '() => false'],
    ['wire/text-format', "() => { throw new Error('a field has a default value') }"],
  ])
  return {
    name: 'plain-messages',
    enforce: 'pre',
    load(id) {
      const part = /\/@bufbuild\/protobuf\/dist\/esm\/(.*)\.js$/.exec(id)?.[1]
      return parts.has(part) ? replaceExports(id, parts.get(part)) : null
    },
    transform: (code, id) =>
      id.endsWith('/@bufbuild/protobuf/dist/esm/registry.js')
        ? { code: withoutBodies(code, id, ['addExtensions', 'addService']), map: null }
        : null,
  }
}

/** Empties functions of a module that do nothing here. */
function withoutBodies(code, id, names) {
  const found = parseSync(id, code).program.body.filter(
    ({ type, id: name }) => type === 'FunctionDeclaration' && names.includes(name.name),
  )
  return cut(
    code,
    found.map(({ body }) => [body.start, body.end, '{}']),
  )
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

/** The kinds of columns that a table defined by a function could choose from; ours are defined by objects. */
function withoutOtherColumns() {
  return {
    name: 'without-other-columns',
    enforce: 'pre',
    load: (id) =>
      id.endsWith('/drizzle-orm/sqlite-core/columns/all.js')
        ? replaceExports(id, "() => { throw new Error('a table is defined by a function') }")
        : null,
  }
}

/** bcryptjs asks Node for random bytes where there is no Web Crypto. */
function withoutNodeCrypto() {
  const absent = '\0no-node-crypto'
  return {
    name: 'without-node-crypto',
    enforce: 'pre',
    resolveId: (id, importer) => (id === 'crypto' && importer?.includes('/node_modules/bcryptjs/') ? absent : null),
    load: (id) => (id === absent ? 'export default null' : null),
  }
}

/** Methods of croner that look back, read dates as texts or run jobs: the service asks for the time after a moment. */
const NOT_CALLED = [
  '_calculatePreviousRun',
  '_checkTrigger',
  '_previous',
  '_previousTarget',
  '_schedule',
  '_trigger',
  'currentRun',
  'decrement',
  'findPrevious',
  'fromString',
  'getMaxPatternValue',
  'handleNicknames',
  'previousRun',
  'recurseBackward',
  'recurseBackwardStep',
  'runsLeft',
  'schedule',
]

/** The service asks croner only for the next time of a pattern; its timers and past times are left out. */
/** What croner takes for options that are not given; those of the service are right. */
const CRON_OPTIONS =
  '{ domAndDow: false, legacyMode: true, interval: 0, dayOffset: 0, alternativeWeekdays: false, sloppyRanges: false }'

function onlyNextRuns() {
  return {
    name: 'only-next-runs',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('/croner/dist/croner.js')) return null
      const methods = []
      const options = []
      each(parseSync(id, code).program, (node) => {
        if (node.type === 'MethodDefinition' && !node.computed && node.kind === 'method') methods.push(node)
        const isOfOptions = () => code.slice(node.start, node.end).includes('CronOptions: mode must be')
        if (node.type === 'FunctionDeclaration' && isOfOptions()) options.push(node)
      })
      if (options.length !== 1) throw new Error('croner checks its options in another way')
      const [{ start, end, id: name }] = options
      const given = `function ${name.name}(given) { return { ...${CRON_OPTIONS}, ...given } }`
      const missing = NOT_CALLED.filter((name) => !methods.some(({ key }) => key.name === name))
      if (missing.length > 0) throw new Error(`croner has no ${missing.join(', ')}`)
      // A method is kept if kept code contains its name.
      const words = (text) => new Set(text.match(/[A-Za-z_$][\w$]*/g))
      const rangeOf = ({ start, end }) => [start, end, '']
      const used = words(`nextRun ${cut(code, methods.map(rangeOf))}`)
      const rest = new Set(methods)
      for (let found = methods; found.length > 0;) {
        found = [...rest].filter(({ key }) => used.has(key.name) && !NOT_CALLED.includes(key.name))
        for (const one of found) {
          rest.delete(one)
          for (const word of words(code.slice(one.start, one.end))) used.add(word)
        }
      }
      return { code: cut(code, [...[...rest].map(rangeOf), [start, end, given]]), map: null }
    },
  }
}
