import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthenticator } from '../../support/factors/authenticator.ts'
import { codeAt } from '../../support/factors/oathtool.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { type Browser, signInBy } from '../../support/web/browser.ts'
import { browserOf, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const PASSWORD = 'a password for everyone'
/** Passkeys belong to a name, not to an address. */
const SITE = 'http://mesh.localhost'

const POLICIES = ['none', 'admins', 'all'] as const
type Policy = (typeof POLICIES)[number]
type Kind = 'no factor' | 'totp' | 'passkey' | 'both' | 'provider' | 'provider with one factor'

type Expected = {
  /** What follows the password; null: nothing. */
  readonly asks: readonly string[] | null
  /** What a route for every user answers after the sign-in. */
  readonly may: '200' | '403 second_factor_required'
  readonly ways: readonly Way[]
}
type Way = 'password' | 'totp' | 'passkey' | 'oidc'

const NOTHING: Expected = { asks: null, may: '200', ways: ['password'] }
const TOTP: Expected = { asks: ['totp', 'recovery'], may: '200', ways: ['password', 'totp'] }
const PASSKEY: Expected = { asks: ['passkey', 'recovery'], may: '200', ways: ['password', 'passkey'] }
const BOTH: Expected = {
  asks: ['totp', 'passkey', 'recovery'],
  may: '200',
  ways: ['password', 'totp', 'passkey'],
}
const PROVIDER: Expected = { asks: null, may: '200', ways: ['oidc'] }
const BLOCKED = '403 second_factor_required'

const ROWS: readonly [policy: Policy, role: 'user' | 'admin', kind: Kind, expected: Expected][] = [
  ['none', 'user', 'no factor', NOTHING],
  ['none', 'user', 'totp', TOTP],
  ['none', 'user', 'passkey', PASSKEY],
  ['none', 'user', 'both', BOTH],
  ['none', 'user', 'provider', PROVIDER],
  ['admins', 'user', 'no factor', NOTHING],
  ['admins', 'admin', 'no factor', { ...NOTHING, may: BLOCKED }],
  ['admins', 'admin', 'totp', TOTP],
  ['admins', 'admin', 'passkey', PASSKEY],
  ['admins', 'admin', 'provider with one factor', PROVIDER],
  ['all', 'user', 'no factor', { ...NOTHING, may: BLOCKED }],
  ['all', 'user', 'both', BOTH],
  ['all', 'user', 'provider', PROVIDER],
  ['all', 'user', 'provider with one factor', { ...PROVIDER, may: BLOCKED }],
]

/** The audit entries of signing in in each way that this kind of account has; each factor is wrong at first. */
const SIGN_INS: Record<Kind, readonly string[]> = {
  'no factor': ['login_success local'],
  totp: [
    'login_failed local totp wrong_code',
    'login_success local totp',
    'login_failed local recovery wrong_code',
    'login_success local recovery',
  ],
  passkey: [
    'login_failed local passkey wrong_code',
    'login_success local passkey',
    'login_failed local recovery wrong_code',
    'login_success local recovery',
  ],
  both: [
    'login_failed local totp wrong_code',
    'login_success local totp',
    'login_failed local passkey wrong_code',
    'login_success local passkey',
    'login_failed local recovery wrong_code',
    'login_success local recovery',
  ],
  provider: ['login_success oidc'],
  'provider with one factor': ['login_success oidc'],
}

/** The answer and the audit entries of a wrong and a right proof in each way. */
const PROOFS: Record<Way, { readonly refused: string; readonly entries: readonly string[] }> = {
  password: {
    refused: '403 wrong_password',
    entries: ['login_failed local reauthentication password', 'reauthenticated password'],
  },
  totp: { refused: '403 wrong_code', entries: ['login_failed local reauthentication totp', 'reauthenticated totp'] },
  passkey: {
    refused: '403 passkey_refused',
    entries: ['login_failed local reauthentication passkey', 'reauthenticated passkey'],
  },
  oidc: {
    refused: '302 /login?error=oidc_failed',
    entries: ['oidc_login_failed oidc claim_auth_time', 'login_success oidc'],
  },
}

type Answer = { readonly status: number; readonly body: Record<string, unknown> }

/** A user, and everything that proves who they are. */
type Member = {
  readonly id: number
  readonly username: string
  readonly passkey: ReturnType<typeof createAuthenticator>
  secret: string
  codes: string[]
}

/**
 * How each kind of account signs in, what it may do then and how it reauthenticates, on any runtime: for these
 * policies, and with `browsers` at one instant (an even number; each of them costs one password hash).
 */
export function describeAccounts(
  runtime: string,
  open: OpenOidcService,
  { policies = POLICIES, browsers: many = 20 }: { policies?: readonly Policy[]; browsers?: number } = {},
): void {
  describe.each(policies)(`accounts on ${runtime}, REQUIRE_SECOND_FACTOR=%s`, (policy) => {
    let provider: TestProvider
    let service: OidcService
    let admin: Browser
    let count = 0
    beforeAll(async () => {
      provider = await startProvider()
      const env = { ...OIDC_SCENARIO_ENV, ...oidcEnv(provider), PUBLIC_URL: SITE, REQUIRE_SECOND_FACTOR: policy }
      service = await open(env)
      admin = browserOf(service)
      await send(admin, 'POST', '/api/auth/login', { username: 'admin', password: OIDC_SCENARIO_ENV.ADMIN_PASSWORD })
      await enrolTotp(admin)
    })
    afterAll(async () => {
      await service.close()
      await provider.close()
    })

    const make = async (isAdmin: boolean): Promise<Member> => {
      const username = `member${++count}`
      const made = await send(admin, 'POST', '/api/users', { username, password: PASSWORD, isAdmin })
      expect(made.status).toBe(201)
      const { id } = Object(made.body['user'])
      return { id: Number(id), username, passkey: createAuthenticator(SITE), secret: '', codes: [] }
    }
    /** The current code, even if it was used already. */
    const freshCode = async ({ id, secret }: Member): Promise<string> => {
      await service.sql(`update totp_factors set last_step = 1 where user_id = ${id} returning user_id`)
      return codeAt(secret, Date.now())
    }
    const give = async (browser: Browser, member: Member, kind: Kind): Promise<void> => {
      if (kind === 'totp' || kind === 'both') Object.assign(member, await enrolTotp(browser))
      if (kind === 'passkey' || kind === 'both') {
        const codes = await enrolPasskey(browser, member.passkey)
        if (codes !== null) member.codes = codes
      }
    }
    /** A browser in which the right password was typed. */
    const begin = async ({ username }: Member): Promise<{ browser: Browser; answer: Answer }> => {
      const browser = browserOf(service)
      return { browser, answer: await send(browser, 'POST', '/api/auth/login', { username, password: PASSWORD }) }
    }
    const assert = async (browser: Browser, path: string, passkey: Member['passkey']) => {
      const { body } = await send(browser, 'POST', `${path}/options`, {})
      return passkey.get(Object(body['options']).challenge)
    }
    /** Finishes a sign-in with a right or a wrong factor. */
    const finish = async (browser: Browser, member: Member, factor: string, isRight: boolean): Promise<string> => {
      const path = '/api/auth/login'
      switch (factor) {
        case 'totp':
          return outcome(send(browser, 'POST', `${path}/totp`, { code: wrongUnless(isRight, await freshCode(member)) }))
        case 'recovery': {
          const code = isRight ? member.codes[0] : 'abcd-efgh-jkmn-pqrs'
          return outcome(send(browser, 'POST', `${path}/recovery`, { code }))
        }
        default: {
          const response = await assert(
            browser,
            `${path}/passkey`,
            isRight ? member.passkey : createAuthenticator(SITE),
          )
          return outcome(send(browser, 'POST', `${path}/passkey`, { response }))
        }
      }
    }
    /** Proves who the viewer is with a right or a wrong answer. */
    const prove = async (browser: Browser, member: Member, way: Way, isRight: boolean): Promise<string> => {
      const path = '/api/auth/reauthenticate'
      switch (way) {
        case 'password':
          return outcome(send(browser, 'POST', path, { password: isRight ? PASSWORD : 'not the password of anybody' }))
        case 'totp':
          return outcome(send(browser, 'POST', path, { code: wrongUnless(isRight, await freshCode(member)) }))
        case 'passkey': {
          const passkey = await assert(browser, path, isRight ? member.passkey : createAuthenticator(SITE))
          return outcome(send(browser, 'POST', path, { passkey }))
        }
        case 'oidc': {
          const { claims = (all) => all } = provider.behave
          const at = Math.floor(Date.now() / 1000) - (isRight ? 0 : 3600)
          provider.behave = { claims: (all) => ({ ...claims(all), auth_time: at }) }
          const begun = await browser.request('/api/auth/oidc/login?reauthenticate=true&returnTo=/backups')
          const { pathname, search } = await provider.authorize(String(begun.headers.get('location')))
          const end = await browser.request(`${pathname}${search}`)
          return `${end.status} ${end.headers.get('location')}`
        }
      }
    }
    const lastEntry = async () => Number(Object((await service.sql('select max(id) as id from audit_log'))[0]).id)
    /** The audit entries after this id, in words. */
    const entriesSince = async (id: number): Promise<string[]> => {
      const rows = await service.sql(`select action, details from audit_log where id > ${id} order by id`)
      return rows.map(({ action, details }) => {
        const { provider: by, factor, reason, way } = Object(JSON.parse(String(details)))
        return [action, by, factor, reason, way].filter((word) => word !== undefined).join(' ')
      })
    }
    const age = (id: number) =>
      service.sql(`update sessions set authenticated_at = authenticated_at - 900000 where user_id = ${id} returning id`)
    const newToken = (browser: Browser) => send(browser, 'POST', '/api/tokens', { name: 'one', scopes: ['nodes:read'] })

    /** Signs in in every way that the account has; returns the browser of the last sign-in. */
    const enter = async (member: Member, kind: Kind, asks: Expected['asks']): Promise<Browser> => {
      if (kind === 'provider' || kind === 'provider with one factor') {
        const browser = browserOf(service)
        expect(await signInBy(browser, provider)).toBe('302 /')
        return browser
      }
      if (asks === null) {
        const { browser, answer } = await begin(member)
        expect(answer).toMatchObject({ status: 200, body: { user: { id: member.id } } })
        return browser
      }
      let entered = browserOf(service)
      for (const factor of asks) {
        const { browser, answer } = await begin(member)
        expect(answer).toEqual({ status: 200, body: { secondFactor: asks } })
        expect(await outcome(send(browser, 'GET', '/api/nodes'))).toBe('401 unauthenticated')
        expect(await finish(browser, member, factor, false)).toBe('401 invalid_code')
        expect(await finish(browser, member, factor, true)).toBe('200')
        entered = browser
      }
      return entered
    }

    const rows = ROWS.filter(([of]) => of === policy).map(([, ...row]) => row)
    test.each(rows)(
      '%s with %s: how they sign in, what they may do, how they reauthenticate',
      async (role, kind, expected) => {
        const { asks, may, ways } = expected
        let member: Member
        if (kind === 'provider' || kind === 'provider with one factor') {
          const sub = `subject ${++count}`
          provider.user = { sub }
          provider.behave = kind === 'provider' ? {} : { claims: (claims) => ({ ...claims, amr: ['pwd'] }) }
          expect(await signInBy(browserOf(service), provider)).toBe('302 /')
          const [row] = await service.sql(
            `select users.id, username from users join identities on user_id = users.id where subject = '${sub}'`,
          )
          const { id, username } = Object(row)
          if (role === 'admin') {
            expect(await outcome(send(admin, 'PUT', `/api/users/${id}/admin`, { isAdmin: true }))).toBe('200')
          }
          member = { id, username, passkey: createAuthenticator(SITE), secret: '', codes: [] }
          // Such a user has no password.
          expect(await outcome(begin(member).then(({ answer }) => answer))).toBe('401 invalid_credentials')
        } else {
          member = await make(role === 'admin')
          await give((await begin(member)).browser, member, kind)
        }

        const before = await lastEntry()
        const browser = await enter(member, kind, asks)
        expect(await entriesSince(before)).toEqual(SIGN_INS[kind])
        expect(await outcome(send(browser, 'GET', '/api/nodes'))).toBe(may)
        const status = await send(browser, 'GET', '/api/auth/status')
        expect(Object(status.body['secondFactor']).isMissing).toBe(may === BLOCKED)

        if (may === BLOCKED) {
          expect(await outcome(newToken(browser))).toBe(BLOCKED)
          return
        }
        for (const way of ways) {
          await age(member.id)
          const start = await lastEntry()
          expect(await newToken(browser)).toMatchObject({
            status: 403,
            body: { code: 'reauthentication_required', ways },
          })
          expect(await prove(browser, member, way, false)).toBe(PROOFS[way].refused)
          expect(await outcome(newToken(browser))).toBe('403 reauthentication_required')
          expect(await prove(browser, member, way, true)).toBe(way === 'oidc' ? '302 /backups' : '204')
          expect(await outcome(newToken(browser))).toBe('201')
          expect(await entriesSince(start)).toEqual([...PROOFS[way].entries, 'token_created'])
        }
      },
    )

    test('a request with a token needs no factor and no fresh sign-in, even if its owner needs both', async () => {
      const member = await make(true)
      const { browser } = await begin(member)
      await give(browser, member, 'totp')
      const made = await send(browser, 'POST', '/api/tokens', { name: 'backups', scopes: ['backup'] })
      expect((await send(browser, 'DELETE', '/api/auth/factors/totp')).status).toBe(204)
      await age(member.id)
      const needed = policy === 'none' ? '403 reauthentication_required' : BLOCKED
      expect(await outcome(send(browser, 'POST', '/api/system/backup'))).toBe(needed)
      const headers = { authorization: `Bearer ${String(made.body['token'])}` }
      const before = await lastEntry()
      const answer = send(browserOf(service), 'POST', '/api/system/backup', undefined, headers)
      expect(await outcome(answer)).toBe('501 unsupported_on_this_runtime')
      expect(await entriesSince(before)).toEqual([])
    })

    describe.runIf(policy === 'all')('at one instant', () => {
      /** Browsers in which the password of the member was typed. */
      const browsersOf = async (member: Member) =>
        (await Promise.all(Array.from({ length: many }, () => begin(member)))).map(({ browser }) => browser)
      const signedIn = async (browsers: readonly Browser[]) => {
        const all = await Promise.all(browsers.map((browser) => send(browser, 'GET', '/api/auth/status')))
        return all.filter(({ body }) => body['authenticated'] === true).length
      }
      const usesOf = async (before: number) =>
        (await entriesSince(before)).filter((entry) => entry.startsWith('login_success')).length

      test(`${many} uses of one code of the app, and of one recovery code: one of each signs in`, async () => {
        const member = await make(false)
        await give((await begin(member)).browser, member, 'totp')
        const right = await freshCode(member)
        for (const [path, code] of [
          ['/api/auth/login/totp', right],
          ['/api/auth/login/recovery', member.codes[0]],
        ] as const) {
          const browsers = await browsersOf(member)
          const before = await lastEntry()
          const all = await Promise.all(browsers.map((browser) => outcome(send(browser, 'POST', path, { code }))))
          expect(all.filter((one) => one === '200')).toHaveLength(1)
          expect(all.filter((one) => one !== '200' && !one.startsWith('401 '))).toEqual([])
          expect(await signedIn(browsers)).toBe(1)
          expect(await usesOf(before)).toBe(1)
        }
      })

      test(`${many} browsers with half as many recovery codes: each code signs one in`, async () => {
        const member = await make(false)
        const { browser } = await begin(member)
        await give(browser, member, 'totp')
        const browsers = await browsersOf(member)
        const before = await lastEntry()
        const all = await Promise.all(
          browsers.map((each, i) => {
            const code = member.codes[i % (many / 2)]
            return outcome(send(each, 'POST', '/api/auth/login/recovery', { code }))
          }),
        )
        expect(all.filter((one) => one === '200')).toHaveLength(many / 2)
        expect(await signedIn(browsers)).toBe(many / 2)
        expect(await usesOf(before)).toBe(many / 2)
        const left = { recoveryCodesLeft: 10 - many / 2 }
        expect(await send(browser, 'GET', '/api/auth/factors')).toMatchObject({ body: left })
      })

      test('of two enrolments one app works, and so do the recovery codes that were shown', async () => {
        const member = await make(false)
        const [one, two] = [(await begin(member)).browser, (await begin(member)).browser]
        const begun = await Promise.all([one, two].map((each) => send(each, 'POST', '/api/auth/factors/totp')))
        const before = await lastEntry()
        const confirmed = await Promise.all(
          [one, two].map((each, i) => {
            const { secret, enrolment } = Object(begun[i]?.body)
            const code = codeAt(secret, Date.now())
            return send(each, 'POST', '/api/auth/factors/totp/confirm', { enrolment, code })
          }),
        )
        const shown = confirmed.flatMap(({ body }) => Object(body).recoveryCodes ?? [])
        expect(shown).toHaveLength(10)
        const rows = await entriesSince(before)
        expect(rows.filter((row) => row === 'recovery_codes_created')).toHaveLength(1)
        // Each confirmation that succeeded has its own entry.
        const told = confirmed.filter(({ status }) => status === 200).length
        expect(rows.filter((row) => row.startsWith('second_factor_added'))).toHaveLength(told)
        const works: boolean[] = []
        for (const { body } of begun) {
          await service.sql(`update totp_factors set last_step = 1 where user_id = ${member.id} returning user_id`)
          const { browser } = await begin(member)
          const code = codeAt(Object(body).secret, Date.now())
          works.push((await send(browser, 'POST', '/api/auth/login/totp', { code })).status === 200)
        }
        expect(works.filter(Boolean)).toHaveLength(1)
        const { browser } = await begin(member)
        expect(await outcome(send(browser, 'POST', '/api/auth/login/recovery', { code: shown[9] }))).toBe('200')
      })
    })
  })
}

async function send(
  browser: Browser,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const json = body !== undefined && {
    body: JSON.stringify(body),
    headers: { ...headers, 'content-type': 'application/json' },
  }
  const answer = await browser.request(path, { method, headers, ...json })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? {} : Object(JSON.parse(text)) }
}

