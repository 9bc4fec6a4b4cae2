import { ownedBy } from '../../base/owned.ts'
import type { SessionStore } from '../sessions/store.ts'
import { eq, or, sql, type SQL } from 'drizzle-orm'
import { rateLimits } from '../../../db/schema.ts'
import type { Reading, Statement, Store } from '../../../db/store.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { addressKey } from '../../http/limits/address-key.ts'
import { said } from '../../words/words.ts'

/** Logins of one account or address that may wait for earlier ones. */
const MAX_WAITING = 64

/** Simultaneous password checks for one account or address in this process. */
type Checks = { running: number; readonly waiting: (() => void)[] }

const checksOf = ownedBy((_sessions: SessionStore) => new Map<string, Checks>())

/** A browser in which this user signed in before; each has a nonce of its own. */
export type KnownBrowser = { readonly userId: number; readonly nonce: string }

/**
 * All known browsers of an account together may fail this many times as often as one, because somebody may have created
 * many.
 */
const BROWSERS_FACTOR = 10

const keys = {
  account: (username: string) => `login:account:${[...username.toLowerCase()].slice(0, 64).join('').toWellFormed()}`,
  address: (ip: string) => `${ADDRESSES}${addressKey(ip)}`,
  browser: ({ userId, nonce }: KnownBrowser) => `login:browser:${userId}:${nonce}`,
  browsersOf: (userId: number | '%d') => `login:browser:${userId}:`,
  browsers: (userId: number | '%d') => `login:browsers:${userId}`,
  password: (userId: number | '%d') => `password:user:${userId}`,
  proof: (userId: number | '%d') => `proof:user:${userId}`,
  code: (userId: number | '%d') => `code:user:${userId}`,
  codeBrowser: ({ userId, nonce }: KnownBrowser) => `code:browser:${userId}:${nonce}`,
  codeBrowsersOf: (userId: number | '%d') => `code:browser:${userId}:`,
  codeBrowsers: (userId: number | '%d') => `code:browsers:${userId}`,
  passkey: (userId: number | '%d') => `passkey:user:${userId}`,
  passkeyBrowser: ({ userId, nonce }: KnownBrowser) => `passkey:browser:${userId}:${nonce}`,
  passkeyBrowsersOf: (userId: number | '%d') => `passkey:browser:${userId}:`,
  passkeyBrowsers: (userId: number | '%d') => `passkey:browsers:${userId}`,
}
const ADDRESSES = 'login:address:'
const refusedKey = (key: string) => `refused:${key}`

/** Who made too many attempts. */
export type RefusedLimit = 'account' | 'address' | 'browser' | 'browsers'

/**
 * Runs `check`, which returns null for a wrong password, as a password attempt with the rows of `reading`. The attempt
 * is counted before the check, so that simultaneous attempts cannot pass together. An attempt from a known browser
 * counts against that browser, so that nobody else can lock it out; any other counts against the account and its
 * address. A success clears the count of the browser or account and takes this attempt off the others. An attempt that
 * throws does not count. Throws `rate_limited` with the seconds to wait; `onRefused` is called at the first such
 * refusal of a window. Decision: docs/decisions/short-decisions.md#a-login-is-counted-before-its-password-is-checked
 */
export async function attemptLogin<R, T>(
  ctx: Ctx,
  attempt: { readonly username: string; readonly browser: KnownBrowser | null; readonly reading: Reading<R> },
  check: (rows: R) => Promise<T | null>,
  onRefused: (limit: RefusedLimit) => Promise<void>,
): Promise<T | null> {
  const { username, browser, reading } = attempt
  const readAndCheck = async (rows: R | null) => check(rows ?? (await reading.select.all(reading.values)))
  const known = browser && { own: keys.browser(browser), all: keys.browsers(browser.userId) }
  const limits = limitsOf(ctx, { account: keys.account(username), known }, onRefused)
  return counted(ctx, limits, readAndCheck, reading)
}

/**
 * As `attemptLogin`, for the password of a signed-in user. Failed sign-ins do not count here, and these failures do not
 * count there.
 */
export async function attemptPassword<T>(ctx: Ctx, userId: number, check: () => Promise<T | null>): Promise<T | null> {
  return attemptOf(ctx, keys.password(userId), check)
}

/** As `attemptPassword`, for a second factor of a signed-in user. A correct password does not clear its count. */
export async function attemptProof<T>(ctx: Ctx, userId: number, check: () => Promise<T | null>): Promise<T | null> {
  return attemptOf(ctx, keys.proof(userId), check)
}

async function attemptOf<T>(ctx: Ctx, key: string, check: () => Promise<T | null>): Promise<T | null> {
  const { LOGIN_MAX_FAILURES: most } = ctx.config
  return counted(ctx, [{ key, most, forgiven: 'all', onRefused: async () => {} }], check)
}

