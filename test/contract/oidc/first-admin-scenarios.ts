import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signInBy, whoIs } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { browserOf, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

/** Administrators who cannot sign in, beside the one whom the configuration names, on any runtime. */
export function describeFirstAdmin(runtime: string, open: OpenOidcService): void {
  describe(`OIDC_ADMIN_SUBJECT on ${runtime}, beside administrators who cannot sign in`, () => {
    let provider: TestProvider
    let service: OidcService
    beforeAll(async () => {
      provider = await startProvider()
      provider.user = { sub: 'boss', preferred_username: 'boss' }
      service = await open({
        ...OIDC_SCENARIO_ENV,
        ...oidcEnv(provider),
        DISABLE_LOCAL_AUTH: 'true',
        OIDC_ADMIN_SUBJECT: 'boss',
        OIDC_AUTO_CREATE_USERS: 'false',
      })
    })
    afterAll(async () => {
      await service.close()
      await provider.close()
    })

    const insert = async (username: string, provided: string, lastLoginAt: number | null, issuer: string | null) => {
      const [row] = await service.sql(`insert into users (username, auth_provider, password_hash, oidc_issuer, is_admin,
        created_at, created_by, last_login_at, direct_read, direct_write) values ('${username}', '${provided}',
        ${provided === 'local' ? "'hash'" : 'null'}, ${issuer === null ? 'null' : `'${issuer}'`}, 1, 1, 1, ${lastLoginAt},
        1, 1) returning id`)
      if (issuer === null) return
      await service.sql(`insert into identities (user_id, issuer, subject, created_at)
        values (${Number(row?.['id'])}, '${issuer}', '${username}', 1) returning id`)
    }
    const isAdmin = async () => {
      const browser = browserOf(service)
      expect(await signInBy(browser, provider)).toBe('302 /')
      return Object(await whoIs(browser)).isAdmin
    }
    const promotions = async () =>
      (await service.sql("select details from audit_log where action = 'admin_bootstrapped'")).map(({ details }) =>
        Object(JSON.parse(String(details))),
      )

    test('works: a local one, one whose provider is gone, and one who never came; of ten at one instant once', async () => {
      await insert('local', 'local', 1, null)
      await insert('elsewhere', 'oidc', 1, 'https://gone.example.org')
      await insert('invited', 'oidc', null, provider.issuer)
      expect(await isAdmin()).toBe(true)
      await service.sql("update users set is_admin = 0 where username = 'boss' returning id")
      expect(await Promise.all(Array.from({ length: 10 }, isAdmin))).toContain(true)
      expect(await isAdmin()).toBe(true)
      const by = { by: 'OIDC_ADMIN_SUBJECT', provider: 'oidc', providerId: 'default' }
      const promotion = { username: 'boss', userId: expect.any(Number), ...by }
      expect(await promotions()).toEqual([promotion, promotion])
    })

    test('does nothing once one of them has signed in', async () => {
      await service.sql("update users set is_admin = 0 where username = 'boss' returning id")
      await service.sql("update users set last_login_at = 1 where username = 'invited' returning id")
      expect(await isAdmin()).toBe(false)
      expect(await promotions()).toHaveLength(2)
    })
  })
}
