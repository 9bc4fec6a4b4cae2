import type { RouterRoute } from 'hono/types'
import * as z from 'zod'
import { type Answer, type Description, descriptionOf, type Rule } from '../describe.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'

export type Operation = {
  readonly method: string
  readonly path: string
  readonly rule: Rule
  readonly descriptions: readonly Description[]
}

type Json = Readonly<Record<string, unknown>>

const SESSION = [{ session: [] }]
const TOKEN = [{ token: [] }]
const SESSION_OR_TOKEN = [...SESSION, ...TOKEN]

/** Every route of the app with what its handlers say about it. Throws when a route has no rule or no answers. */
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

/** OpenAPI 3.1 of all routes, made of the schemas that validate them. */
export function openApiDocument(routes: readonly RouterRoute[]): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const operation of listOperations(routes)) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: operationObject(operation) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Mesh Monitoring Service', version: '1', license: { name: 'MIT', identifier: 'MIT' } },
    paths,
    components: {
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: 'mesh_session' },
        token: { type: 'http', scheme: 'bearer' },
      },
      schemas: { Problem: PROBLEM },
    },
  }
}

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    type: { const: 'about:blank' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { enum: Object.keys(ERRORS) },
    detail: { type: 'string' },
    requestId: { type: 'string' },
    issues: {
      type: 'array',
      items: { type: 'object', properties: { path: { type: 'string' }, message: { type: 'string' } } },
    },
    required: { type: 'object', properties: { resource: { type: 'string' }, action: { type: 'string' } } },
    confirm: { type: 'array', items: { type: 'string' } },
    bytes: { type: 'integer' },
    limit: { type: 'integer' },
  },
}

const PROBLEM_CONTENT = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

function operationObject({ method, path, rule, descriptions }: Operation): Json {
  const requests = descriptions.flatMap(({ request }) => request ?? [])
  const body = requests.find(({ part }) => part === 'json' || part === 'optional-json')
  const documented = descriptions.find(({ answers }) => answers)
  const errors = [...ruleErrors(rule), ...(requests.length > 0 ? (['invalid_request'] as const) : [])]
  if (body !== undefined) errors.push('invalid_json')
  if (method !== 'GET') errors.push('cross_origin', 'payload_too_large', 'unsupported_media_type', 'rate_limited')
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[^a-zA-Z0-9]+(\w?)/g, (_, next: string) => next.toUpperCase())}`,
    tags: [path.split('/')[2] ?? ''],
    summary: documented?.summary ?? '',
    'x-access': rule,
    ...(rule.kind !== 'anyone' && { security: securityOf(rule) }),
    parameters: requests.flatMap(({ part, schema }) =>
      part === 'json' || part === 'optional-json' ? [] : parameters(LOCATIONS[part], schema),
    ),
    ...(body && {
      requestBody: {
        required: body.part === 'json',
        content: { 'application/json': { schema: jsonSchema(body.schema, 'input') } },
      },
    }),
    responses: {
      ...answerObjects(documented?.answers ?? {}, headerObjects(descriptions)),
      ...errorObjects([...errors, ...descriptions.flatMap(({ errors: more }) => more ?? [])]),
      default: { description: 'internal, database_unavailable', content: PROBLEM_CONTENT },
    },
  }
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
        ...(rule.tokens ? [] : (['forbidden'] as const)),
      ]
    case 'token':
    case 'permission':
      return ['unauthenticated', 'password_change_required', 'forbidden']
    case 'admin':
      return [
        'unauthenticated',
        'password_change_required',
        'admin_required',
        ...(rule.scope === null ? [] : (['forbidden'] as const)),
      ]
    default:
      return rule satisfies never
  }
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

const parameterObject = z.object({
  properties: z.record(z.string(), z.unknown()),
  required: z.array(z.string()).default([]),
})

const LOCATIONS = { param: 'path', query: 'query', header: 'header' } as const

function parameters(location: (typeof LOCATIONS)[keyof typeof LOCATIONS], schema: z.ZodType): Json[] {
  const { properties, required } = parameterObject.parse(jsonSchema(schema, 'input'))
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    schema: property,
  }))
}

function answerObjects(answers: Readonly<Record<number, Answer>>, headers: Json): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => [
      status,
      { description: STATUS_TEXT[status] ?? '', ...headers, ...content(answer) },
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

function content(answer: Answer): Json {
  if (answer === null) return {}
  if (answer instanceof z.ZodType) return { content: { 'application/json': { schema: jsonSchema(answer, 'output') } } }
  return { content: Object.fromEntries([answer.mediaType].flat().map((mediaType) => [mediaType, {}])) }
}

function errorObjects(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERRORS[code][0])
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => [status, { description: all.join(', '), content: PROBLEM_CONTENT }]),
  )
}
