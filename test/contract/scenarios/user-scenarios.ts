import { expect, test } from 'vitest'
import { auditOf, type Client, createClient, makeUser, refusal, signIn, statuses, USER_PASSWORD } from '../service.ts'

const RESOURCES = ['dashboard', 'nodes', 'messages', 'settings', 'configuration', 'info', 'automation']
const READABLE = ['dashboard', 'nodes', 'messages', 'info']

/** The permissions that belong to the role. */
function permissionsOf(isAdmin: boolean): Record<string, { read: boolean; write: boolean }> {
  return Object.fromEntries(
    RESOURCES.map((name) => [name, { read: isAdmin || READABLE.includes(name), write: isAdmin }]),
  )
}

/** The id of the user whom an entry is about. */
function subjectOf(entry: Record<string, unknown> | undefined): unknown {
  return Object(entry?.['details']).userId
}

/** Accounts, roles, permissions and tokens. */
export function userScenarios(admin: () => Client): void {
  test('a user is created, found, changed, deactivated and reactivated', async () => {
    const body = { username: 'Anna', password: USER_PASSWORD, email: 'anna@example.org', displayName: 'Anna A.' }
    const made = await admin().send('POST', '/api/users', body)
    const { user } = Object(made.body)
    expect(made).toMatchObject({ status: 201, body: { user: { username: 'Anna', isAdmin: false, isActive: true } } })
    expect(made.headers.get('location')).toBe(`/api/users/${user.id}`)
    expect((await admin().send('GET', `/api/users/${user.id}`)).body).toEqual({
      user: { ...user, secondFactor: [] },
    })
    expect((await admin().send('GET', '/api/users?q=ANNA%40&limit=1')).body).toEqual({
      users: [{ ...user, secondFactor: [] }],
      total: 1,
    })
    const changed = await admin().send('PUT', `/api/users/${user.id}`, { username: 'anne', displayName: null })
    expect(changed).toMatchObject({ status: 200, body: { user: { username: 'anne', displayName: null } } })

    const session = await signIn(admin().service, 'anne')
    expect((await admin().send('DELETE', `/api/users/${user.id}`)).status).toBe(204)
    expect((await admin().send('DELETE', `/api/users/${user.id}`)).status).toBe(204)
    expect((await session.send('GET', '/api/auth/sessions')).status).toBe(401)
    expect((await admin().send('PUT', `/api/users/${user.id}`, { isActive: true })).status).toBe(200)
    expect((await session.send('GET', '/api/auth/sessions')).status).toBe(401)
    const deletions = (await auditOf(admin(), 'user_deleted')).filter(
      ({ details }) => Object(details).userId === user.id,
    )
    expect(deletions).toMatchObject([{ details: { before: { isActive: true }, after: { isActive: false } } }])
  })

  test('a username is given once, without regard to case, even to simultaneous requests', async () => {
    const make = (username: string) => admin().send('POST', '/api/users', { username, password: USER_PASSWORD })
    const answers = await Promise.all(['Berta', 'berta', 'BERTA'].map(make))
    expect(statuses(answers)).toEqual([201, 409, 409])
    expect(await make('bertA')).toMatchObject(refusal(409, 'username_taken'))
    const entries = await auditOf(admin(), 'user_created')
    expect(entries.filter(({ details }) => /berta/i.test(Object(details).username))).toHaveLength(1)
    const other = await makeUser(admin(), 'bernd')
    expect(await admin().send('PUT', `/api/users/${other}`, { username: 'BERTA' })).toMatchObject(
      refusal(409, 'username_taken'),
    )
  })

  test('a search text may be as long as the contract says', async () => {
    const found = await admin().send('GET', `/api/users?q=${'x'.repeat(200)}`)
    expect(found).toMatchObject({ status: 200, body: { users: [], total: 0 } })
    expect((await admin().send('GET', `/api/audit?q=${'%25_'.repeat(60)}`)).body).toEqual({
      entries: [],
      nextCursor: null,
    })
    expect(await admin().send('GET', `/api/users?q=${'x'.repeat(201)}`)).toMatchObject(refusal(400, 'invalid_request'))
  })

  test('input out of bounds is refused with its path', async () => {
    const weak = await admin().send('POST', '/api/users', { username: 'weak', password: 'short' })
    expect(weak).toMatchObject({ ...refusal(422, 'weak_password'), body: { issues: [{ path: 'password' }] } })
    const unknownField = { username: 'extra', password: USER_PASSWORD, isOwner: true }
    expect(await admin().send('POST', '/api/users', unknownField)).toMatchObject(refusal(400, 'invalid_request'))
    for (const id of ['0', '01', '-1', '1e3', '9007199254740993', 'x']) {
      expect(await admin().send('GET', `/api/users/${id}`)).toMatchObject(refusal(400, 'invalid_request'))
    }
    expect(await admin().send('GET', '/api/users/987654321')).toMatchObject(refusal(404, 'user_not_found'))
    for (const query of ['limit=0', 'limit=501', 'limit=1.5', 'offset=-1']) {
      expect(await admin().send('GET', `/api/users?${query}`)).toMatchObject(refusal(400, 'invalid_request'))
    }
  })

  test('promotion and demotion change the permissions and apply to the next request', async () => {
    const id = await makeUser(admin(), 'clara')
    const client = await signIn(admin().service, 'clara')
    expect(await client.send('GET', '/api/users')).toMatchObject(refusal(403, 'admin_required'))
    const byHand = { permissions: { nodes: { read: false, write: false } } }
    expect((await admin().send('PUT', `/api/users/${id}/permissions`, byHand)).status).toBe(200)
    expect((await admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: true })).status).toBe(200)
    expect((await client.send('GET', '/api/users')).status).toBe(200)
    expect((await client.send('PUT', `/api/users/${id}/admin`, { isAdmin: false })).status).toBe(403)
    expect((await admin().send('PUT', `/api/users/${id}/admin`)).body).toMatchObject({ user: { isAdmin: false } })
    expect((await client.send('GET', '/api/users')).status).toBe(403)
    expect((await admin().send('GET', `/api/users/${id}/permissions`)).body).toMatchObject({
      permissions: { nodes: { read: true, write: false }, settings: { read: false, write: false } },
    })
    const changes = (await auditOf(admin(), 'admin_status_changed')).map(({ details }) => details)
    const [everything, defaults] = [permissionsOf(true), permissionsOf(false)]
    expect(changes.slice(0, 2)).toEqual([
      {
        userId: id,
        username: 'clara',
        before: { isAdmin: true, permissions: everything },
        after: { isAdmin: false, permissions: defaults },
      },
      {
        userId: id,
        username: 'clara',
        before: { isAdmin: false, permissions: { ...defaults, nodes: { read: false, write: false } } },
        after: { isAdmin: true, permissions: everything },
      },
    ])
  })

  test('a simultaneous change of role and deactivation have the same result as one after the other', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await makeUser(admin(), `gerda${round}`)
      const answers = await Promise.all([
        admin().send('PUT', `/api/users/${id}/admin`),
        admin().send('DELETE', `/api/users/${id}`),
        admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: true }),
      ])
      expect(statuses(answers)).toEqual([200, 200, 204])
      const { user } = Object((await admin().send('GET', `/api/users/${id}`)).body)
      const entries = (await auditOf(admin(), 'admin_status_changed')).filter((entry) => subjectOf(entry) === id)
      // Each entry begins where the previous one ended, and the last one matches the stored state.
      const [newest, ...older] = entries.map(({ details }) => Object(details))
      expect(newest.after).toEqual({ isAdmin: user.isAdmin, permissions: permissionsOf(user.isAdmin) })
      for (const [index, { after }] of older.entries()) expect([newest, ...older][index].before).toEqual(after)
      const { grants } = Object((await admin().send('GET', `/api/users/${id}/permissions`)).body)
      const writes = grants.filter(({ canWrite }: { canWrite: boolean }) => canWrite)
      expect([user.isActive, writes.length]).toEqual([false, user.isAdmin ? 7 : 0])
      const demoted = await admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: false })
      expect(demoted).toMatchObject({ status: 200, body: { user: { isAdmin: false, isActive: false } } })
    }
  })

  test('who granted a permission is shown, and the row of a grant stays', async () => {
    const id = await makeUser(admin(), 'helga')
    const own = Object((await admin().send('GET', '/api/auth/status')).body).user.id
    const path = `/api/users/${id}/permissions`
    const before = Object((await admin().send('GET', path)).body)
    expect(before.grants).toHaveLength(7)
    const changed = await admin().send('PUT', path, { permissions: { nodes: { read: true, write: true } } })
    const after = Object(changed.body)
    expect(changed).toMatchObject({ status: 200, body: { permissions: { nodes: { read: true, write: true } } } })
    expect((await admin().send('GET', path)).body).toEqual(after)
    const [index] = [before.grants.findIndex(({ resource }: { resource: string }) => resource === 'nodes')]
    const { grantedAt, ...grant } = after.grants[index]
    const rest = { userId: id, resource: 'nodes', canRead: true, canWrite: true, grantedBy: own }
    expect(grant).toEqual({ id: before.grants[index].id, ...rest })
    expect(grantedAt).toBeGreaterThanOrEqual(before.grants[index].grantedAt)
    expect(after.grants.toSpliced(index, 1)).toEqual(before.grants.toSpliced(index, 1))
    const first = Object((await admin().send('GET', `/api/users/${own}/permissions`)).body).grants
    expect(first.map(({ grantedBy }: { grantedBy: unknown }) => grantedBy)).toEqual(
      Array.from({ length: 7 }, () => null),
    )
  })

  test('a user is created in one call, sent back as it was read, and deactivated by a change', async () => {
    const permissions = { settings: { read: true, write: false } }
    const made = await admin().send('POST', '/api/users', { username: 'ilse', authProvider: 'local', permissions })
    const { user, password } = Object(made.body)
    expect(made.status).toBe(201)
    const ilse = await signIn(admin().service, 'ilse', password)
    expect(await ilse.send('GET', '/api/settings')).toMatchObject(refusal(403, 'password_change_required'))
    const answered = await admin().send('GET', `/api/users/${user.id}`)
    const back = await admin().send('PUT', `/api/users/${user.id}`, answered.body)
    expect(back).toMatchObject({ status: 200, body: Object(answered.body) })
    const held = Object((await admin().send('GET', `/api/users/${user.id}/permissions`)).body)
    expect(held.permissions).toEqual({ ...permissionsOf(false), ...permissions })
    const changed = { ...Object(answered.body).user, isActive: false, displayName: 'Ilse' }
    expect(await admin().send('PUT', `/api/users/${user.id}`, changed)).toMatchObject({ status: 200 })
    expect((await ilse.send('GET', '/api/auth/status')).body).toMatchObject({ authenticated: false })
    const [deletion] = await auditOf(admin(), 'user_deleted')
    expect(subjectOf(deletion)).toBe(user.id)
    expect(await admin().send('PUT', `/api/users/${user.id}`, { createdAt: 1 })).toMatchObject(
      refusal(400, 'invalid_request'),
    )
  })

  test('an administrator sees and ends the sessions and tokens of a user', async () => {
    const id = await makeUser(admin(), 'jutta')
    const jutta = await signIn(admin().service, 'jutta')
    const path = `/api/users/${id}`
    const make = async () =>
      Object((await jutta.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })).body)
    const [one, two] = [await make(), await make()]
    expect(one.expiresAt - one.createdAt).toBe(90 * 86_400_000)
    expect((await admin().send('GET', `${path}/tokens`)).body).toMatchObject({
      tokens: [{ id: two.id }, { id: one.id }],
    })
    expect((await admin().send('DELETE', `${path}/tokens/${one.id}`)).status).toBe(204)
    expect((await admin().send('DELETE', `${path}/tokens`)).status).toBe(204)
    expect((await admin().send('GET', `${path}/tokens`)).body).toEqual({ tokens: [] })
    const revoked = (await auditOf(admin(), 'token_revoked')).filter((entry) => subjectOf(entry) === id)
    expect(revoked.map(({ details }) => Object(details).tokenId)).toEqual([two.id, one.id])
    const { sessions } = Object((await admin().send('GET', `${path}/sessions`)).body)
    expect(sessions).toMatchObject([{ current: false }])
    expect((await admin().send('DELETE', `${path}/sessions/${sessions[0].id}`)).status).toBe(204)
    expect((await jutta.send('GET', '/api/tokens')).status).toBe(401)
    const again = await signIn(admin().service, 'jutta')
    expect((await admin().send('DELETE', `${path}/sessions`)).status).toBe(204)
    expect((await again.send('GET', '/api/tokens')).status).toBe(401)
    const ended = (await auditOf(admin(), 'session_revoked')).filter((entry) => subjectOf(entry) === id)
    expect(ended.map(({ details }) => Object(details))).toMatchObject([{ sessions: 1 }, { sessionId: sessions[0].id }])
  })

  test('a password reset ends the tokens in the same step', async () => {
    const id = await makeUser(admin(), 'karla')
    const karla = await signIn(admin().service, 'karla')
    const made = await karla.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'], expiresInDays: null })
    const { token, expiresAt } = Object(made.body)
    expect([made.status, expiresAt]).toEqual([201, null])
    const status = async () =>
      Object(
        (
          await createClient(admin().service).send('GET', '/api/auth/status', undefined, {
            authorization: `Bearer ${token}`,
          })
        ).body,
      ).authenticated
    expect(await status()).toBe(true)
    expect((await admin().send('POST', `/api/users/${id}/reset-password`)).status).toBe(200)
    expect(await status()).toBe(false)
    const [entry] = await auditOf(admin(), 'password_reset')
    expect(entry?.['details']).toEqual({ userId: id, username: 'karla', tokensRevoked: 1 })
  })

  test('when two administrators demote each other simultaneously, one remains', async () => {
    const id = await makeUser(admin(), 'dora')
    await admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: true })
    const dora = await signIn(admin().service, 'dora')
    const own = Object((await admin().send('GET', '/api/auth/status')).body).user.id
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([
        admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: false }),
        dora.send('PUT', `/api/users/${own}/admin`, { isAdmin: false }),
      ])
      expect(statuses(answers)).toEqual([200, expect.toBeOneOf([403, 409])])
      const winner = answers[0]?.status === 200 ? admin() : dora
      const loser = winner === dora ? own : id
      expect((await winner.send('PUT', `/api/users/${loser}/admin`, { isAdmin: true })).status).toBe(200)
    }
    expect((await admin().send('DELETE', `/api/users/${id}`)).status).toBe(204)
  })

  test('permissions are set by name, the others stay, and write needs read', async () => {
    const id = await makeUser(admin(), 'emma')
    const client = await signIn(admin().service, 'emma')
    const set = (permissions: unknown) => admin().send('PUT', `/api/users/${id}/permissions`, { permissions })
    const grants = { settings: { read: true, write: true }, nodes: { read: false, write: false } }
    expect(await set(grants)).toMatchObject({ status: 200, body: { permissions: { ...grants, info: { read: true } } } })
    expect((await client.send('GET', '/api/auth/status')).body).toMatchObject({ permissions: grants })
    expect(await set({ nodes: { read: false, write: true } })).toMatchObject(refusal(400, 'invalid_request'))
    expect(await set({ users: { read: true, write: true } })).toMatchObject(refusal(400, 'invalid_request'))
    const [entry] = await auditOf(admin(), 'permissions_updated')
    expect(entry?.['details']).toEqual({
      userId: id,
      username: 'emma',
      before: { settings: { read: false, write: false }, nodes: { read: true, write: false } },
      after: grants,
    })
  })

  test('a token allows what its scopes say, until it is revoked or its owner is deactivated', async () => {
    const id = await makeUser(admin(), 'fanny')
    const client = await signIn(admin().service, 'fanny')
    const make = (scopes: string[]) =>
      client.send('POST', '/api/tokens', { name: 'a script', scopes, expiresInDays: 1 })
    expect(await make(['backup'])).toMatchObject(refusal(403, 'admin_required'))
    const [one, two] = [Object((await make(['nodes:read'])).body), Object((await make(['info:read'])).body)]
    expect((await client.send('GET', '/api/tokens')).body).toMatchObject({ tokens: [{ id: two.id }, { id: one.id }] })
    const status = async (token: string) => {
      const authorization = { authorization: `Bearer ${token}` }
      return (await createClient(admin().service).send('GET', '/api/auth/status', undefined, authorization)).body
    }
    expect(await status(one.token)).toMatchObject({
      user: { id },
      permissions: { nodes: { read: true, write: false }, info: { read: false } },
    })
    expect(
      await createClient(admin().service).send('GET', '/api/tokens', undefined, {
        authorization: `Bearer ${one.token}`,
      }),
    ).toMatchObject(refusal(403, 'forbidden'))
    expect((await client.send('DELETE', `/api/tokens/${one.id}`)).status).toBe(204)
    expect(await client.send('DELETE', `/api/tokens/${one.id}`)).toMatchObject(refusal(404, 'token_not_found'))
    expect(await status(one.token)).toMatchObject({ authenticated: false })
    expect(await status(two.token)).toMatchObject({ authenticated: true })
    await admin().send('DELETE', `/api/users/${id}`)
    expect(await status(two.token)).toMatchObject({ authenticated: false })
  })
}
