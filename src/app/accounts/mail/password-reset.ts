import { and, asc, eq, inArray, isNotNull, or, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { resetRequests, users } from '../../../db/schema.ts'
import { prepareOnce, type Statement } from '../../../db/store.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import type { BucketSize } from '../../http/limits/buckets.ts'
import { isClockTrusted } from '../../base/pacing/clock.ts'
import { endAccessByReset, nextEpoch } from '../users/users.ts'
import { browserOf } from '../browser.ts'
import { addressKey } from '../../http/limits/address-key.ts'
import { forgiveAttempts } from '../passwords/login-limiter.ts'
import { hashNewPassword } from '../passwords/passwords.ts'
import { demandAccountMail, siteOfMail } from './account-mail.ts'
import { isQueued, newLink, queueLetter, recently } from './letters.ts'
import { dropLinks, findLink, insertLink, readState } from './links.ts'
import type { LetterNeeds } from './sending.ts'
import { isEmailVerified } from '../users/verified-email.ts'
import { said } from '../../words/words.ts'

/** The limit for requests from one address, including those for unknown names. */
const REQUESTS: BucketSize = { most: 10, everyMs: 6 * 60_000 }
/** The limit for links used or tried from one address. */
export const LINKS: BucketSize = { most: 30, everyMs: 20_000 }
/** Requests that wait to be looked up. */
const MAX_WAITING = 1000
/** Requests that are looked up at a time. */
const AT_ONCE = 50
/** Users of one address who each get a letter. */
const MAX_NAMED = 5
/**
 * The letters that browsers without an earlier sign-in can cause in an hour. Known browsers can still cause one then.
 */
const MAX_OF_ANONYMOUS = 3

/**
 * Limits requests by address. A request without an address, as through a Unix socket, is not limited. Throws
 * `rate_limited`.
 */
export async function takeFor(ctx: Ctx, name: string, size: BucketSize): Promise<void> {
  if (ctx.ip === null) return
  const waitMs = await ctx.buckets.take(`mail:${name}:${addressKey(ctx.ip)}`, size, ctx.now())
  const retryAfter = Math.ceil(waitMs / 1000)
  if (waitMs > 0)
    throw new AppError(
      'rate_limited',
      said('Too many of these requests; try again in {retryAfter} s', { retryAfter }),
      { retryAfter },
    )
}

/**
 * Records that somebody forgot the password of this username or e-mail address. It does the same work for every name,
 * and `lookUpRequests` finds the user later, so that neither answer nor timing reveals which users exist. Does not wait
 * for the disk. `knownTo` are the users who signed in before in this browser. Throws `account_mail_disabled`,
 * `rate_limited`. Decision: docs/decisions/forgotten-passwords.md
 */
export async function requestReset(ctx: Ctx, name: string, knownTo: readonly number[]): Promise<void> {
  demandAccountMail(ctx)
  await takeFor(ctx, 'reset', REQUESTS)
  const { store, requestId, ip } = ctx
  const browser = browserOf(ctx.userAgent)
  await store.atomic(
    [
      insertSelect(
        store.db,
        resetRequests,
        { name, knownTo: [...knownTo], ip, browser, requestId, createdAt: ctx.now() },
        sql`where (select count(*) from ${resetRequests}) < ${MAX_WAITING}`,
      ),
    ],
    'lazily',
  )
}

const queries = prepareOnce((db) => ({
  waiting: db.select().from(resetRequests).orderBy(asc(resetRequests.id)).limit(AT_ONCE).prepare(),
  // Letters never go to the typed address, but to the stored one that the user has confirmed.
  named: db
    .select({ id: users.id, username: users.username, email: users.email })
    .from(users)
    .where(
      and(
        or(
          sql`lower(${users.username}) = lower(${sql.placeholder('name')})`,
          sql`lower(${users.email}) = lower(${sql.placeholder('name')})`,
        ),
        eq(users.isActive, true),
        isNotNull(users.passwordHash),
        eq(isEmailVerified, 1),
      ),
    )
    .orderBy(asc(users.id))
    .limit(MAX_NAMED)
    .prepare(),
}))

type Request = typeof resetRequests.$inferSelect

/** Queues letters for the users whom requests name. Returns the number of requests. */
export async function lookUpRequests(needs: LetterNeeds): Promise<number> {
  const { store, now } = needs
  const waiting = await queries(store).waiting.all()
  if (waiting.length === 0 || (siteOfMail(needs) !== null && !isClockTrusted(needs))) return 0
  const ids = waiting.map(({ id }) => id)
  const isLate = ({ createdAt }: Request) => Math.abs(now() - createdAt) > HOUR_MS
  const letters: Statement[] = []
  for (const request of siteOfMail(needs) === null ? [] : waiting.filter((one) => !isLate(one))) {
    for (const user of await queries(store).named.all({ name: request.name })) {
      letters.push(...(await writeReset(needs, request, user)))
    }
  }
  await store.atomic([store.db.delete(resetRequests).where(inArray(resetRequests.id, ids)), ...letters])
  return waiting.length
}

async function writeReset(
  needs: LetterNeeds,
  request: Request,
  { id: userId, username, email }: { readonly id: number; readonly username: string; readonly email: string | null },
): Promise<Statement[]> {
  const state = await readState(needs, userId, 'reset')
  if (state === null || email === null) return []
  const { ip, browser, requestId, createdAt: at } = request
  const link = await newLink(needs)
  const { store, now } = needs
  const fromAnonymous = sql`(select count(*) from account_letters where user_id = ${userId} and kind = 'reset'
    and ${recently(now(), HOUR_MS)}) < ${MAX_OF_ANONYMOUS}`
  const onlyIf = request.knownTo.includes(userId) ? undefined : fromAnonymous
  const details = { username, at, ip, browser }
  const { uid, sealed } = link
  return [
    queueLetter(needs, { uid, userId, kind: 'reset', email, details, sealed, onlyIf }),
    insertLink(needs, { ...link, userId, purpose: 'reset', email, state }),
    audit(
      { store, viewer: null, ip, requestId, now },
      'password_reset_requested',
      { userId, username },
      { actor: { id: null, username }, onlyIf: isQueued(uid) },
    ),
  ]
}

/**
 * Sets the password by a link. The link is used up, all sessions end, and API tokens and failed attempts are treated as
 * in a reset by an administrator. Second factors stay, and the next sign-in asks for them. Of several simultaneous
 * calls, one succeeds. Throws `link_invalid`, `weak_password`, `rate_limited`.
 */
export async function resetByLink(ctx: Ctx, { token, password }: { token: string; password: string }): Promise<void> {
  await takeFor(ctx, 'links', LINKS)
  const link = await findLink(ctx, token, ['reset'])
  if (link === null) throw new AppError('link_invalid')
  const { userId, username } = link
  const passwordHash = await hashNewPassword(ctx, password, username)
  const { store } = ctx
  const isOurs = sql`exists (select 1 from ${users} where ${and(eq(users.id, userId), eq(users.passwordHash, passwordHash))})`
  const ended = endAccessByReset(ctx, { id: userId, username }, { onlyIf: isOurs, actor: { id: userId, username } })
  await store.atomic([
    store.db
      .update(users)
      .set({ passwordHash, mustChangePassword: false, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, userId), link.isOpen)),
    audit(
      ctx,
      'password_reset',
      { userId, username, by: 'mail', ...ended.details },
      { actor: { id: userId, username }, onlyIfChanged: true },
    ),
    ...ended.statements,
    dropLinks(ctx, userId, 'reset', isOurs),
  ])
  const won = await store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, userId), eq(users.passwordHash, passwordHash)))
    .get()
  if (won === undefined) throw new AppError('link_invalid')
  await ctx.sessions.removeForUser(userId)
  await forgiveAttempts(ctx, { id: userId, username })
}
