import { afterEach, describe, expect, test } from 'vitest'
import { factorsOf } from '../../../../src/app/accounts/oidc/protocol/claims.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditedBy } from '../../../support/answers.ts'
import { type Client, createTestApp, moveToProvider, type TestApp } from '../../../support/app.ts'
import { enrol } from '../../../support/factors/cookie-client.ts'

let app: TestApp
afterEach(() => app.close())

const isMissing = async (client: Client) =>
  Object(await (await client.send('GET', '/api/auth/status')).json()).secondFactor.isMissing

describe.each([
  ['none', { admin: '200', user: '200' }],
  ['admins', { admin: '403 second_factor_required', user: '200' }],
  ['all', { admin: '403 second_factor_required', user: '403 second_factor_required' }],
])('REQUIRE_SECOND_FACTOR=%s, on a running service', (policy, expected) => {
  test('users without a second factor can only enrol, and afterwards do everything', async () => {
    app = await createTestApp()
    const user = await app.user('anna')
    const admin = await app.admin()
    const made = await user.send('POST', '/api/tokens', { name: 'one', scopes: ['nodes:read'] })
    const { token } = Object(await made.json())
    Object.assign(app.ports, { config: { ...app.ports.config, REQUIRE_SECOND_FACTOR: policy } })
    for (const [client, outcome] of [
      [admin, expected.admin],
      [user, expected.user],
    ] as const) {
      const audited = await auditedBy(app, async () => {
        expect(await outcomeOf(client.send('GET', '/api/nodes'))).toBe(outcome)
        expect(await outcomeOf(client.send('GET', '/api/auth/sessions'))).toBe(outcome)
        expect(await outcomeOf(client.send('GET', '/api/auth/factors'))).toBe('200')
        expect(await isMissing(client)).toBe(outcome !== '200')
      })
      expect(audited).toEqual([])
      await enrol(app, client)
      expect(await outcomeOf(client.send('GET', '/api/nodes'))).toBe('200')
      expect(await isMissing(client)).toBe(false)
      expect((await client.send('DELETE', '/api/auth/factors/totp')).status).toBe(204)
      expect(await outcomeOf(client.send('GET', '/api/nodes'))).toBe(outcome)
    }
    const headers = { authorization: `Bearer ${token}` }
    expect(await outcomeOf(app.client().send('GET', '/api/nodes', undefined, headers))).toBe('200')
  })
})

test.each([
  ['admins', 1, '200'],
  ['all', 1, '403 second_factor_required'],
  ['all', 2, '200'],
  ['all', null, '200'],
] as const)('policy %s, a provider that reports %s factors: %s', async (policy, factors, outcome) => {
  app = await createTestApp()
  const anna = await app.user('anna')
  moveToProvider(app, [anna.id])
  Object.assign(app.ports, { config: { ...app.ports.config, REQUIRE_SECOND_FACTOR: policy } })
  app.store.sqlite.prepare('update sessions set oidc_issuer = ?, factors = ?').run('https://id.example.org', factors)
  expect(await outcomeOf(anna.send('GET', '/api/nodes'))).toBe(outcome)
})

test.each([
  [['pwd'], 1],
  [['pwd', 'otp'], 2],
  [['mfa'], 2],
  [['hwk', 'user'], 2],
  [['__proto__'], 1],
  [[{}, null, 7], 1],
  [[], null],
  ['mfa', null],
  [undefined, null],
])('amr %j means %s factors', (amr, factors) => {
  expect(factorsOf({ amr })).toBe(factors)
})
