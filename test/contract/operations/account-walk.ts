import { expect } from 'vitest'
import { createAuthenticator } from '../../support/factors/authenticator.ts'
import { codeAt } from '../../support/factors/oathtool.ts'
import { ADMIN_PASSWORD, type Client, USER_PASSWORD } from '../service.ts'
import type { Walker } from './walker.ts'

/** Accounts, ways to sign in, and what administrators do with users. */
export async function walkAccounts(walker: Walker): Promise<void> {
  await walkFactors(walker)
  await walkUsers(walker)
  await walkProviders(walker)
  await walkMail(walker)
  await walkOwn(walker)
}

async function walkOwn(walker: Walker): Promise<void> {
  const { call } = walker
  await call('POST /api/users', { body: { username: 'own', password: USER_PASSWORD } })
  const by = await walker.signIn('own')
  await walker.signIn('own')
  await call('GET /api/auth/status', { by })
  await call('PUT /api/auth/preferences', { by, body: { language: 'de', units: 'metric' } })
  await call('GET /api/auth/sign-ins', { by })
  const { sessions } = await call('GET /api/auth/sessions', { by })
  const other = Object(sessions).find(({ current }: { current: boolean }) => !current)
  await call('DELETE /api/auth/sessions/:id', { by, ids: [other.id] })
  await call('DELETE /api/auth/sessions', { by })
  await call('POST /api/tokens', { by, body: { name: 'mine', scopes: ['nodes:read'] } })
  const { tokens } = await call('GET /api/tokens', { by })
  await call('DELETE /api/tokens/:id', { by, ids: [Object(tokens)[0].id] })
  const newPassword = 'another password for everyone'
  await call('POST /api/auth/change-password', { by, body: { currentPassword: USER_PASSWORD, newPassword } })
  await call('POST /api/auth/logout', { by })
}

async function walkFactors(walker: Walker): Promise<void> {
  const { call, callForCookies } = walker
  const { user } = await call('POST /api/users', { body: { username: 'otto', password: USER_PASSWORD } })
  const by = await walker.signIn('otto')
  await call('GET /api/auth/reauthenticate', { by })
  await call('POST /api/auth/reauthenticate', { by, body: { password: USER_PASSWORD } })
  const { secret, enrolment } = await call('POST /api/auth/factors/totp', { by })
  const code = codeAt(String(secret), Date.now())
  await call('POST /api/auth/factors/totp/confirm', { by, body: { enrolment, code } })
  const { recoveryCodes } = await call('POST /api/auth/factors/recovery-codes', { by })
  await call('GET /api/auth/factors', { by })

  const passkey = createAuthenticator(by.service.url.origin)
  const ask = async (path: string, by: Client, given = '') => {
    const headers = { cookie: [by.cookie, given].filter((one) => one !== null && one !== '').join('; ') }
    const [asked, cookie] = await callForCookies(`POST ${path}`, { by, headers })
    return [String(Object(asked['options']).challenge), [headers.cookie, cookie].join('; ')] as const
  }
  const [challenge, cookie] = await ask('/api/auth/factors/passkeys/options', by)
  const made = { name: 'soft', response: passkey.create(challenge) }
  await call('POST /api/auth/factors/passkeys', { by, body: made, headers: { cookie } })
  const [again, bound] = await ask('/api/auth/reauthenticate/options', by)
  await call('POST /api/auth/reauthenticate', { by, body: { passkey: passkey.get(again) }, headers: { cookie: bound } })

  const login = { username: 'otto', password: USER_PASSWORD }
  const begin = async () => {
    const stranger = walker.stranger()
    return [stranger, (await callForCookies('POST /api/auth/login', { by: stranger, body: login }))[1]] as const
  }
  const enter = async (by: Client, factor: string, cookie: string, body: object) =>
    expect(await call(`POST /api/auth/login/${factor}`, { by, body, headers: { cookie } })).toHaveProperty('user')
  const [first, attempt] = await begin()
  await enter(first, 'totp', attempt, { code: codeAt(String(secret), Date.now() + 30_000) })
  const [second, other] = await begin()
  await enter(second, 'recovery', other, { code: Object(recoveryCodes)[0] })
  const alone = walker.stranger()
  const [last, jar] = await ask('/api/auth/login/passkey/options', alone)
  await enter(alone, 'passkey', jar.replace(/^; /, ''), { response: passkey.get(last) })

  const { passkeys } = await call('GET /api/auth/factors', { by })
  await call('DELETE /api/auth/factors/passkeys/:id', { by, ids: [Object(passkeys)[0].id] })
  await call('DELETE /api/auth/factors/totp', { by })
  const { secret: next, enrolment: anew } = await call('POST /api/auth/factors/totp', { by })
  const body = { enrolment: anew, code: codeAt(String(next), Date.now()) }
  await call('POST /api/auth/factors/totp/confirm', { by, body })
  await call('POST /api/users/:id/reset-second-factor', { ids: [Object(user).id] })
  await call('DELETE /api/auth/factors/reset-notice', { by: await walker.signIn('otto') })
}