/** The status, and the code of a refusal. */
async function outcome(sent: Promise<Answer>): Promise<string> {
  const { status, body } = await sent
  return typeof body['code'] === 'string' ? `${status} ${body['code']}` : String(status)
}

function wrongUnless(isRight: boolean, code: string): string {
  return isRight ? code : String((Number(code) + 1) % 1_000_000).padStart(6, '0')
}

async function enrolTotp(browser: Browser): Promise<{ secret: string; codes: string[] }> {
  const { secret, enrolment } = Object((await send(browser, 'POST', '/api/auth/factors/totp')).body)
  const code = codeAt(secret, Date.now())
  const answer = await send(browser, 'POST', '/api/auth/factors/totp/confirm', { enrolment, code })
  expect(answer).toMatchObject({ status: 200, body: { recoveryCodes: expect.any(Array) } })
  return { secret, codes: Object(answer.body).recoveryCodes }
}

/** Returns the recovery codes that came with it; null: there were some already. */
async function enrolPasskey(browser: Browser, passkey: Member['passkey']): Promise<string[] | null> {
  const path = '/api/auth/factors/passkeys'
  const { body } = await send(browser, 'POST', `${path}/options`, {})
  const response = passkey.create(Object(body['options']).challenge)
  const added = await send(browser, 'POST', path, { name: 'soft', response })
  expect(added.status).toBe(200)
  return Object(added.body).recoveryCodes
}
