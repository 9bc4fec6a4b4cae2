import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Client, createTestApp, START, type TestApp } from '../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const RULE = { kind: 'node_new', name: 'New nodes' }
const NOON = Date.UTC(2026, 0, 15, 12)

async function mutedUntil(time: unknown) {
  const answer = await admin.send('POST', '/api/alerts/rules', { ...RULE, silencedUntil: time })
  return { status: answer.status, body: Object(await answer.json()) }
}

test.each([
  [NOON, NOON],
  ['2026-01-15T12:00:00Z', NOON],
  ['2026-01-15T12:00:00.25Z', NOON + 250],
  ['2026-01-15T12:00Z', NOON],
  ['2026-01-15T13:00:00+01:00', NOON],
  ['2026-01-15T07:00:00-05:00', NOON],
  // A day begins in UTC, as in a query.
  ['2026-01-15', NOON - 12 * 3_600_000],
  [null, null],
])('a body takes the time %j, and answers with milliseconds', async (given, ms) => {
  expect(await mutedUntil(given)).toMatchObject({ status: 201, body: { rule: { rule: { silencedUntil: ms } } } })
})

test.each([
  ['2026-01-15T12:00:00', 'its zone'],
  ['2026-01-15 12:00', 'its zone'],
  ['2026-01-15 12:00Z', 'such as 2026-01-15T12:00:00Z'],
  // In a query a plus may arrive as a space; a body has no such excuse.
  ['2026-01-15T13:00:00 01:00', 'such as'],
  ['2026-02-30', 'such as'],
  ['2026-01-15T25:00Z', 'such as'],
  ['1960-01-01', 'such as'],
  ['tomorrow', 'such as'],
  ['1768478400000', 'such as'],
  ['', 'such as'],
  ['9'.repeat(41), '40 characters'],
  [1.5, 'such as'],
  [true, 'such as'],
  [[NOON], 'such as'],
])('a body with the time %j is refused, and says why', async (given, words) => {
  const { status, body } = await mutedUntil(given)
  expect([status, body.code, body.issues]).toStrictEqual([
    400,
    'invalid_request',
    [{ path: 'silencedUntil', message: expect.stringContaining(words) }],
  ])
})

test('a query refuses a time without its zone in the same words', async () => {
  const answer = await admin.send('GET', '/api/audit?from=2026-01-15T12:00:00')
  expect(Object(await answer.json())).toMatchObject({
    status: 400,
    issues: [{ path: 'from', message: expect.stringContaining('its zone') }],
  })
  expect((await admin.send('GET', '/api/audit?from=2026-01-15T13:00:00+01:00')).status).toBe(200)
})

test('times inside of lists, and times that a body repeats, have both forms too', async () => {
  const body = { ...RULE, silencedNodes: [{ node: 5, until: '2026-01-15T12:00:00Z' }] }
  const made = await admin.send('POST', '/api/alerts/rules', body)
  expect(Object(await made.json()).rule.rule.silencedNodes).toStrictEqual([{ node: 5, until: NOON }])
  const path = `/api/users/${(await app.user('anna')).id}`
  const same = await admin.send('PUT', path, { createdAt: new Date(START).toISOString(), displayName: 'Anna' })
  expect(same.status).toBe(200)
  const other = await admin.send('PUT', path, { createdAt: new Date(START + 1000).toISOString() })
  expect(Object(await other.json()).issues).toMatchObject([{ path: 'createdAt' }])
})

test('the API document describes both forms in bodies, and milliseconds in answers', async () => {
  const document = Object(await (await app.request('/api/openapi.json')).json())
  const { schemas } = document.components
  expect(schemas.TimeInput.anyOf.map(({ type }: { type: string }) => type)).toStrictEqual(['integer', 'string'])
  expect(schemas.TimeInput.description).toContain('ISO 8601')
  const fields = Object.values<{ properties?: { silencedUntil?: object } }>(schemas).flatMap(
    ({ properties }) => JSON.stringify(properties?.silencedUntil) ?? [],
  )
  const given = fields.filter((text) => text.includes('/TimeInput"'))
  const answered = fields.filter((text) => text.includes('/Time"'))
  expect(given.length).toBeGreaterThan(0)
  expect([given.length, answered.length]).toStrictEqual([fields.length / 2, fields.length / 2])
})