/**
 * As `attemptLogin`, for the second factor after a correct password. Counted separately, because a correct password
 * clears the count of passwords.
 */
export async function attemptCode<T>(
  ctx: Ctx,
  { userId, browser }: { readonly userId: number; readonly browser: KnownBrowser | null },
  check: () => Promise<T | null>,
  onRefused: (limit: RefusedLimit) => Promise<void>,
): Promise<T | null> {
  const known = browser && { own: keys.codeBrowser(browser), all: keys.codeBrowsers(userId) }
  return counted(ctx, limitsOf(ctx, { account: keys.code(userId), known }, onRefused), check)
}

/**
 * As `attemptLogin`, for a passkey without a password. `owner` is the user whose passkey signs a challenge of this
 * service. Without an owner nothing can be guessed, so only the address counts.
 */
export async function attemptPasskey<T>(
  ctx: Ctx,
  { owner, browser }: { readonly owner: number | null; readonly browser: KnownBrowser | null },
  check: () => Promise<T | null>,
): Promise<T | null> {
  const known = browser && { own: keys.passkeyBrowser(browser), all: keys.passkeyBrowsers(browser.userId) }
  const account = owner === null ? null : keys.passkey(owner)
  const onRefused = async (limit: RefusedLimit) => {
    ctx.log.warn('Sign-ins by passkey are refused: too many have failed', {
      requestId: ctx.requestId,
      limit,
      ip: ctx.ip,
    })
  }
  return counted(ctx, limitsOf(ctx, { account, known }, onRefused), check)
}

/** Clears all wrong codes and passkeys of a user. */
export async function forgiveCodes({ sessions }: Ctx, userId: number): Promise<void> {
  await sessions.forgive(keys.proof(userId), 'all')
  await sessions.forgive(keys.code(userId), 'all')
  await sessions.forgive(refusedKey(keys.code(userId)), 'all')
  await sessions.forgive(keys.codeBrowsers(userId), 'all')
  await sessions.clear(keys.codeBrowsersOf(userId))
  await sessions.forgive(keys.passkey(userId), 'all')
  await sessions.forgive(keys.passkeyBrowsers(userId), 'all')
  await sessions.clear(keys.passkeyBrowsersOf(userId))
}

/** Clears all failed attempts at a user's password and second factor. */
export async function forgiveAttempts(ctx: Ctx, user: { id: number; username: string }): Promise<void> {
  const { sessions } = ctx
  await forgiveCodes(ctx, user.id)
  await sessions.forgive(keys.account(user.username), 'all')
  await sessions.forgive(refusedKey(keys.account(user.username)), 'all')
  await sessions.forgive(keys.browsers(user.id), 'all')
  await sessions.forgive(keys.password(user.id), 'all')
  await sessions.clear(keys.browsersOf(user.id))
}

/** Clears the failed sign-ins of all addresses. */
export async function forgiveAddresses({ sessions }: Ctx): Promise<void> {
  await sessions.clear(ADDRESSES)
  await sessions.clear(refusedKey(ADDRESSES))
}

/**
 * The statement that clears all failed attempts at a user's password and the failed sign-ins of all addresses, if the
 * counters are in the database itself.
 */
export function forgiveInDatabase(
  { db }: Pick<Store, 'db'>,
  { username, userId }: { readonly username: string; readonly userId: SQL },
): Statement {
  const { key } = rateLimits
  const begins = (prefix: string | SQL) => sql`substr(${key}, 1, length(${prefix})) = ${prefix}`
  const ofUser = (make: (id: '%d') => string) => sql`printf(${make('%d')}, ${userId})`
  return db.delete(rateLimits).where(
    or(
      eq(key, keys.account(username)),
      eq(key, refusedKey(keys.account(username))),
      eq(key, ofUser(keys.browsers)),
      eq(key, ofUser(keys.password)),
      eq(key, ofUser(keys.proof)),
      eq(key, ofUser(keys.code)),
      eq(key, ofUser(keys.codeBrowsers)),
      eq(key, ofUser(keys.passkey)),
      eq(key, ofUser(keys.passkeyBrowsers)),
      eq(
        key,
        ofUser((id) => refusedKey(keys.code(id))),
      ),
      begins(ofUser(keys.browsersOf)),
      begins(ofUser(keys.codeBrowsersOf)),
      begins(ofUser(keys.passkeyBrowsersOf)),
      begins(ADDRESSES),
      begins(refusedKey(ADDRESSES)),
    ),
  )
}

type Limit = {
  readonly key: string
  readonly most: number
  readonly forgiven: 'all' | 'one'
  readonly onRefused: () => Promise<void>
}

/**
 * The keys under which an attempt is counted. `known`: those of a known browser, and of all known browsers of the same
 * user.
 */
type Counted = {
  readonly account: string | null
  readonly known: { readonly own: string; readonly all: string } | null
}

