import type { RouterRoute } from 'hono/types'
import * as z from 'zod'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { type Answer, type Description, descriptionOf, type Rule } from '../describe.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'

export type Operation = {
  readonly method: string
  readonly path: string
  readonly rule: Rule
  readonly descriptions: readonly Description[]
}

type Json = Readonly<Record<string, unknown>>

/** These routes answer before the viewer is looked up. */
const WITHOUT_VIEWER: ReadonlySet<string> = new Set(['/api/health', '/api/ready', '/api/live'])

const SESSION = [{ session: [] }]
const TOKEN = [{ token: [] }]
const SESSION_OR_TOKEN = [...SESSION, ...TOKEN]

/** Every route of the app with the descriptions of its handlers. Throws when a route has no rule or no answers. */
export function listOperations(routes: readonly RouterRoute[]): Operation[] {
  const handlers = Map.groupBy(
    routes.filter(({ method }) => method !== 'ALL'),
    ({ method, path }) => `${method} ${path}`,
  )
  return [...handlers].map(([key, entries]) => {
    const [method = '', path = ''] = key.split(' ')
    const descriptions = entries.flatMap(({ handler }) => descriptionOf(handler) ?? [])
    const rule = descriptions.find((description) => description.rule)?.rule
    if (rule === undefined || !descriptions.some(({ answers }) => answers)) throw new Error(`${key} is not described`)
    return { method, path, rule, descriptions }
  })
}

type Io = 'input' | 'output'

/** JSON of the schemas that have an id, as referenced by requests and answers. */
type Named = Readonly<Record<Io, Map<string, string>>>

/** Operations that are described in one turn of the event loop. */
const OPERATIONS_AT_ONCE = 4

/**
 * OpenAPI 3.1 of all routes, made from the schemas that validate them.
 * Decision: docs/decisions/openapi-document.md
 */
export async function openApiDocument(routes: readonly RouterRoute[]) {
  const named: Named = { input: new Map(), output: new Map() }
  const described: { readonly path: string; readonly method: string; readonly operation: Json }[] = []
  for (const [n, operation] of listOperations(routes).entries()) {
    if (n % OPERATIONS_AT_ONCE === OPERATIONS_AT_ONCE - 1) await nextTurn()
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    described.push({ path, method: operation.method.toLowerCase(), operation: operationObject(operation, named) })
  }
  // A schema has its final name when all are known.
  const paths: Record<string, Record<string, Json>> = {}
  for (const [n, { path, method, operation }] of described.entries()) {
    if (n % OPERATIONS_AT_ONCE === OPERATIONS_AT_ONCE - 1) await nextTurn()
    paths[path] = { ...paths[path], [method]: withReferences(operation, named) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mesh Monitoring Service',
      version: '1',
      description:
        'JSON in camelCase. Every time is in milliseconds since the Unix epoch; parameters and bodies also take ISO 8601 with a zone. Errors are problem responses with a code and a request id.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    paths,
    components: {
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'mesh_session',
          description:
            'Set by POST /api/auth/login. Over HTTPS __Host- is before its name; under a path, such as /mesh, .mesh is behind it',
        },
        token: { type: 'http', scheme: 'bearer', description: 'An API token, made by POST /api/tokens' },
      },
      schemas: { Problem: PROBLEM, ...(await componentsOf(named)) },
    },
  }
}

const SCHEMAS_AT_ONCE = 50

