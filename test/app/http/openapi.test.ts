import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../src/app/app.ts'
import { ERRORS } from '../../../src/app/http/errors.ts'
import { listOperations } from '../../../src/app/http/openapi/document.ts'
import { outcomeOf } from '../../support/answers.ts'
import { createTestApp, type TestApp } from '../../support/app.ts'
import { limitProcessorTime, processorTime } from '../../support/processor-time.ts'
import { turnsDuring } from '../../support/turns.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

// The parts of OpenAPI 3.1 that this document may use (spec.openapis.org/oas/v3.1.1), and no others.
const schemaObject = z.record(z.string(), z.unknown())
const content = z.record(
  z.string().regex(/^[a-z]+\/[a-z0-9.+*-]+$/),
  z.strictObject({ schema: schemaObject.optional() }),
)
const parameter = z.strictObject({
  name: z.string().min(1),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean(),
  description: z.string().min(3),
  schema: schemaObject,
})
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-z][A-Za-z0-9]+$/),
  tags: z.array(z.string().min(1)),
  summary: z.string().min(3).max(120),
  description: z.string().min(3).optional(),
  'x-access': z.object({ kind: z.string() }),
  'x-public': z.enum(['dashboard', 'nodes', 'messages', 'info', 'any']).optional(),
  security: z.array(z.partialRecord(z.enum(['session', 'token']), z.array(z.never()))).optional(),
  parameters: z.array(parameter),
  requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
  responses: z.record(
    z.string().regex(/^([1-5]\d\d|default)$/),
    z.strictObject({ description: z.string().min(1), content: content.optional(), headers: schemaObject.optional() }),
  ),
})
const methods = z.enum(['get', 'put', 'post', 'delete', 'patch'])
const documentSchema = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({
    title: z.string().min(1),
    version: z.string().min(1),
    description: z.string().min(1),
    license: z.strictObject({ name: z.string(), identifier: z.string() }),
  }),
  paths: z.record(z.string().regex(/^\/api(\/[\w.{}-]+)+$/), z.partialRecord(methods, operation)),
  components: z.strictObject({ securitySchemes: schemaObject, schemas: schemaObject }),
})

async function loaded() {
  const answer = await app.request('/api/openapi.json')
  expect(answer.headers.get('content-type')).toBe('application/json')
  return documentSchema.parse(await answer.json())
}

const operationsOf = (document: z.infer<typeof documentSchema>) =>
  Object.entries(document.paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, described]) => ({ ...described, path, name: `${method} ${path}` })),
  )

