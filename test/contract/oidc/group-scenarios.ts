import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, signInBy } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { namedEnv } from './provider-scenarios.ts'
import { browserOf, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

/** Roles by groups at a provider, also of one that misbehaves, on any runtime. */
export function describeGroups(runtime: string, open: OpenOidcService): void {
  describe(`groups at a provider on ${runtime}`, () => {
    let provider: TestProvider
    let club: TestProvider
    let service: OidcService
    let sub: string
    let count = 0
    beforeAll(async () => {
      ;[provider, club] = [await startProvider(), await startProvider()]
      service = await open({
        ...OIDC_SCENARIO_ENV,
        ...oidcEnv(provider),
        OIDC_GROUPS_CLAIM: 'realm_access.roles',
        OIDC_ADMIN_GROUPS: 'admins',
        OIDC_GROUP_PERMISSIONS: 'readers=viewer',
        ...namedEnv('club', club),
        OIDC_PROVIDERS: 'club',
        // Every object has a constructor with this name, which is no claim.
        OIDC_CLUB_GROUPS_CLAIM: 'realm_access.constructor.name',
        OIDC_CLUB_ADMIN_GROUPS: 'Object',
      })
    })
    afterAll(async () => {
      await service.close()
      await Promise.all([provider.close(), club.close()])
    })
    beforeEach(() => {
      sub = `member ${++count}`
    })

    const roleIn = async (browser: Browser) => {
      const { user, permissions } = Object(await (await browser.request('/api/auth/status')).json())
      return { isAdmin: Object(user).isAdmin, readsNodes: Object(permissions).nodes.read }
    }
    /** Signs the member in with this value of `realm_access`; returns what they may do then. */
    const enter = async (access: unknown) => {
      const isElsewhere = typeof access === 'object' && access !== null && '_claim_names' in access
      provider.user = { sub, ...(isElsewhere ? access : access !== undefined && { realm_access: access }) }
      const browser = browserOf(service)
      expect(await signInBy(browser, provider)).toBe('302 /')
      return roleIn(browser)
    }
    const changes = async () => {
      const rows = await service.sql(
        `select action from audit_log where json_extract(details, '$.by') = 'groups at the provider'
         and username = (select username from users join identities on user_id = users.id where subject = '${sub}') order by id`,
      )
      return rows.map(({ action }) => action)
    }
    const ADMIN = { isAdmin: true, readsNodes: true }
    const READER = { isAdmin: false, readsNodes: true }
    const NOBODY = { isAdmin: false, readsNodes: false }

    test('joining, staying and leaving, each recorded once', async () => {
      expect(await enter({ roles: ['admins', 'others'] })).toEqual(ADMIN)
      expect(await enter({ roles: 'admins' })).toEqual(ADMIN)
      expect(await enter({ roles: ['readers'] })).toEqual(READER)
      expect(await enter({ roles: [] })).toEqual(NOBODY)
      expect(await changes()).toEqual(['admin_status_changed', 'admin_status_changed', 'permissions_updated'])
    })

    test('10,000 groups are read, and the relevant one is found', async () => {
      const roles = Array.from({ length: 10_000 }, (_, i) => `group ${i}`)
      expect(await enter({ roles: [...roles, 'admins'] })).toEqual(ADMIN)
    })

    test.each([
      ['missing', undefined],
      ['empty', {}],
      ['null', null],
    ])('a claim that is %s names no group, once the provider has sent the claim', async (_what, access) => {
      expect(await enter({ roles: ['admins'] })).toEqual(ADMIN)
      expect(await enter(access)).toEqual(NOBODY)
      expect(await changes()).toEqual(['admin_status_changed', 'admin_status_changed'])
      expect(service.logged().join('\n')).toContain('names no groups')
    })

    test.each([
      ['an object', { roles: { admins: true } }],
      ['a list of mixed types', { roles: ['admins', 7] }],
      ['text in the place of an object', 'admins'],
      ['a list in the place of an object', ['admins']],
      ['elsewhere, as the groups are too many', { _claim_names: { realm_access: 'src1' } }],
    ])('a claim that is %s changes nothing', async (_what, access) => {
      expect(await enter({ roles: ['readers'] })).toEqual(READER)
      const before = await changes()
      expect(await enter(access)).toEqual(READER)
      expect(await changes()).toEqual(before)
      expect(service.logged().join('\n')).toMatch(/the role is unchanged/)
      expect(await enter({ roles: ['admins'] })).toEqual(ADMIN)
      expect(await enter(access)).toEqual(ADMIN)
    })

    test('a path that leads to a prototype finds nothing', async () => {
      club.user = { sub, realm_access: {} }
      const browser = browserOf(service)
      const begun = await browser.request('/api/auth/oidc/login?provider=club')
      const { pathname, search } = await club.authorize(String(begun.headers.get('location')))
      expect((await browser.request(`${pathname}${search}`)).headers.get('location')).toBe('/')
      expect(await roleIn(browser)).toEqual(READER)
      expect(await changes()).toEqual([])
    })

    test('the last administrator stays one; with another one the role ends', async () => {
      expect(await enter({ roles: ['admins'] })).toEqual(ADMIN)
      const others = `id <> (select user_id from identities where subject = '${sub}')`
      await service.sql(`update users set is_active = 0 where is_admin = 1 and ${others} returning id`)
      expect(await enter({ roles: ['readers'] })).toEqual(ADMIN)
      expect(service.logged().join('\n')).toContain('The last administrator is in no group')
      await service.sql(`update users set is_active = 1 where is_admin = 1 and ${others} returning id`)
      expect(await enter({ roles: ['readers'] })).toEqual(READER)
    })
  })

  describe(`a refusal by groups on ${runtime}`, () => {
    let provider: TestProvider
    let service: OidcService
    const json = { 'content-type': 'application/json' }
    const password = 'the first administrator'
    beforeAll(async () => {
      provider = await startProvider()
      service = await open({
        ...OIDC_SCENARIO_ENV,
        ...oidcEnv(provider),
        OIDC_GROUPS_CLAIM: 'groups',
        OIDC_ALLOWED_GROUPS: 'mesh',
      })
    })
    afterAll(async () => {
      await service.close()
      await provider.close()
    })
    beforeEach(() => {
      provider.behave = {}
    })

    const enter = async (sub: string, groups: unknown) => {
      provider.user = { sub, preferred_username: sub, ...(groups !== undefined && { groups }) }
      const browser = browserOf(service)
      return { browser, to: await signInBy(browser, provider) }
    }
    const REFUSED = '302 /login?error=oidc_not_allowed'
    const makeToken = async (browser: Browser): Promise<string> => {
      const body = JSON.stringify({ name: 'script', scopes: ['nodes:read'] })
      const answer = await browser.request('/api/tokens', { method: 'POST', headers: json, body })
      return Object(await answer.json()).token
    }
    const use = async (token: string) => {
      const answer = await service.send('/api/nodes', { headers: { authorization: `Bearer ${token}` } })
      return answer.status === 200 ? 200 : `${answer.status} ${Object(await answer.json()).detail}`
    }
    const isIn = async (browser: Browser) => (await browser.request('/api/tokens')).status === 200
    const audited = async (sub: string) =>
      (
        await service.sql(`select action, details from audit_log where action in ('session_revoked', 'tokens_held',
          'tokens_released') and (username = '${sub}' or json_extract(details, '$.username') = '${sub}') order by id`)
      ).map(({ action, details }) => [action, Object(JSON.parse(String(details)))])

    test.each([
      ['another group', ['others']],
      ['no group', []],
      ['no claim, after others had one', undefined],
    ])(
      'with %s ends the sessions of the provider and holds the tokens until a sign-in succeeds',
      async (what, groups) => {
        const sub = `member ${what.length}`.replaceAll(' ', '-')
        const { browser: first, to } = await enter(sub, ['mesh'])
        expect(to).toBe('302 /')
        const { browser: second } = await enter(sub, ['mesh'])
        const { browser: other } = await enter(`other-${sub}`, ['mesh'])
        const [token, others] = [await makeToken(first), await makeToken(other)]
        expect(await use(token)).toBe(200)

        const refused = await enter(sub, groups)
        expect(refused.to).toBe(REFUSED)
        expect([await isIn(first), await isIn(second), await isIn(refused.browser)]).toEqual([false, false, false])
        expect(await use(token)).toMatch(/^401 This API token is held/)
        expect([await isIn(other), await use(others)]).toEqual([true, 200])
        const by = { by: 'groups at the provider', providerId: 'default', username: sub }
        expect(await audited(sub)).toEqual([
          ['session_revoked', { ...by, userId: expect.any(Number), sessions: 2 }],
          ['tokens_held', { ...by, userId: expect.any(Number), tokens: 1 }],
        ])
        // The refusal is in the same step as what ends: three entries of one request.
        const [row] = await service.sql(`select count(*) as n from audit_log where request_id =
        (select request_id from audit_log where action = 'tokens_held' order by id desc limit 1)`)
        expect(row).toEqual({ n: 3 })

        // A second refusal has nothing to end.
        expect((await enter(sub, groups)).to).toBe(REFUSED)
        expect(await audited(sub)).toHaveLength(2)

        const back = await enter(sub, ['mesh'])
        expect(back.to).toBe('302 /')
        expect(await use(token)).toBe(200)
        expect((await audited(sub)).at(-1)).toEqual(['tokens_released', {}])
        expect([await isIn(first), await isIn(second), await isIn(back.browser)]).toEqual([false, false, true])
      },
    )

    test.each([
      ['is no list', { groups: { mesh: true } }],
      [
        'is elsewhere',
        { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://x.example' } } },
      ],
      ['is elsewhere, in the short form', { hasgroups: true }],
    ])('because the claim %s refuses this sign-in and ends nothing', async (what, claims) => {
      const sub = `unsure-${what.length}`
      const { browser } = await enter(sub, ['mesh'])
      const token = await makeToken(browser)
      provider.user = { sub, ...claims }
      expect(await signInBy(browserOf(service), provider)).toBe(REFUSED)
      expect([await isIn(browser), await use(token)]).toEqual([true, 200])
      expect(await audited(sub)).toEqual([])
    })

    test('groups that UserInfo could not tell refuse this sign-in and end nothing', async () => {
      const { browser } = await enter('outage', ['mesh'])
      const token = await makeToken(browser)
      provider.behave = { userInfo: { status: 503 } }
      expect((await enter('outage', ['mesh'])).to).toBe(REFUSED)
      expect([await isIn(browser), await use(token)]).toEqual([true, 200])
    })

    test('a linked account keeps its own sessions; its tokens work again after a sign-in with the password', async () => {
      const local = browserOf(service)
      const signIn = async (browser: Browser) =>
        browser.request('/api/auth/login', {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ username: 'admin', password }),
        })
      await signIn(local)
      provider.user = { sub: 'linked', groups: ['mesh'] }
      const begun = await local.request('/api/auth/oidc/link', { method: 'POST', headers: json, body: '{}' })
      const { pathname, search } = await provider.authorize(Object(await begun.json()).location)
      expect((await local.request(`${pathname}${search}`)).headers.get('location')).toBe('/account?linked=1')
      const { browser } = await enter('linked', ['mesh'])
      const token = await makeToken(local)
      expect((await enter('linked', ['others'])).to).toBe(REFUSED)
      expect([await isIn(local), await isIn(browser)]).toEqual([true, false])
      expect(await use(token)).toMatch(/^401/)
      const { tokens } = Object(await (await local.request('/api/tokens')).json())
      expect(tokens[0]).toMatchObject({ name: 'script', heldAt: expect.any(Number) })
      await signIn(browserOf(service))
      expect(await use(token)).toBe(200)
      expect((await audited('admin')).at(-1)).toEqual(['tokens_released', {}])
    })
  })
}