async function componentsOf(named: Named): Promise<Json> {
  const all: [string, unknown][] = []
  for (const io of ['output', 'input'] as const) {
    for (const [id, text] of named[io]) {
      if (all.length % SCHEMAS_AT_ONCE === SCHEMAS_AT_ONCE - 1) await nextTurn()
      all.push([nameOf(named, io, id), JSON.parse(referenced(text, named))])
    }
  }
  return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** A schema that differs in requests because of its defaults has a second name there. */
function nameOf(named: Named, io: Io, id: string): string {
  return io === 'output' || isSameInBoth(named, id) ? id : `${id}Input`
}

function isSameInBoth({ input, output }: Named, id: string): boolean {
  const text = input.get(id)
  const other = output.get(id)
  if (text === undefined || other === undefined) return true
  if (text.replaceAll('"#/input/', '"#/output/') !== other) return false
  return [...text.matchAll(REFERENCE)].every(([, , inner = '']) => isSameInBoth({ input, output }, inner))
}

/** A reference whose schema has no final name yet. */
const REFERENCE = /"#\/(input|output)\/(\w+)"/g

function withReferences(part: Json, named: Named): Json {
  return JSON.parse(referenced(JSON.stringify(part), named))
}

function referenced(text: string, named: Named): string {
  return text.replace(REFERENCE, (_, io: Io, id: string) => `"#/components/schemas/${nameOf(named, io, id)}"`)
}

const PROBLEM = {
  type: 'object',
  description: 'Why a request was refused (RFC 9457)',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    type: { const: 'about:blank' },
    title: { type: 'string', description: 'The code in words, always the same' },
    status: { type: 'integer', description: 'HTTP status' },
    code: { enum: Object.keys(ERRORS), description: 'The reason, for programs' },
    detail: { type: 'string', description: 'What was wrong with this request, for people' },
    requestId: { type: 'string', description: 'As in the header X-Request-Id, the log and the audit log' },
    issues: {
      type: 'array',
      description: 'What is wrong with the input, field by field',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string' }, message: { type: 'string' } },
      },
    },
    required: {
      type: 'object',
      description: 'The permission that is missing',
      required: ['resource', 'action'],
      properties: { resource: { type: 'string' }, action: { type: 'string' } },
    },
    ways: { type: 'array', items: { type: 'string' }, description: 'How you can prove again who you are' },
    confirm: { type: 'array', items: { type: 'string' }, description: 'Paths that must be confirmed' },
    bytes: { type: 'integer', description: 'The actual size' },
    limit: { type: 'integer', description: 'The maximum, in bytes' },
  },
}

const PROBLEM_CONTENT = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

