import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import { parseConfig } from '../../src/app/config/config.ts'
import { createAddressing } from '../../src/node/http/client-address.ts'
import { listen, type Listening } from '../../src/node/http/server.ts'
import { ADMIN_PASSWORD, auditRows, createTestApp, type TestApp } from '../support/app.ts'

let app: TestApp
let server: Listening
let end: (() => Promise<void>) | null = null
afterEach(async () => end?.())

/** The app on a real port, behind a proxy at one of these addresses. */
async function serve(proxies: string[], env: Record<string, string> = {}): Promise<void> {
  await end?.()
  const named = { PROXY_AUTH_HEADER: 'Remote-User', TRUSTED_PROXIES: '127.0.0.1' }
  app = await createTestApp({ env: { ...named, ...env } })
  const ports = { ...app.ports, ...createAddressing(proxies, app.ports.log, app.ports.config.PROXY_AUTH_HEADER) }
  server = await listen(createApp(() => ports).fetch, 0, '127.0.0.1')
  end = async () => {
    end = null
    await server.close(0)
    app.close()
  }
}

type Answer = {
  readonly status: number
  readonly location: string | undefined
  readonly cookie: string | null
  readonly body: string
}

/** A request with exactly these headers, repeated ones included. */
function ask(path: string, headers: readonly string[]): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const outgoing = request({ port: server.port, host: '127.0.0.1', path, headers: ['Host', 'localhost', ...headers] })
  outgoing.on('error', reject)
  outgoing.on('response', (answer) => {
    let body = ''
    answer.on('data', (chunk) => (body += String(chunk)))
    answer.on('end', () => {
      const set = answer.headers['set-cookie']?.find((cookie) => cookie.startsWith('mesh_session='))
      const { statusCode: status = 0, headers: told } = answer
      resolve({ status, location: told.location, cookie: set?.split(';')[0] ?? null, body })
    })
  })
  outgoing.end()
  return promise
}

const LOGIN = '/api/auth/proxy/login'
const whoIs = async (...headers: string[]) => Object(JSON.parse((await ask('/api/auth/status', headers)).body)).user

