import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, signInBy, whoIs } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { browserOf, failures, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const PASSWORD = 'a password for everyone'

type Answer = { readonly status: number; readonly body: Record<string, unknown> }

/** Linked accounts, prepared ones and invitations, on any runtime. */
export function describeLinking(runtime: string, open: OpenOidcService): void {
  describe(`accounts at providers on ${runtime}`, () => {
    let provider: TestProvider
    let service: OidcService
    let admin: Browser
    let count = 0
    beforeAll(async () => {
      provider = await startProvider()
      service = await open({ ...OIDC_SCENARIO_ENV, ...oidcEnv(provider), OIDC_AUTO_CREATE_USERS: 'false' })
      admin = await enter('admin', OIDC_SCENARIO_ENV.ADMIN_PASSWORD)
    })
    afterAll(async () => {
      await service.close()
      await provider.close()
    })
    beforeEach(() => {
      provider.behave = {}
      provider.user = { sub: `subject ${++count}`, name: 'Name at the provider' }
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
    const local = async (): Promise<{ username: string; browser: Browser; id: number }> => {
      const username = `local${++count}`
      const made = await send(admin, 'POST', '/api/users', { username, password: PASSWORD })
      expect(made.status).toBe(201)
      return { username, browser: await enter(username), id: Number(Object(made.body['user']).id) }
    }
    /** Goes to the provider from there, and back; returns the final location. */
    const follow = async (browser: Browser, location: unknown) => {
      const { pathname, search } = await provider.authorize(String(location))
      return (await browser.request(`${pathname}${search}`)).headers.get('location')
    }
    const link = async (browser: Browser) => {
      const begun = await send(browser, 'POST', '/api/auth/oidc/link', {})
      expect(begun.status).toBe(200)
      return follow(browser, begun.body['location'])
    }
    const audited = async () => {
      const rows = await service.sql('select action, details from audit_log order by id desc limit 2')
      return rows.map(({ action, details }) => ({ action, details: Object(JSON.parse(String(details))) }))
    }

    test('a local user links an account, signs in either way, keeps the profile, and unlinks it', async () => {
      const { username, browser, id } = await local()
      expect(await link(browser)).toBe('/account?linked=1')
      const { sub: subject } = provider.user
      expect((await audited())[0]).toMatchObject({ action: 'account_linked', details: { subject } })
      const other = browserOf(service)
      expect(await signInBy(other, provider)).toBe('302 /')
      expect(await whoIs(other)).toMatchObject({ id, username, authProvider: 'local', displayName: null })
      expect(await send(browser, 'GET', '/api/auth/oidc/link')).toMatchObject({
        body: { link: { subject, provider: 'default', canUnlink: true } },
      })
      expect(await send(browser, 'POST', '/api/auth/oidc/link', {})).toMatchObject({ body: { code: 'already_linked' } })
      expect((await send(browser, 'DELETE', '/api/auth/oidc/link')).status).toBe(204)
      expect((await audited())[0]).toMatchObject({ action: 'account_unlinked', details: { subject } })
      // Sessions that began at the provider end with the link, those that began with the password do not.
      expect(await whoIs(other)).toBeNull()
      expect(await whoIs(browser)).toMatchObject({ username, oidcSubject: null })
      expect(await signInBy(other, provider)).toBe('302 /login?error=oidc_user_unknown')
      expect((await send(browser, 'DELETE', '/api/auth/oidc/link')).status).toBe(404)
    })

    test('a user of the provider who signs in to another account is not linked', async () => {
      const [first, second] = [await local(), await local()]
      expect(await link(first.browser)).toBe('/account?linked=1')
      expect(await link(second.browser)).toBe('/account?error=oidc_identity_taken')
      expect((await failures(service)).at(-1)).toMatchObject({ reason: 'identity_taken', userId: first.id })
      expect(await send(second.browser, 'GET', '/api/auth/oidc/link')).toMatchObject({ body: { link: null } })
    })

    test('a link that another user began in this browser links nobody', async () => {
      const [victim, attacker] = [await local(), await local()]
      const begun = await send(attacker.browser, 'POST', '/api/auth/oidc/link', {})
      for (const [name, value] of attacker.browser.cookies) {
        if (name.includes('oidc')) victim.browser.cookies.set(name, value)
      }
      expect(await follow(victim.browser, begun.body['location'])).toBe('/account?error=oidc_state_invalid')
      const otherBrowser = browserOf(service)
      const again = await send(attacker.browser, 'POST', '/api/auth/oidc/link', {})
      for (const [name, value] of attacker.browser.cookies) {
        if (name.includes('oidc')) otherBrowser.cookies.set(name, value)
      }
      expect(await follow(otherBrowser, again.body['location'])).toBe('/account?error=oidc_state_invalid')
      expect(await send(victim.browser, 'GET', '/api/auth/oidc/link')).toMatchObject({ body: { link: null } })
      expect(await send(attacker.browser, 'GET', '/api/auth/oidc/link')).toMatchObject({ body: { link: null } })
    })

    test('an administrator removes a link that somebody else made', async () => {
      const { browser, id } = await local()
      await link(browser)
      const other = browserOf(service)
      expect(await signInBy(other, provider)).toBe('302 /')
      expect((await send(browser, 'DELETE', `/api/users/${id}/link`)).status).toBe(403)
      expect((await send(admin, 'DELETE', `/api/users/${id}/link`)).status).toBe(204)
      expect((await audited())[0]).toMatchObject({ action: 'account_unlinked', details: { userId: id } })
      expect((await send(admin, 'DELETE', `/api/users/${id}/link`)).status).toBe(404)
      // A new link to the same account does not revive the sessions of the old one.
      expect(await link(browser)).toBe('/account?linked=1')
      expect(await whoIs(other)).toBeNull()
      expect(await signInBy(other, provider)).toBe('302 /')
    })

    test('an account prepared for a subject belongs to that subject alone, with the given role', async () => {
      const username = `prepared${++count}`
      const body = { username, provider: 'default', subject: provider.user.sub, isAdmin: true }
      expect(await send(admin, 'POST', '/api/users/prepared', body)).toMatchObject({
        status: 201,
        body: { user: { username, isAdmin: true, oidcSubject: provider.user.sub }, invitation: null },
      })
      const twice = { ...body, username: `${username}-2` }
      expect(await send(admin, 'POST', '/api/users/prepared', twice)).toMatchObject({
        status: 409,
        body: { code: 'identity_taken' },
      })
      const browser = browserOf(service)
      expect(await signInBy(browser, provider)).toBe('302 /')
      expect(await whoIs(browser)).toMatchObject({ username, isAdmin: true, displayName: 'Name at the provider' })
      // Nobody else takes its name or its subject.
      provider.user = { sub: 'another', preferred_username: username }
      expect(await signInBy(browserOf(service), provider)).toBe('302 /login?error=oidc_user_unknown')
    })

    const invite = async (more: Record<string, unknown> = {}) => {
      const username = `invited${++count}`
      const made = await send(admin, 'POST', '/api/users/prepared', { username, ...more })
      expect(made.status).toBe(201)
      const { user, invitation } = Object(made.body)
      return { username, id: Number(user.id), token: String(new URL(invitation.url).searchParams.get('invitation')) }
    }
    const accept = async (browser: Browser, token: string) => {
      const begun = await browser.request(`/api/auth/oidc/login?invitation=${token}`)
      return follow(browser, begun.headers.get('location'))
    }

    test('an invitation works once, for the first user who comes', async () => {
      const { username, id, token } = await invite({ permissions: { automation: { read: true, write: true } } })
      expect((await audited())[0]).toMatchObject({ action: 'user_invited', details: { userId: id, username } })
      expect(JSON.stringify(await service.sql('select * from audit_log'))).not.toContain(token)
      const browser = browserOf(service)
      expect(await accept(browser, token)).toBe('/')
      expect(await whoIs(browser)).toMatchObject({ id, username, oidcSubject: provider.user.sub })
      const actions = (await audited()).map(({ action }) => action)
      expect(actions).toEqual(['login_success', 'account_linked'])
      provider.user = { sub: 'who comes second' }
      expect(await accept(browserOf(service), token)).toBe('/login?error=oidc_invitation_invalid')
      expect(await send(admin, 'GET', `/api/users/${id}/invitation`)).toMatchObject({ body: { invitation: null } })
      expect(await send(admin, 'POST', `/api/users/${id}/invitation`, {})).toMatchObject({ status: 409 })
    })

    test('a prepared account sees what its scope says from the first sign-in on', async () => {
      const scope = { channels: { read: [], write: [] }, direct: { read: true, write: false } }
      const { token } = await invite({ scope })
      expect((await audited())[1]).toMatchObject({ action: 'user_created', details: { scope } })
      const browser = browserOf(service)
      expect(await accept(browser, token)).toBe('/')
      expect(await send(browser, 'GET', '/api/auth/status')).toMatchObject({ body: { scope } })
    })

    test('of several at one instant one gets the account', async () => {
      const { id, token } = await invite()
      const browsers = Array.from({ length: 5 }, () => browserOf(service))
      const callbacks: string[] = []
      for (const [i, browser] of browsers.entries()) {
        provider.user = { sub: `racer ${count} ${i}` }
        const begun = await browser.request(`/api/auth/oidc/login?invitation=${token}`)
        const { pathname, search } = await provider.authorize(String(begun.headers.get('location')))
        callbacks.push(`${pathname}${search}`)
      }
      const ends = await Promise.all(browsers.map((browser, i) => browser.request(callbacks[i] ?? '')))
      const places = ends.map(({ headers }) => headers.get('location'))
      expect(places.filter((place) => place === '/')).toHaveLength(1)
      expect(places.filter((place) => place === '/login?error=oidc_invitation_invalid')).toHaveLength(4)
      expect(await whoIs(browsers[places.indexOf('/')] ?? admin)).toMatchObject({ id })
    })

    test('an expired, replaced or withdrawn invitation, or one of a deactivated user, is invalid', async () => {
      const refused = async (token: string, error = 'oidc_invitation_invalid') =>
        expect(await accept(browserOf(service), token)).toBe(`/login?error=${error}`)
      const expired = await invite()
      await service.sql(`update invitations set expires_at = 1 where user_id = ${expired.id} returning user_id`)
      await refused(expired.token)
      // Made while the clock was a year ahead.
      const early = await invite()
      await service.sql(
        `update invitations set expires_at = expires_at + 31536000000 where user_id = ${early.id} returning user_id`,
      )
      await refused(early.token)
      expect(await send(admin, 'GET', `/api/users/${early.id}/invitation`)).toMatchObject({
        body: { invitation: null },
      })
      const replaced = await invite()
      const second = await send(admin, 'POST', `/api/users/${replaced.id}/invitation`, { expiresInDays: 1 })
      expect(second.status).toBe(200)
      await refused(replaced.token)
      const withdrawn = await invite()
      expect((await send(admin, 'DELETE', `/api/users/${withdrawn.id}/invitation`)).status).toBe(204)
      expect((await audited())[0]).toMatchObject({ action: 'invitation_withdrawn' })
      await refused(withdrawn.token, 'oidc_invitation_ended')
      const inactive = await invite()
      expect((await send(admin, 'DELETE', `/api/users/${inactive.id}`)).status).toBe(204)
      await refused(inactive.token, 'oidc_invitation_ended')
      expect((await audited())[0]).toMatchObject({
        action: 'oidc_login_failed',
        details: { reason: 'invitation_ended', userId: inactive.id, why: 'user_deactivated' },
      })
      expect((await send(admin, 'PUT', `/api/users/${inactive.id}`, { isActive: true })).status).toBe(200)
      await refused(inactive.token, 'oidc_invitation_ended')
      await refused('made-up')
    })

    test('an invitation ends with the right of the administrator who made it, and does not come back with it', async () => {
      for (const [method, why] of [
        ['PUT', 'maker_demoted'],
        ['DELETE', 'maker_deactivated'],
      ] as const) {
        const maker = await local()
        const { id } = maker
        const promote = { isAdmin: true }
        expect((await send(admin, 'PUT', `/api/users/${id}/admin`, promote)).status).toBe(200)
        const username = `guest ${++count}`.replace(' ', '-')
        const made = await send(maker.browser, 'POST', '/api/users/prepared', { username })
        expect(made.status).toBe(201)
        const token = String(new URL(Object(made.body).invitation.url).searchParams.get('invitation'))
        const path = method === 'PUT' ? `/api/users/${id}/admin` : `/api/users/${id}`
        expect(
          (await send(admin, method, path, method === 'PUT' ? { isAdmin: false } : undefined)).status,
        ).toBeLessThan(300)
        const ended = (await audited()).find(({ action }) => action === 'invitation_withdrawn')
        expect(ended).toMatchObject({ details: { makerId: id, why, userIds: [Object(made.body).user.id] } })
        provider.user = { sub: `late ${++count}` }
        expect(await accept(browserOf(service), token)).toBe('/login?error=oidc_invitation_ended')
        expect((await audited())[0]).toMatchObject({ details: { reason: 'invitation_ended', why } })
        await send(admin, 'PUT', `/api/users/${id}`, { isActive: true })
        await send(admin, 'PUT', `/api/users/${id}/admin`, promote)
        expect(await accept(browserOf(service), token)).toBe('/login?error=oidc_invitation_ended')
        expect((await send(admin, 'PUT', `/api/users/${id}/admin`, { isAdmin: false })).status).toBe(200)
      }
    })

    test('a user who has an account here does not get a second one by an invitation', async () => {
      const { browser } = await local()
      await link(browser)
      const { id, token } = await invite()
      expect(await accept(browserOf(service), token)).toBe('/login?error=oidc_identity_taken')
      // And the invitation is not used up by that.
      provider.user = { sub: `newcomer ${++count}` }
      const newcomer = browserOf(service)
      expect(await accept(newcomer, token)).toBe('/')
      expect(await whoIs(newcomer)).toMatchObject({ id })
      expect(await send(newcomer, 'DELETE', '/api/auth/oidc/link')).toMatchObject({
        status: 409,
        body: { code: 'last_way_in' },
      })
      expect(await send(newcomer, 'POST', '/api/auth/oidc/link', {})).toMatchObject({
        status: 409,
        body: { code: 'already_linked' },
      })
    })

    test.each([
      [{ username: 'x', subject: 's' }, 400, 'invalid_request'],
      [{ username: 'x', subject: '', provider: 'default' }, 400, 'invalid_request'],
      [{ username: 'x', provider: 'nobody' }, 404, 'oidc_disabled'],
      [{ username: 'x', expiresInDays: 31 }, 400, 'invalid_request'],
      [{ username: 'admin' }, 409, 'username_taken'],
      [
        { username: 'x', isAdmin: true, scope: { channels: 'all', direct: { read: false, write: false } } },
        400,
        'invalid_request',
      ],
    ])('preparing %j is refused', async (body, status, code) => {
      expect(await send(admin, 'POST', '/api/users/prepared', body)).toMatchObject({ status, body: { code } })
    })
  })
}
