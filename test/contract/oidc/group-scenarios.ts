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
      provider.user = { sub, ...(access !== undefined && { realm_access: access }) }
      const browser = browserOf(service)
      expect(await signInBy(browser, provider)).toBe('302 /')
      return roleIn(browser)
    }
    const changes = async () => {
      const rows = await service.sql(
        `select action from audit_log where json_extract(details, '$.by') = 'groups at the provider'
         and username = (select username from users where oidc_subject = '${sub}') order by id`,
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
      ['an object', { roles: { admins: true } }],
      ['a list of mixed types', { roles: ['admins', 7] }],
      ['text in the place of an object', 'admins'],
      ['a list in the place of an object', ['admins']],
      ['null', null],
    ])('a claim that is %s changes nothing', async (_what, access) => {
      expect(await enter({ roles: ['readers'] })).toEqual(READER)
      const before = await changes()
      expect(await enter(access)).toEqual(READER)
      expect(await changes()).toEqual(before)
      expect(service.logged().join('\n')).toContain('sends no readable groups')
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
      const others = "username <> (select username from users where oidc_subject = '%s')".replace('%s', sub)
      await service.sql(`update users set is_active = 0 where is_admin = 1 and ${others} returning id`)
      expect(await enter({ roles: ['readers'] })).toEqual(ADMIN)
      expect(service.logged().join('\n')).toContain('The last administrator is in no group')
      await service.sql(`update users set is_active = 1 where is_admin = 1 and ${others} returning id`)
      expect(await enter({ roles: ['readers'] })).toEqual(READER)
    })
  })
}
