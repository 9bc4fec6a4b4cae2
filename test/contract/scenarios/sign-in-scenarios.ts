import { expect, test } from 'vitest'
import { auditOf, type Client, createClient, makeUser, refusal, signIn, USER_PASSWORD } from '../service.ts'

const NOTHING = { read: false, write: false }

/** Signing in and out, passwords and sessions. */
export function signInScenarios(admin: () => Client): void {
  test('anonymous: no user, no permission, no cookie', async () => {
    const answer = await createClient(admin().service).send('GET', '/api/auth/status')
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      authenticated: false,
      user: null,
      permissions: { nodes: NOTHING, info: NOTHING },
    })
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('login sets an HttpOnly cookie and is recorded; the name is case-insensitive', async () => {
    const client = createClient(admin().service)
    const id = await makeUser(admin(), 'Lena')
    const answer = await client.send('POST', '/api/auth/login', { username: 'lena', password: USER_PASSWORD })
    expect(answer).toMatchObject({ status: 200, body: { user: { id, username: 'Lena' }, mustChangePassword: false } })
    expect(answer.headers.get('set-cookie')).toMatch(/^mesh_session=.+; HttpOnly; SameSite=Lax$/)
    expect((await client.send('GET', '/api/auth/status')).body).toMatchObject({ authenticated: true, user: { id } })
    expect(await auditOf(admin(), 'login_success')).toContainEqual(
      expect.objectContaining({ userId: id, ip: expect.stringMatching(/^198\.51\.100\.\d+$/) }),
    )
  })

  test('a wrong password and an unknown name get one answer', async () => {
    await makeUser(admin(), 'mara')
    const wrong = await login(createClient(admin().service), 'mara', 'not the password')
    const unknown = await login(createClient(admin().service), 'nobody at all', 'not the password')
    expect(wrong).toMatchObject(refusal(401, 'invalid_credentials'))
    expect({ ...Object(unknown.body), requestId: '' }).toEqual({ ...Object(wrong.body), requestId: '' })
    expect((await auditOf(admin(), 'login_failed')).map(({ username }) => username)).toEqual(
      expect.arrayContaining(['mara', 'nobody at all']),
    )
  })

  test('an account is locked after three failures, wherever they came from', async () => {
    await makeUser(admin(), 'nina')
    for (let i = 0; i < 3; i++) {
      expect((await login(createClient(admin().service), 'nina', 'not the password')).status).toBe(401)
    }
    const right = await login(createClient(admin().service), 'nina', USER_PASSWORD)
    expect(right).toMatchObject(refusal(429, 'rate_limited'))
    expect(Number(right.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('a browser that signed in before still gets in, and has its own count', async () => {
    await makeUser(admin(), 'nora')
    const first = await login(createClient(admin().service), 'nora', USER_PASSWORD)
    const cookie = String(first.headers.getSetCookie().find((line) => line.startsWith('mesh_browser='))).split(';')[0]
    const here = (password: string) =>
      createClient(admin().service).send(
        'POST',
        '/api/auth/login',
        { username: 'nora', password },
        { cookie: cookie ?? '' },
      )
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await login(createClient(admin().service), 'nora', 'wrong')).status)
    expect(statuses).toEqual([401, 401, 401, 429])
    expect((await here(USER_PASSWORD)).status).toBe(200)
    for (let i = 0; i < 3; i++) expect((await here('wrong')).status).toBe(401)
    expect(await here(USER_PASSWORD)).toMatchObject(refusal(429, 'rate_limited'))
  })

  test('the user of a locked account can change the password, and can sign in after a reset', async () => {
    const id = await makeUser(admin(), 'nele')
    const client = await signIn(admin().service, 'nele')
    for (let i = 0; i < 3; i++) await login(createClient(admin().service), 'nele', 'wrong')
    expect((await login(createClient(admin().service), 'nele', USER_PASSWORD)).status).toBe(429)
    const change = { currentPassword: USER_PASSWORD, newPassword: 'another long password' }
    expect((await client.send('POST', '/api/auth/change-password', change)).status).toBe(204)
    const { password } = Object((await admin().send('POST', `/api/users/${id}/reset-password`)).body)
    await signIn(admin().service, 'nele', password)
  })

  test('an address is blocked after three failures, whatever the names', async () => {
    const client = createClient(admin().service)
    for (const name of ['x1', 'x2', 'x3']) expect((await login(client, name, 'wrong')).status).toBe(401)
    expect((await login(client, 'x4', 'wrong')).status).toBe(429)
    expect((await login(createClient(admin().service), 'x4', 'wrong')).status).toBe(401)
  })

  test('changing the password ends the other sessions and renews that of the caller', async () => {
    await makeUser(admin(), 'olga')
    const [here, there] = [await signIn(admin().service, 'olga'), await signIn(admin().service, 'olga')]
    const before = here.cookie
    const change = (currentPassword: string, newPassword: string) =>
      here.send('POST', '/api/auth/change-password', { currentPassword, newPassword })
    expect(await change('not the password', 'another long password')).toMatchObject(refusal(403, 'wrong_password'))
    expect(await change(USER_PASSWORD, 'short')).toMatchObject(refusal(422, 'weak_password'))
    expect((await change(USER_PASSWORD, 'another long password')).status).toBe(204)
    expect(here.cookie).not.toBe(before)
    expect(await isSignedIn(here)).toBe(true)
    expect(await isSignedIn(there)).toBe(false)
    expect((await login(createClient(admin().service), 'olga', USER_PASSWORD)).status).toBe(401)
    await signIn(admin().service, 'olga', 'another long password')
  })

  test('a reset password is temporary: it only allows changing it', async () => {
    const id = await makeUser(admin(), 'petra')
    const before = await signIn(admin().service, 'petra')
    const reset = await admin().send('POST', `/api/users/${id}/reset-password`)
    const { password } = Object(reset.body)
    expect(password).toMatch(/^[A-Za-z0-9]{20}$/)
    expect(await isSignedIn(before)).toBe(false)
    const client = await signIn(admin().service, 'petra', password)
    expect((await client.send('GET', '/api/auth/status')).body).toMatchObject({ mustChangePassword: true })
    expect(await client.send('GET', '/api/tokens')).toMatchObject(refusal(403, 'password_change_required'))
    const body = { currentPassword: password, newPassword: 'another long password' }
    expect((await client.send('POST', '/api/auth/change-password', body)).status).toBe(204)
    expect((await client.send('GET', '/api/tokens')).status).toBe(200)
  })

  test('sessions are listed, and end one by one or all others at once', async () => {
    await makeUser(admin(), 'rosa')
    const [one, two, three] = await Promise.all(['rosa', 'rosa', 'rosa'].map((name) => signIn(admin().service, name)))
    if (!one || !two || !three) throw new Error('three were asked for')
    const { sessions } = Object((await one.send('GET', '/api/auth/sessions')).body)
    expect(sessions).toHaveLength(3)
    expect(sessions.filter(({ current }: { current: boolean }) => current)).toHaveLength(1)
    const [own] = Object((await two.send('GET', '/api/auth/sessions')).body).sessions.filter(
      ({ current }: { current: boolean }) => current,
    )
    expect((await one.send('DELETE', `/api/auth/sessions/${own.id}`)).status).toBe(204)
    expect(await isSignedIn(two)).toBe(false)
    expect(await one.send('DELETE', `/api/auth/sessions/${own.id}`)).toMatchObject(refusal(404, 'not_found'))
    expect((await one.send('DELETE', '/api/auth/sessions')).status).toBe(204)
    expect([await isSignedIn(one), await isSignedIn(three)]).toEqual([true, false])
  })

  test('e-mails about accounts are off without a mail server, and the status says so', async () => {
    const id = await makeUser(admin(), 'tom')
    const tom = await signIn(admin().service, 'tom')
    const anonymous = createClient(admin().service)
    expect((await tom.send('GET', '/api/auth/status')).body).toMatchObject({
      accountMail: false,
      user: { email: null, emailVerified: false },
    })
    const off = refusal(404, 'account_mail_disabled')
    expect(await anonymous.send('POST', '/api/auth/password-reset', { username: 'tom' })).toMatchObject(off)
    expect(await tom.send('PUT', '/api/auth/email', { email: 'tom@example.org' })).toMatchObject(off)
    const invited = { username: 'uta', email: 'uta@example.org', invite: true }
    expect(await admin().send('POST', '/api/users', invited)).toMatchObject(off)
    const token = 'x'.repeat(43)
    const dead = refusal(410, 'link_invalid')
    expect(await anonymous.send('POST', '/api/auth/links', { token })).toMatchObject(dead)
    const password = USER_PASSWORD
    expect(await anonymous.send('POST', '/api/auth/password-reset/confirm', { token, password })).toMatchObject(dead)
    expect(await anonymous.send('POST', '/api/auth/invitation', { token, password })).toMatchObject(dead)
    expect(await anonymous.send('POST', '/api/auth/email/confirm', { token })).toMatchObject(dead)
    expect((await admin().send('GET', `/api/users/${id}/invitation`)).body).toEqual({ invitation: null, byMail: false })
    expect((await admin().send('PUT', `/api/users/${id}`, { email: 'tom@example.org' })).body).toMatchObject({
      user: { email: 'tom@example.org', emailVerified: false },
    })
  })

  test('logout clears the cookie and ends the session; a tampered cookie is anonymous', async () => {
    await makeUser(admin(), 'sina')
    const client = await signIn(admin().service, 'sina')
    const { cookie } = client
    const tampered = (cookie ?? '').replace(/=./, (start) => (start === '=A' ? '=B' : '=A'))
    expect((await client.send('GET', '/api/auth/sessions', undefined, { cookie: tampered })).status).toBe(401)
    expect(await client.send('POST', '/api/auth/logout')).toMatchObject({ status: 200, body: { logoutUrl: null } })
    expect(client.cookie).toBe(null)
    client.cookie = cookie
    expect(await isSignedIn(client)).toBe(false)
  })
}

function login(client: Client, username: string, password: string) {
  return client.send('POST', '/api/auth/login', { username, password })
}

async function isSignedIn(client: Client): Promise<boolean> {
  return Object((await client.send('GET', '/api/auth/status')).body).authenticated
}
