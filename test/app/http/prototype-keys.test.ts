import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listOperations } from '../../../src/app/http/openapi/document.ts'
import { findPrototypeKeys } from '../../../src/app/http/prototype-keys.ts'
import { type Client, createTestApp, type TestApp } from '../../support/app.ts'

let app: TestApp
let admin: Client
let token: string

beforeAll(async () => {
  app = await createTestApp()
  admin = await app.admin()
  const made = await admin.send('POST', '/api/tokens', { name: 'ingest', scopes: ['ingest', 'radio'] })
  expect(made.status).toBe(201)
  token = String(Object(await made.json()).token)
})
afterAll(() => app.close())

/** Bodies as text, because an object literal would lose the key, and the path of the key. */
const BODIES: readonly (readonly [body: string, path: string])[] = [
  ['{"__proto__":{"isAdmin":true}}', '__proto__'],
  ['{"constructor":{"prototype":1}}', 'constructor'],
  ['{"values":{"deep":[{"__proto__":1}]}}', 'values.deep.0.__proto__'],
  ['{"\\u005f_proto__":1}', '__proto__'],
  ['[{"secrets":{"prototype":null}}]', '0.secrets.prototype'],
]

const operations = listOperations((await createTestApp()).routes)
const withBody = operations.filter(({ descriptions }) =>
  descriptions.some(({ request }) => request?.part === 'json' || request?.part === 'optional-json'),
)

test('all routes with a body are found', () => {
  const found = withBody.map(({ method, path }) => `${method} ${path}`)
  expect(found).toEqual(
    expect.arrayContaining(['POST /api/auth/login', 'PUT /api/configuration/:section', 'POST /api/ingest']),
  )
  expect(found.length).toBeGreaterThan(15)
})

describe.each(withBody)('$method $path', ({ method, path, rule }) => {
  test.each(BODIES)('refuses %s', async (body, where) => {
    const credentials = rule.kind === 'token' ? { authorization: `Bearer ${token}` } : { cookie: String(admin.cookie) }
    const answer = await app.request(path.replace(/:\w+(\{[^}]*\})?/g, '999999999'), {
      method,
      headers: { 'content-type': 'application/json', ...credentials },
      body,
    })
    const problem = Object(await answer.json())
    expect([answer.status, problem.code]).toStrictEqual([400, 'invalid_request'])
    expect(problem.issues).toContainEqual({ path: where, message: 'a key of this name is not allowed' })
  })
})

test('such words are allowed as values', async () => {
  const answer = await admin.send('PUT', '/api/users/1', { displayName: '__proto__, the constructor of a prototype' })
  expect(answer.status).toBe(200)
})

test('a very deep body is searched completely, and of many keys only some are reported', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(200_000)}{"__proto__":1}${']'.repeat(200_000)}`)
  expect(findPrototypeKeys(deep)).toStrictEqual([
    { path: '0.'.repeat(100), message: 'a key of this name is not allowed' },
  ])
  const many: unknown = JSON.parse(`[${Array.from({ length: 100 }, () => '{"prototype":1}').join()}]`)
  expect(findPrototypeKeys(many)).toHaveLength(50)
})
