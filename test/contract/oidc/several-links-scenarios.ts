import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, whoIs } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { namedEnv } from './provider-scenarios.ts'
import { browserOf, failures, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const PASSWORD = 'a password for everyone'
const HOUR_MS = 3_600_000

type Answer = { readonly status: number; readonly body: Record<string, unknown> }
type Name = 'default' | 'club' | 'hub'

/** Several providers that sign in to one account, on any runtime. At `hub` groups decide. */
export function describeSeveralLinks(runtime: string, open: OpenOidcService): void {
  describe(`several providers of one account on ${runtime}`, () => {
    let at: Record<Name, TestProvider>
    let service: OidcService
    let admin: Browser
    let count = 0
    beforeAll(async () => {
      const [office, club, hub] = [await startProvider(), await startProvider(), await startProvider()]
      at = { default: office, club, hub }
      service = await open({
        ...OIDC_SCENARIO_ENV,
        ...oidcEnv(office),
        ...namedEnv('club', club),
        ...namedEnv('hub', hub),
        OIDC_PROVIDERS: 'club,hub',
        OIDC_HUB_GROUPS_CLAIM: 'groups',
        OIDC_HUB_ADMIN_GROUPS: 'admins',
        OIDC_HUB_GROUP_PERMISSIONS: 'readers=operator',
      })
      admin = await enter('admin', OIDC_SCENARIO_ENV.ADMIN_PASSWORD)
    })
    afterAll(async () => {
      await service.close()
      await Promise.all(Object.values(at).map(async (provider) => provider.close()))
    })
    beforeEach(() => {
      count++
      for (const provider of Object.values(at)) provider.behave = {}
      for (const [name, provider] of Object.entries(at)) {
        provider.user = { sub: `${name} ${count}`, preferred_username: `${name}${count}`, name: `Name at ${name}` }
      }
    })

    const send = async (browser: Browser, method: string, path: string, body?: unknown): Promise<Answer> => {
      const json = body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const answer = await browser.request(path, { method, ...json })
      const text = await answer.text()
      return { status: answer.status, body: text === '' ? {} : Object(JSON.parse(text)) }
    }
    const enter = async (username: string, password = PASSWORD): Promise<Browser> => {
      const browser = browserOf(service)
      expect(await send(browser, 'POST', '/api/auth/login', { username, password })).toMatchObject({ status: 200 })
      return browser
    }
    const local = async (): Promise<{ browser: Browser; id: number; username: string }> => {
      const username = `local${count}-${++count}`
      const made = await send(admin, 'POST', '/api/users', { username, password: PASSWORD })
      return { browser: await enter(username), id: Number(Object(made.body['user']).id), username }
    }
    /** The callback to which the provider sends this browser. */
    const reach = async (name: Name, location: unknown) => {
      const { pathname, search } = await at[name].authorize(String(location))
      return `${pathname}${search}`
    }
    const finish = async (browser: Browser, callback: string) =>
      (await browser.request(callback)).headers.get('location') ?? ''
    const signIn = async (name: Name, browser = browserOf(service)): Promise<Browser> => {
      const begun = await browser.request(`/api/auth/oidc/login?provider=${name}`)
      expect(await finish(browser, await reach(name, begun.headers.get('location')))).toBe('/')
      return browser
    }
    const beginLink = async (browser: Browser, provider: Name) => {
      const begun = await send(browser, 'POST', '/api/auth/oidc/link', { provider })
      expect(begun.status).toBe(200)
      return reach(provider, begun.body['location'])
    }
    const link = async (browser: Browser, provider: Name) => finish(browser, await beginLink(browser, provider))
    const linksOf = async (browser: Browser) => {
      const { body } = await send(browser, 'GET', '/api/auth/oidc/link')
      return Object(body['links']).map(({ provider }: { provider: string }) => provider)
    }
    const unlink = async (browser: Browser, query = '') => {
      const { status, body } = await send(browser, 'DELETE', `/api/auth/oidc/link${query}`)
      return status === 204 ? '204' : `${status} ${String(body['code'])}`
    }
    const audited = async (action: string) =>
      (await service.sql(`select details from audit_log where action = '${action}' order by id`)).map(({ details }) =>
        Object(JSON.parse(String(details))),
      )
    const idOf = async (browser: Browser) => Number((await whoIs(browser))?.['id'])
    const LINKED = '/account?linked=1'

    test('a user of one provider links another, signs in by either, and keeps the profile of the first', async () => {
      const first = await signIn('default')
      const id = await idOf(first)
      const before = await whoIs(first)
      expect(await link(first, 'club')).toBe(LINKED)
      const second = await signIn('club')
      expect(await whoIs(second)).toMatchObject({
        id,
        displayName: 'Name at default',
        oidcSubject: at.default.user.sub,
      })
      expect(await whoIs(second)).toMatchObject({ username: before?.['username'], email: before?.['email'] })
      const { body } = await send(first, 'GET', '/api/auth/oidc/link')
      const links = [
        { provider: 'default', issuer: at.default.issuer, subject: at.default.user.sub, linkedAt: expect.any(Number) },
        { provider: 'club', issuer: at.club.issuer, subject: at.club.user.sub, linkedAt: expect.any(Number) },
      ]
      expect(body['links']).toEqual(links.map((one) => ({ ...one, canUnlink: true })))
      expect(body['link']).toEqual({ ...links[0], canUnlink: true })
      const shown = await send(admin, 'GET', `/api/users/${id}`)
      expect(Object(shown.body['user']).links).toEqual(links)
      // What GET answers may be sent back, but not changed.
      expect((await send(admin, 'PUT', `/api/users/${id}`, shown.body)).status).toBe(200)
      const kept = Object(shown.body['user'])
      const other = { ...kept, links: kept.links.slice(1) }
      expect(await send(admin, 'PUT', `/api/users/${id}`, other)).toMatchObject({
        status: 400,
        body: { issues: [{ path: 'links' }] },
      })
    })

    test('unlinking ends the sessions that began at that provider, and only those', async () => {
      const [first, second] = [await signIn('default'), browserOf(service)]
      expect(await link(first, 'club')).toBe(LINKED)
      await signIn('club', second)
      expect(await unlink(first)).toBe('400 invalid_request')
      expect(await unlink(first, '?provider=hub')).toBe('404 not_found')
      expect(await unlink(first, '?provider=club')).toBe('204')
      expect((await audited('account_unlinked')).at(-1)).toEqual({
        issuer: at.club.issuer,
        subject: at.club.user.sub,
        providerId: 'club',
      })
      expect([await whoIs(second), await idOf(first)]).toEqual([null, expect.any(Number)])
      expect(await unlink(first)).toBe('409 last_way_in')
      // A new link to the same account does not revive what began by the old one.
      expect(await link(first, 'club')).toBe(LINKED)
      expect(await whoIs(second)).toBeNull()
      // The one by which the account was made may go, too; the own session ends with it.
      await signIn('club', second)
      expect(await unlink(first, '?provider=default')).toBe('204')
      expect(await whoIs(first)).toBeNull()
      expect(await linksOf(second)).toEqual(['club'])
      expect(await unlink(second, '?provider=club')).toBe('409 last_way_in')
    })

    test('a session lives no longer than the link by which it began, however that went', async () => {
      const first = await signIn('default')
      expect(await link(first, 'club')).toBe(LINKED)
      const second = await signIn('club')
      await service.sql(`delete from identities where subject = '${at.club.user.sub}' returning id`)
      expect([await whoIs(second), await idOf(first)]).toEqual([null, expect.any(Number)])
    })

    test('linking and unlinking need a fresh proof', async () => {
      const browser = await signIn('default')
      const id = await idOf(browser)
      expect(await link(browser, 'club')).toBe(LINKED)
      await service.sql(`update sessions set created_at = created_at - ${HOUR_MS}, authenticated_at =
        coalesce(authenticated_at, created_at) - ${HOUR_MS} where user_id = ${id} returning id`)
      expect(await send(browser, 'POST', '/api/auth/oidc/link', { provider: 'hub' })).toMatchObject({
        status: 403,
        body: { code: 'reauthentication_required', ways: ['oidc'] },
      })
      expect(await unlink(browser, '?provider=club')).toBe('403 reauthentication_required')
      expect(await linksOf(browser)).toEqual(['default', 'club'])
    })

    test('an identity that signs in to another account is not taken from it', async () => {
      const owner = await signIn('club')
      const thief = await signIn('default')
      expect(await link(thief, 'club')).toBe('/account?error=oidc_identity_taken')
      expect((await failures(service)).at(-1)).toMatchObject({
        reason: 'identity_taken',
        providerId: 'club',
        userId: await idOf(owner),
      })
      expect([await linksOf(thief), await linksOf(owner)]).toEqual([['default'], ['club']])
    })

    test('of two who link one identity at once, one gets it', async () => {
      const browsers = [(await local()).browser, (await local()).browser]
      const callbacks = [await beginLink(browsers[0] ?? admin, 'club'), await beginLink(browsers[1] ?? admin, 'club')]
      const ends = await Promise.all(browsers.map(async (browser, i) => finish(browser, callbacks[i] ?? '')))
      expect(ends.toSorted()).toEqual(['/account?error=oidc_identity_taken', LINKED])
      expect(await service.sql(`select user_id from identities where subject = '${at.club.user.sub}'`)).toHaveLength(1)
    })

    test('of two identities at one provider that are linked at once, one is; at two providers both are', async () => {
      const { browser, id } = await local()
      const one = await beginLink(browser, 'club')
      at.club.user = { sub: `another ${count}` }
      const other = await beginLink(browser, 'club')
      const ends = await Promise.all([finish(browser, one), finish(browser, other)])
      expect(ends.toSorted()).toEqual(['/account?error=oidc_already_linked', LINKED])
      expect(await send(browser, 'POST', '/api/auth/oidc/link', { provider: 'club' })).toMatchObject({
        status: 409,
        body: { code: 'already_linked' },
      })
      const more = [await beginLink(browser, 'default'), await beginLink(browser, 'hub')]
      expect(await Promise.all(more.map(async (callback) => finish(browser, callback)))).toEqual([LINKED, LINKED])
      expect(await linksOf(browser)).toHaveLength(3)
      expect(
        await service.sql(`select id from audit_log where action = 'account_linked' and user_id = ${id}`),
      ).toHaveLength(3)
    })

    test('two links, the only ways to sign in, removed at once: one stays, with its sessions', async () => {
      const first = await signIn('default')
      expect(await link(first, 'club')).toBe(LINKED)
      const second = await signIn('club')
      const before = (await audited('account_unlinked')).length
      const ends = await Promise.all([unlink(first, '?provider=default'), unlink(second, '?provider=club')])
      expect(ends.toSorted()).toEqual(['204', '409 last_way_in'])
      const [left, gone] = ends[0] === '204' ? [second, first] : [first, second]
      expect(await linksOf(left)).toHaveLength(1)
      expect(await whoIs(gone)).toBeNull()
      expect(await audited('account_unlinked')).toHaveLength(before + 1)
    })

    test('an administrator cannot remove the last way to sign in either, alone or of two at once', async () => {
      const browser = await signIn('default')
      const id = await idOf(browser)
      const by = async (query: string) => {
        const { status, body } = await send(admin, 'DELETE', `/api/users/${id}/link${query}`)
        return status === 204 ? '204' : `${status} ${String(body['code'])}`
      }
      expect(await by('')).toBe('409 last_way_in')
      expect(await link(browser, 'club')).toBe(LINKED)
      const ends = await Promise.all([by('?provider=default'), by(`?issuer=${encodeURIComponent(at.club.issuer)}`)])
      expect(ends.toSorted()).toEqual(['204', '409 last_way_in'])
      expect(await service.sql(`select id from identities where user_id = ${id}`)).toHaveLength(1)
      expect((await audited('account_unlinked')).at(-1)).toMatchObject({ userId: id })
      // A provider that is no longer configured is no way in, and can be unlinked by its issuer.
      await service.sql(`insert into identities (user_id, issuer, subject, created_at)
        values (${id}, 'https://former.example', 'old ${id}', 1) returning id`)
      const left = ends[0] === '204' ? 'club' : 'default'
      expect(await by(`?provider=${left}`)).toBe('409 last_way_in')
      const { body } = await send(await signIn(left), 'GET', '/api/auth/oidc/link')
      expect(Object(body['links']).map((one: Record<string, unknown>) => [one['provider'], one['canUnlink']])).toEqual(
        left === 'club'
          ? [
              ['club', false],
              [null, true],
            ]
          : [
              ['default', false],
              [null, true],
            ],
      )
      expect(await by('?issuer=https://former.example')).toBe('204')
      expect(await by('')).toBe('409 last_way_in')
    })

    test('a ninth link is refused, at the beginning and at the end', async () => {
      const { browser, id } = await local()
      const fill = async (from: number, to: number) => {
        for (let i = from; i <= to; i++) {
          await service.sql(`insert into identities (user_id, issuer, subject, created_at)
            values (${id}, 'https://${i}.example', '${id}', 1) returning id`)
        }
      }
      await fill(1, 7)
      const begun = [await beginLink(browser, 'club'), await beginLink(browser, 'default')]
      const ends = await Promise.all(begun.map(async (callback) => finish(browser, callback)))
      expect(ends.toSorted()).toEqual(['/account?error=oidc_too_many_links', LINKED])
      expect((await failures(service)).at(-1)).toMatchObject({ reason: 'too_many_links' })
      expect(await send(browser, 'POST', '/api/auth/oidc/link', { provider: 'hub' })).toMatchObject({
        status: 409,
        body: { code: 'too_many_links' },
      })
      expect(await service.sql(`select id from identities where user_id = ${id}`)).toHaveLength(8)
    })

    test('groups at a provider that was linked give nothing, until an administrator lets them', async () => {
      const { browser, id } = await local()
      const held = async () => {
        const { user, permissions } = Object((await send(browser, 'GET', '/api/auth/status')).body)
        return { isAdmin: user.isAdmin, permissions }
      }
      const before = await held()
      const group = async (...groups: string[]) => {
        at.hub.user = { ...at.hub.user, groups }
        await signIn('hub')
      }
      at.hub.user = { ...at.hub.user, groups: ['admins', 'readers'] }
      expect(await link(browser, 'hub')).toBe(LINKED)
      await group('admins', 'readers')
      expect(await held()).toEqual(before)
      const role = async () => (await send(admin, 'GET', `/api/users/${id}/provider-role`)).body
      expect(await role()).toEqual({ role: null, groupsOf: null })
      const rule = async (who: Browser, provider: string | null) =>
        (await send(who, 'PUT', `/api/users/${id}/provider-role`, { provider })).status
      expect(await rule(browser, 'hub')).toBe(403)
      expect(await rule(admin, 'club')).toBe(404)
      expect(await rule(admin, 'hub')).toBe(200)
      expect(await held()).toEqual(before)
      expect(await role()).toEqual({ role: null, groupsOf: { provider: 'hub', issuer: at.hub.issuer } })
      await group('admins')
      expect(await held()).toMatchObject({ isAdmin: true })
      await group()
      expect(await held()).toMatchObject({ isAdmin: false })
      expect(await rule(admin, null)).toBe(200)
      await group('admins')
      expect(await held()).toMatchObject({ isAdmin: false })
    })

    test('an account that groups decide about gets no second way past them', async () => {
      at.hub.user = { ...at.hub.user, groups: ['admins'] }
      const browser = await signIn('hub')
      const id = await idOf(browser)
      expect(await send(browser, 'POST', '/api/auth/oidc/link', { provider: 'club' })).toMatchObject({
        status: 409,
        body: { code: 'ruled_by_groups' },
      })
      const rule = async (provider: string | null) =>
        (await send(admin, 'PUT', `/api/users/${id}/provider-role`, { provider })).status
      expect(await rule(null)).toBe(200)
      const begun = await beginLink(browser, 'club')
      expect(await rule('hub')).toBe(200)
      expect(await finish(browser, begun)).toBe('/account?error=oidc_ruled_by_groups')
      expect(await linksOf(browser)).toEqual(['hub'])
      expect(await rule(null)).toBe(200)
      expect(await link(browser, 'club')).toBe(LINKED)
    })

    test('a link that began for one provider does not end at another one', async () => {
      const { browser } = await local()
      for (const [begun, other] of [
        ['club', ''],
        ['club', '/hub'],
        ['default', '/club'],
      ] as const) {
        const { search } = new URL(await beginLink(browser, begun), 'http://localhost')
        expect(await finish(browser, `/api/auth/oidc/callback${other}${search}`)).toBe('/account?error=oidc_failed')
        expect((await failures(service)).at(-1)).toMatchObject({
          providerId: begun,
          reason: 'callback_of_another_provider',
        })
      }
      expect(await linksOf(browser)).toEqual([])
    })

    test('a password reset while the user is at the provider ends the link with the session', async () => {
      const { browser, id } = await local()
      const callback = await beginLink(browser, 'club')
      at.club.behave = {
        meanwhile: async () => expect((await send(admin, 'POST', `/api/users/${id}/reset-password`)).status).toBe(200),
      }
      const again = await beginLink(browser, 'club')
      expect(await finish(browser, again)).toBe('/account?error=oidc_state_invalid')
      expect((await failures(service)).at(-1)).toMatchObject({ reason: 'link_of_another_user' })
      expect(await finish(browser, callback)).toBe('/account?error=oidc_state_invalid')
      expect(await service.sql(`select id from identities where user_id = ${id}`)).toEqual([])
    })
  })
}