async function walkUsers(walker: Walker): Promise<void> {
  const { call } = walker
  const { user } = await call('POST /api/users', { body: { username: 'anna', password: USER_PASSWORD } })
  const ids = [Object(user).id]
  const anna = await walker.signIn('anna')
  await walker.signIn('anna')
  await call('GET /api/users')
  await call('GET /api/users/:id', { ids })
  await call('PUT /api/users/:id', { ids, body: { displayName: 'Anna' } })
  await call('GET /api/users/:id/permissions', { ids })
  const read = { read: true, write: false }
  const permissions = { dashboard: read, nodes: read, messages: read, info: read }
  await call('PUT /api/users/:id/permissions', { ids, body: { permissions } })
  await call('PUT /api/users/:id/admin', { ids, body: { isAdmin: false } })
  await call('POST /api/tokens', { by: anna, body: { name: 'a', scopes: ['nodes:read'] } })
  await call('POST /api/tokens', { by: anna, body: { name: 'b', scopes: ['nodes:read'] } })
  const { tokens } = await call('GET /api/users/:id/tokens', { ids })
  await call('DELETE /api/users/:id/tokens/:tokenId', { ids: [...ids, Object(tokens)[0].id] })
  await call('DELETE /api/users/:id/tokens', { ids })
  const hook = { kind: 'webhook', name: 'Hook', settings: { url: 'https://hook.example/' } }
  await call('POST /api/alerts/destinations', { by: anna, body: hook })
  await call('POST /api/alerts/destinations', { by: anna, body: { ...hook, name: 'Other' } })
  const { destinations } = await call('GET /api/users/:id/destinations', { ids })
  await call('DELETE /api/users/:id/destinations/:destinationId', { ids: [...ids, Object(destinations)[0].id] })
  await call('DELETE /api/users/:id/destinations', { ids })
  const { sessions } = await call('GET /api/users/:id/sessions', { ids })
  await call('DELETE /api/users/:id/sessions/:sessionId', { ids: [...ids, Object(sessions)[0].id] })
  await call('DELETE /api/users/:id/sessions', { ids })
  await call('POST /api/users/:id/reset-password', { ids })
  const viewing = await walker.signIn('admin', ADMIN_PASSWORD)
  await call('POST /api/users/:id/see-as', { ids, by: viewing })
  await call('DELETE /api/users/:id', { ids })
}

/** No provider is configured: the same refusals everywhere. test/contract/oidc has the rest on both. */
async function walkProviders({ call, stranger }: Walker): Promise<void> {
  const by = stranger()
  await call('GET /api/auth/oidc/login', { by })
  await call('GET /api/auth/oidc/callback', { by, query: '?state=x&code=x' })
  await call('GET /api/auth/oidc/callback/:provider', { by, ids: ['club'], query: '?state=x&code=x' })
  await call('GET /api/auth/oidc/providers')
  await call('POST /api/auth/oidc/providers/:provider/test', { ids: ['club'] })
  await call('GET /api/auth/oidc/link')
  await call('POST /api/auth/oidc/link', { body: {} })
  await call('DELETE /api/auth/oidc/link', { query: '?issuer=https%3A%2F%2Fidp.example' })
  await call('POST /api/auth/oidc/backchannel-logout', { by })
  await call('GET /api/auth/proxy/login', { by })
  const { user } = await call('POST /api/users/prepared', { body: { username: 'prepared' } })
  const ids = [Object(user).id ?? 1]
  await call('POST /api/users/:id/invitation', { ids, body: {} })
  await call('GET /api/users/:id/invitation', { ids })
  await call('DELETE /api/users/:id/invitation', { ids })
  await call('GET /api/users/:id/provider-role', { ids: [1] })
  await call('PUT /api/users/:id/provider-role', { ids: [1], body: { provider: null } })
  await call('DELETE /api/users/:id/link', { ids: [1], query: '?issuer=https%3A%2F%2Fidp.example' })
}

/** Nothing sends e-mail here. */
async function walkMail({ call, stranger }: Walker): Promise<void> {
  const by = stranger()
  const token = 'x'.repeat(43)
  const password = 'a password for nobody at all'
  await call('POST /api/auth/password-reset', { by, body: { username: 'admin' } })
  await call('POST /api/auth/password-reset/confirm', { by, body: { token, password } })
  await call('PUT /api/auth/email', { body: { email: 'admin@mesh.example' } })
  await call('POST /api/auth/email/link')
  await call('POST /api/auth/email/confirm', { by, body: { token } })
  await call('POST /api/auth/links', { by, body: { token } })
  await call('POST /api/auth/invitation', { by, body: { token, password } })
}