function operationObject({ method, path, rule, descriptions }: Operation, named: Named): Json {
  const requests = descriptions.flatMap(({ request }) => request ?? [])
  const body = requests.find(({ part }) => part === 'json' || part === 'optional-json')
  const documented = descriptions.find(({ answers }) => answers)
  const shared = descriptions.find((description) => description.shared)?.shared
  const isRevalidated = descriptions.some(({ revalidates }) => revalidates)
  const errors = [...ruleErrors(rule), ...(requests.length > 0 ? (['invalid_request'] as const) : [])]
  if (body !== undefined) errors.push('invalid_json')
  // The header X-See-As is read on every route that has a viewer.
  if (!WITHOUT_VIEWER.has(path)) errors.push('see_as_refused')
  if (method !== 'GET') errors.push('cross_origin', 'payload_too_large', 'unsupported_media_type', 'rate_limited')
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[^a-zA-Z0-9]+(\w?)/g, (_, next: string) => next.toUpperCase())}`,
    tags: [path.split('/')[2] ?? ''],
    ...summaryAndDescription(documented?.summary ?? ''),
    'x-access': rule,
    ...(shared !== undefined && { 'x-public': shared }),
    ...(rule.kind !== 'anyone' && { security: [...securityOf(rule), ...(shared === undefined ? [] : [{}])] }),
    parameters: requests.flatMap(({ part, schema }) =>
      part === 'json' || part === 'optional-json' ? [] : parameters(LOCATIONS[part], schema, named),
    ),
    ...(body && {
      requestBody: {
        required: body.part === 'json',
        content: { 'application/json': { schema: jsonSchema(named, body.schema, 'input') } },
      },
    }),
    responses: {
      ...answerObjects(
        { ...documented?.answers, ...(isRevalidated && { 304: null }) },
        headerObjects(descriptions),
        named,
      ),
      ...errorObjects([...errors, ...descriptions.flatMap(({ errors: more }) => more ?? [])]),
      default: { description: 'internal, database_unavailable', content: PROBLEM_CONTENT },
    },
  }
}

/** The first sentence, and the rest. */
function summaryAndDescription(text: string): Json {
  const end = text.indexOf('. ')
  return end === -1 ? { summary: text } : { summary: text.slice(0, end), description: text.slice(end + 2) }
}

function securityOf(rule: Rule): Json[] {
  if (rule.kind === 'token') return TOKEN
  const takesTokens =
    rule.kind === 'permission' ||
    (rule.kind === 'signed-in' ? rule.tokens : rule.kind === 'admin' && rule.scope !== null)
  return takesTokens ? SESSION_OR_TOKEN : SESSION
}

function ruleErrors(rule: Rule): ErrorCode[] {
  switch (rule.kind) {
    case 'anyone':
      return []
    case 'signed-in':
      return [
        'unauthenticated',
        ...(rule.temporaryPassword ? [] : (['password_change_required'] as const)),
        ...(rule.temporaryPassword || rule.enrolling ? [] : (['second_factor_required'] as const)),
        ...(rule.tokens ? [] : (['forbidden'] as const)),
      ]
    case 'token':
    case 'permission':
      return ['unauthenticated', 'password_change_required', 'second_factor_required', 'forbidden']
    case 'admin':
      return [
        'unauthenticated',
        'password_change_required',
        'second_factor_required',
        'admin_required',
        ...(rule.scope === null ? [] : (['forbidden'] as const)),
      ]
    default:
      return rule satisfies never
  }
}

function jsonSchema(named: Named, schema: z.ZodType, io: Io): Json {
  const { $schema: _, ...all } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: leaveOutSafeBounds })
  const text = JSON.stringify(all).replaceAll('"#/$defs/', `"#/${io}/`)
  const { $defs = {}, ...rest } = schemaObject.parse(JSON.parse(text))
  for (const [id, definition] of Object.entries($defs)) named[io].set(id, JSON.stringify(definition))
  return rest
}

const schemaObject = z.looseObject({ $defs: z.record(z.string(), z.unknown()).optional() })

/** Leaves out JavaScript's bounds, which every integer would have. */
function leaveOutSafeBounds({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

const parameterObject = z.object({
  properties: z.record(z.string(), z.looseObject({ description: z.string().optional() })),
  required: z.array(z.string()).default([]),
})

const LOCATIONS = { param: 'path', query: 'query', header: 'header' } as const

function parameters(location: (typeof LOCATIONS)[keyof typeof LOCATIONS], schema: z.ZodType, named: Named): Json[] {
  const { properties, required } = parameterObject.parse(jsonSchema(named, schema, 'input'))
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    ...(description !== undefined && { description }),
    schema: property,
  }))
}

function answerObjects(answers: Readonly<Record<number, Answer>>, headers: Json, named: Named): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => [
      status,
      { description: STATUS_TEXT[status] ?? '', ...headers, ...content(answer, named) },
    ]),
  )
}

function headerObjects(descriptions: readonly Description[]): Json {
  const headers = descriptions.flatMap(({ headers }) => Object.entries(headers ?? {}))
  const described = headers.map(([name, description]) => [name, { description, schema: { type: 'string' } }])
  return described.length === 0 ? {} : { headers: Object.fromEntries(described) }
}

const STATUS_TEXT: Readonly<Record<string, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'Done',
  206: 'Part of it',
  302: 'Found',
  304: 'Not modified',
  503: 'Unavailable',
}

function content(answer: Answer, named: Named): Json {
  if (answer === null) return {}
  if (answer instanceof z.ZodType)
    return { content: { 'application/json': { schema: jsonSchema(named, answer, 'output') } } }
  return { content: Object.fromEntries([answer.mediaType].flat().map((mediaType) => [mediaType, {}])) }
}

function errorObjects(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERRORS[code][0])
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => [status, { description: all.join(', '), content: PROBLEM_CONTENT }]),
  )
}