describe('behind an authenticating proxy', () => {
  beforeEach(() => serve(['127.0.0.1']))

  test('a user whom it names gets an account with the default permissions, and a session as long as it names them', async () => {
    const entered = await ask(`${LOGIN}?returnTo=/nodes`, ['Remote-User', 'anna'])
    expect(entered).toMatchObject({ status: 302, location: '/nodes' })
    const cookie = ['Cookie', entered.cookie ?? '']
    expect(await whoIs(...cookie, 'Remote-User', 'anna')).toMatchObject({ username: 'anna', isAdmin: false })
    expect(await whoIs(...cookie)).toBeNull()
    expect(await whoIs(...cookie, 'Remote-User', 'bert')).toBeNull()
    const rows = auditRows(app).slice(1)
    expect(rows.map(({ action }) => action)).toEqual(['oidc_user_created', 'login_success'])
    expect(rows[1]).toMatchObject({ username: 'anna', details: { provider: 'proxy' } })
    // The header alone does not make a session.
    expect(await whoIs('Remote-User', 'anna')).toBeNull()
  })

  test('a provider that is linked as well changes nothing about whom the proxy must name', async () => {
    const { cookie } = await ask(LOGIN, ['Remote-User', 'anna'])
    const own = ['Cookie', cookie ?? '']
    app.store.sqlite.exec(`update users set oidc_issuer = 'https://id.example.org' where username = 'anna';
      insert into identities (user_id, issuer, subject, created_at)
        select id, oidc_issuer, 'bert', 1 from users where username = 'anna'`)
    expect(await whoIs(...own, 'Remote-User', 'anna')).toMatchObject({ username: 'anna', oidcSubject: 'bert' })
    expect(await whoIs(...own, 'Remote-User', 'bert')).toBeNull()
  })

  test('nobody is linked by name: a local user with that name keeps the account', async () => {
    const { cookie } = await ask(LOGIN, ['Remote-User', 'admin'])
    expect(await whoIs('Cookie', cookie ?? '', 'Remote-User', 'admin')).toMatchObject({
      username: 'admin-2',
      isAdmin: false,
    })
    const admin = await app.signIn('admin', ADMIN_PASSWORD)
    expect(await whoIs('Cookie', admin.cookie ?? '')).toMatchObject({ username: 'admin', isAdmin: true })
  })

  test.each([
    ['none', []],
    ['an empty one', ['Remote-User', '']],
    ['two', ['Remote-User', 'anna', 'Remote-User', 'bert']],
    ['two that differ in case', ['Remote-User', 'anna', 'REMOTE-USER', 'bert']],
    ['one with an underscore', ['Remote_User', 'anna']],
    ['one with an underscore beside it', ['Remote-User', 'anna', 'Remote_User', 'bert']],
    ['one with a dot beside it', ['Remote-User', 'anna', 'Remote.User', 'bert']],
    ['one that is not UTF-8', ['Remote-User', 'an\xffna']],
    ['one with a control character', ['Remote-User', 'an\tna']],
    ['one that is too long', ['Remote-User', 'x'.repeat(256)]],
  ])('headers that sign nobody in: %s', async (_what, headers) => {
    expect((await ask(LOGIN, headers)).status).toBe(404)
  })

  test('the header may be in another case, and its value in UTF-8', async () => {
    expect((await ask(LOGIN, ['remote-user', 'anna'])).status).toBe(302)
    const { cookie } = await ask(LOGIN, ['Remote-User', Buffer.from('Jürgen').toString('latin1')])
    const named = await whoIs('Cookie', cookie ?? '', 'Remote-User', Buffer.from('Jürgen').toString('latin1'))
    expect(named).toMatchObject({ username: 'Jurgen', oidcSubject: 'Jürgen' })
  })

  test('a deactivated user, and an unknown user without auto-creation, are refused and recorded', async () => {
    await ask(LOGIN, ['Remote-User', 'anna'])
    app.store.sqlite.exec("update users set is_active = 0 where username = 'anna'")
    expect((await ask(LOGIN, ['Remote-User', 'anna'])).location).toBe('/login?error=oidc_user_inactive')
    await serve(['127.0.0.1'], { OIDC_AUTO_CREATE_USERS: 'false' })
    expect((await ask(LOGIN, ['Remote-User', 'anna'])).location).toBe('/login?error=oidc_user_unknown')
    expect(auditRows(app).at(-1)).toMatchObject({ action: 'oidc_login_failed', details: { subject: 'anna' } })
  })
})

test('the header is ignored from any other address', async () => {
  await serve(['192.0.2.1'])
  expect((await ask(LOGIN, ['Remote-User', 'anna'])).status).toBe(404)
  expect((await ask(LOGIN, ['Remote-User', 'anna', 'X-Forwarded-For', '192.0.2.1'])).status).toBe(404)
  await serve([])
  expect((await ask(LOGIN, ['Remote-User', 'anna'])).status).toBe(404)
})

test('the header is ignored without the setting, and the setting needs the address of a proxy', async () => {
  await serve(['127.0.0.1'], { PROXY_AUTH_HEADER: '' })
  expect((await ask(LOGIN, ['Remote-User', 'anna'])).status).toBe(404)
  const problems = (env: Record<string, string>) => {
    const read = parseConfig(env)
    return read.ok ? [] : read.problems.map((line) => line.split(':')[0])
  }
  expect(problems({ PROXY_AUTH_HEADER: 'Remote-User' })).toEqual(['TRUSTED_PROXIES'])
  for (const name of ['Remote_User', 'X-Forwarded-For', 'Cookie', 'a b']) {
    expect(problems({ PROXY_AUTH_HEADER: name, TRUSTED_PROXIES: '10.0.0.1' })).toEqual(['PROXY_AUTH_HEADER'])
  }
})