test('is OpenAPI 3.1 and contains every route', async () => {
  const found = operationsOf(await loaded()).map(({ name }) => name)
  const routes = listOperations(app.routes)
  const expected = routes.map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`)
  expect(found.toSorted()).toStrictEqual(expected.toSorted())
})

test('is made once, with its page, however often anybody asks for them', async () => {
  const { request } = createApp(() => app.ports)
  const texts = new Set<string>()
  const ask = async (path: string) => (await request(path)).arrayBuffer()
  const first = processorTime()
  await ask('/api/openapi.json')
  const toMake = processorTime() - first
  await ask('/api/docs')
  for (const path of ['/api/openapi.json', '/api/docs']) {
    const begun = processorTime()
    for (let n = 0; n < 40; n++) texts.add(`${path} ${(await ask(path)).byteLength}`)
    // Made each time, it would take forty times as long.
    limitProcessorTime(begun, 4 * toMake)
  }
  expect(texts.size).toBe(2)
  const packed = await request('/api/openapi.json', { headers: { 'accept-encoding': 'gzip' } })
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect(JSON.parse(gunzipSync(await packed.arrayBuffer()).toString())).toMatchObject({ openapi: '3.1.0' })
})

test('others get their turns while the document and its page are made', async () => {
  const operations = listOperations(app.routes).length
  const document = await turnsDuring(async () => app.request('/api/openapi.json'))
  expect(document).toBeGreaterThanOrEqual((operations * 2) / 4 - 2)
  const page = await turnsDuring(async () => app.request('/api/docs'))
  expect(page).toBeGreaterThan(100)
})

test('names each operation once, and declares each parameter of its path', async () => {
  const operations = operationsOf(await loaded())
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  for (const { name, path, parameters } of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameterName]) => parameterName)
    const declared = parameters.filter((one) => one.in === 'path')
    expect(
      declared.map((one) => one.name),
      name,
    ).toStrictEqual(inPath)
    expect(
      declared.every(({ required }) => required),
      name,
    ).toBe(true)
    expect(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size, name).toBe(parameters.length)
  }
})

test('resolves every reference, and every schema has a type', async () => {
  const document = await loaded()
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => String(target))
  expect(references.length).toBeGreaterThan(0)
  const find = (target: string) =>
    target
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => Object(at)[key], document)
  for (const target of new Set(references)) expect(find(target), target).toBeTypeOf('object')
  for (const { name, responses } of operationsOf(document)) {
    for (const [status, { content: bodies = {} }] of Object.entries(responses)) {
      const schema = bodies['application/json']?.schema
      const meant = typeof schema?.['$ref'] === 'string' ? Object(find(schema['$ref'])) : schema
      if (schema) expect(Object.keys(meant), `${name} ${status}`).toContain('type')
    }
  }
})

test('schemas shared by several routes appear once, by name', async () => {
  const { components, paths } = await loaded()
  const { schemas } = components
  const objects = [...JSON.stringify({ schemas, paths }).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)]
  const uses = Map.groupBy(objects, ([, name]) => name)
  expect(Object.keys(schemas).filter((name) => !uses.has(name))).toStrictEqual([])
  expect(Object.keys(schemas)).toEqual(expect.arrayContaining(['Message', 'Node', 'Rule', 'RuleInput', 'Time', 'User']))
  // Fields of a rule with a default may be missing from a request, but never from an answer.
  expect(schemas['AnnounceRule']).toMatchObject({ required: expect.arrayContaining(['enabled', 'timeZone']) })
  expect(schemas['AnnounceRuleInput']).toMatchObject({ required: ['kind', 'name', 'when', 'channels', 'text'] })
  expect(schemas['Time']).toMatchObject({ type: 'integer', examples: [expect.any(Number)] })
})

test('documents the headers of a request and of its answer', async () => {
  const operations = operationsOf(await loaded())
  const taken = operations.flatMap(({ name, parameters }) =>
    parameters.flatMap((one) => (one.in === 'header' ? [`${name} ${one.name} ${one.required}`] : [])),
  )
  expect(taken.toSorted()).toStrictEqual([
    'delete /api/alerts/rules/{id} If-Match false',
    'delete /api/automation/{id} If-Match false',
    'post /api/alerts/destinations Idempotency-Key false',
    'post /api/alerts/rules Idempotency-Key false',
    'post /api/automation Idempotency-Key false',
    'post /api/messages Idempotency-Key false',
    'post /api/tokens Idempotency-Key false',
    'post /api/users Idempotency-Key false',
    'post /api/users/prepared Idempotency-Key false',
    'post /api/users/{id}/invitation Idempotency-Key false',
    'put /api/alerts/rules/{id} If-Match false',
    'put /api/automation/{id} If-Match false',
  ])
  const given = operations.flatMap(({ name, responses }) =>
    Object.entries(responses).flatMap(([status, { headers = {} }]) =>
      Object.keys(headers).map((header) => `${name} ${status} ${header}`),
    ),
  )
  expect(given).toStrictEqual([
    'get /api/nodes 200 X-Total-Count',
    'get /api/nodes 200 X-Next-Cursor',
    'get /api/nodes 304 X-Total-Count',
    'get /api/nodes 304 X-Next-Cursor',
    'get /api/automation/{id} 200 ETag',
    'get /api/alerts/rules/{id} 200 ETag',
  ])
})

test('a missing body is refused on every route that requires one', async () => {
  const admin = await app.admin()
  const scopes = ['ingest', 'radio']
  const { token } = Object(await (await admin.send('POST', '/api/tokens', { name: 'collector', scopes })).json())
  const required = operationsOf(await loaded()).filter(({ requestBody }) => requestBody?.required)
  expect(required.length).toBeGreaterThan(10)
  for (const { name, path, 'x-access': rule } of required) {
    const [method = ''] = name.split(' ')
    const headers = rule.kind === 'token' ? { authorization: `Bearer ${token}` } : {}
    const answer = admin.send(method.toUpperCase(), path.replace(/\{\w+\}/g, '1'), undefined, headers)
    expect(await outcomeOf(answer), name).toBe('400 invalid_json')
  }
})

test('the bounds of a number in a query are documented, and values beyond them or in another notation are refused', async () => {
  const admin = await app.admin()
  const made = await admin.send('POST', '/api/tokens', { name: 'collector', scopes: ['radio'] })
  const { token } = Object(await made.json())
  const integer = z.object({ type: z.literal('integer'), minimum: z.int(), maximum: z.int() })
  const found = operationsOf(await loaded()).flatMap(({ path, parameters, 'x-access': rule }) =>
    parameters.flatMap((one) => {
      const schema = integer.safeParse(one.schema)
      return one.in === 'query' && schema.success ? [{ path, rule, name: one.name, ...schema.data }] : []
    }),
  )
  expect(found).toContainEqual(
    expect.objectContaining({ path: '/api/users', name: 'limit', type: 'integer', minimum: 1, maximum: 500 }),
  )
  for (const { path, rule, name, minimum, maximum } of found) {
    const headers = rule.kind === 'token' ? { authorization: `Bearer ${token}` } : {}
    for (const value of [minimum - 1, maximum + 1, `0${maximum}`, `${maximum}.0`, '%201', '', '1e0']) {
      const asked = `${path.replace(/\{\w+\}/g, '1')}?${name}=${value}`
      expect(await outcomeOf(admin.send('GET', asked, undefined, headers)), asked).toBe('400 invalid_request')
    }
  }
})

test('every operation documents its success, its refusals and the unexpected failure', async () => {
  for (const { name, responses, security, requestBody, ...rest } of operationsOf(await loaded())) {
    const statuses = Object.keys(responses)
    expect(
      statuses.some((status) => /^[23]/.test(status)),
      name,
    ).toBe(true)
    expect(statuses, name).toContain('default')
    const isOpen = rest['x-access'].kind === 'anyone'
    expect(security === undefined, name).toBe(isOpen)
    if (!isOpen) expect(statuses, name).toContain('401')
    if (requestBody) expect(statuses, name).toEqual(expect.arrayContaining(['400', '413', '415']))
    const codes = Object.entries(responses)
      .filter(([, one]) => one.content?.['application/problem+json'])
      .flatMap(([, { description }]) => description.split(', '))
    for (const code of codes) expect(Object.keys(ERRORS), `${name} ${code}`).toContain(code)
  }
})

test('the page uses no script and no other host, and names every operation', async () => {
  const answer = await app.request('/api/docs')
  const page = await answer.text()
  expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
  expect(page).not.toMatch(/<script|\son\w+=|style=|javascript:/i)
  expect(page.match(/(?:src|href)="[^"]*"/g)?.filter((link) => /"(https?:)?\/\//.test(link))).toStrictEqual([])
  for (const { path, summary } of operationsOf(await loaded())) {
    expect(page).toContain(`<code>${path}</code>`)
    expect(page).toContain(summary.replaceAll('&', '&amp;').replaceAll("'", '&#39;').replaceAll('"', '&quot;'))
  }
  expect(page.match(/\/api\/ingest<\/code>.*\s+<em>(.*)<\/em>/)?.[1]).toBe('a token with ingest')
  const links = [...page.matchAll(/href="([^"#]+)"/g)].map(([, link = '']) => link)
  expect(links).toContain('openapi.json')
  for (const link of links) {
    const target = new URL(link, 'http://localhost/api/docs')
    expect((await app.request(target.pathname)).status, link).toBe(200)
  }
})