function limitsOf(ctx: Ctx, { account, known }: Counted, onRefused: (limit: RefusedLimit) => Promise<void>): Limit[] {
  const { LOGIN_MAX_FAILURES: most } = ctx.config
  const limit = (name: RefusedLimit, key: string, forgiven: Limit['forgiven'], factor = 1): Limit => {
    return { key, most: most * factor, forgiven, onRefused: () => onRefused(name) }
  }
  if (known !== null) {
    return [limit('browsers', known.all, 'one', BROWSERS_FACTOR), limit('browser', known.own, 'all')]
  }
  const address = ctx.ip === null ? [] : [limit('address', keys.address(ctx.ip), 'one')]
  return [...address, ...(account === null ? [] : [limit('account', account, 'all')])]
}

/** `check` gets the rows of `reading`, or null if the counting did not read them. */
async function counted<R, T>(
  ctx: Ctx,
  limits: readonly Limit[],
  check: (rows: R | null) => Promise<T | null>,
  reading: Reading<R> | null = null,
): Promise<T | null> {
  const { end, rows } = await take(ctx, limits, reading)
  try {
    const found = await check(rows).catch(async (error: unknown) => {
      await takeBack(ctx, limits)
      throw error
    })
    if (found !== null) {
      await forgive(
        ctx,
        limits.map(({ key, forgiven }) => ({ key, how: forgiven })),
      )
    }
    return found
  } finally {
    end()
  }
}

async function takeBack(ctx: Ctx, limits: readonly Limit[]): Promise<void> {
  await forgive(
    ctx,
    limits.map(({ key }) => ({ key, how: 'one' })),
  )
}

async function forgive(
  { sessions }: Ctx,
  all: readonly { readonly key: string; readonly how: 'all' | 'one' }[],
): Promise<void> {
  if (sessions.forgives !== undefined) return sessions.forgives(all)
  for (const { key, how } of all) await sessions.forgive(key, how)
}

/** Counts an attempt against each limit in turn, until one is full; returns the results so far. */
async function hitInTurn<R>(ctx: Ctx, limits: readonly Limit[], reading: Reading<R> | null, now: number) {
  const ms = ctx.config.LOGIN_WINDOW_SECONDS * 1000
  if (ctx.sessions.hits !== undefined) return ctx.sessions.hits(limits, { ms, now }, reading)
  const counts: { count: number; resetAt: number }[] = []
  for (const { key, most } of limits) {
    const counted = await ctx.sessions.hit(key, ms, now)
    counts.push(counted)
    if (counted.count > most) break
  }
  return { counts, rows: null }
}

/**
 * Counts an attempt; the returned `end` ends its check. If running checks use up the limit, it waits for one of them,
 * because their passwords may be correct.
 */
async function take<R>(ctx: Ctx, limits: readonly Limit[], reading: Reading<R> | null) {
  for (;;) {
    const before = new Map(checksOf(ctx.sessions))
    const now = ctx.now()
    const { counts, rows } = await hitInTurn(ctx, limits, reading, now)
    const full = limits.findIndex(({ most }, i) => (counts[i]?.count ?? 0) > most)
    const [refused, resetAt] = [limits[full], counts[full]?.resetAt ?? now]
    if (refused === undefined) return { end: begin(ctx, limits), rows }
    // A refused request does not count as an attempt.
    await takeBack(ctx, limits.slice(0, full + 1))
    const { key, onRefused } = refused
    const checks = checksOf(ctx.sessions).get(key)
    const isEnded = before.has(key) && checks !== before.get(key)
    if (!ctx.passwords.mayWait || (checks === undefined && !isEnded)) {
      const refusals = await ctx.sessions.hit(refusedKey(key), Math.max(1, resetAt - now), now)
      if (refusals.count === 1) await onRefused()
      const retryAfter = Math.max(1, Math.ceil((resetAt - now) / 1000))
      throw new AppError(
        'rate_limited',
        said('Too many failed attempts; try again in {retryAfter} s', { retryAfter }),
        { retryAfter },
      )
    }
    if (checks !== undefined) await ended(checks)
  }
}

async function ended({ waiting }: Checks): Promise<void> {
  if (waiting.length >= MAX_WAITING) {
    throw new AppError('rate_limited', 'Too many sign-ins at once; try again in a few seconds', { retryAfter: 5 })
  }
  await new Promise<void>((resolve) => waiting.push(resolve))
}

/** Begins a check. The returned function ends it and lets waiting attempts try again. */
function begin({ sessions }: Ctx, limits: readonly Limit[]): () => void {
  const all = checksOf(sessions)
  const begun = limits.map(({ key }) => {
    const checks = all.get(key) ?? { running: 0, waiting: [] }
    all.set(key, checks)
    checks.running++
    return { key, checks }
  })
  return () => {
    for (const { key, checks } of begun) {
      checks.running--
      if (checks.running === 0) all.delete(key)
      for (const wake of checks.waiting.splice(0)) wake()
    }
  }
}
