import { sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { accountLetters } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { LetterKind } from '../../../shared/access/letters.ts'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { Ports } from '../../base/context.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'

/**
 * The maximum number of letters of each kind to one user within a day, because anybody can cause those about sign-ins
 * and resets. Sign-ins have their own limit, so that many of them cannot suppress letters about changes.
 */
export const MAX_PER_DAY: Readonly<Record<LetterKind, number>> = {
  reset: 10,
  verify: 5,
  invitation: 5,
  sign_in: 10,
  change: 30,
}

/** The data of a letter. Its text is written when it is sent. */
export const letterDetailsSchema = z.object({
  username: z.string(),
  /** The language of whoever caused it, for somebody whose language is unknown. */
  language: z.string().optional(),
  /** When it happened, in ms. */
  at: z.number().optional(),
  ip: z.string().nullable().optional(),
  browser: z.string().nullable().optional(),
  /** What happened, in the names of the audit log. */
  actions: z.array(z.string()).optional(),
  /** The entries of the audit log. */
  entries: z.array(z.number()).optional(),
  /** It is the last one of its kind for a day. */
  isLast: z.boolean().optional(),
})
export type LetterDetails = z.infer<typeof letterDetailsSchema>

/** A link in a letter. Only its hash is stored, and the sealed token while the letter waits. */
export type NewLink = { readonly uid: string; readonly tokenHash: string; readonly sealed: string }

export async function newLink({ config }: Pick<Ports, 'config'>): Promise<NewLink> {
  const uid = newUid()
  const token = randomToken()
  return { uid, tokenHash: hashToken(token), sealed: await seal(config.SESSION_SECRET, linkLabel(uid), token) }
}

/** The token of the link; null if it was sealed under another secret. */
export function openLink({ config }: Pick<Ports, 'config'>, uid: string, sealed: string): Promise<string | null> {
  return unseal(config.SESSION_SECRET, linkLabel(uid), sealed)
}

export function newUid(): string {
  return `account_${crypto.randomUUID().replaceAll('-', '')}`
}

/** A token that is moved to another letter cannot be opened. */
export function linkLabel(uid: string): string {
  return `mail-link:${uid}`
}

export type NewLetter = {
  readonly uid: string
  readonly userId: number | SQL
  readonly kind: LetterKind
  readonly email: string
  readonly details: LetterDetails
  readonly sealed?: string
  readonly onlyIf?: SQL | undefined
}

/**
 * The statement that queues a letter, unless the user had too many of its kind. `isQueued` is true in the same step if
 * it did.
 */
export function queueLetter({ store, now }: Pick<Ports, 'store' | 'now'>, letter: NewLetter): Statement {
  const { uid, userId, kind, email, details, sealed = null, onlyIf = sql`true` } = letter
  const at = now()
  const recent = recently(at)
  const mine = sql`(select count(*) from account_letters where user_id = ${userId} and kind = ${kind} and ${recent})`
  // Anybody can enter any address, so the limit holds for an address too, however many users have it.
  const theirs = sql`(select count(*) from account_letters where lower(email) = lower(${email}) and kind = 'verify' and ${recent})`
  const most = MAX_PER_DAY[kind]
  const json = sql`json_set(${JSON.stringify(details)}, '$.isLast', json(iif(${mine} = ${most - 1}, 'true', 'false')))`
  return insertSelect(
    store.db,
    accountLetters,
    { uid, userId, kind, email, details: json, sealed, createdAt: at, dueAt: at },
    sql`where ${onlyIf} and ${mine} < ${most} and (${kind} <> 'verify' or ${theirs} < ${most})`,
  )
}

/** A condition: the letter of this ID was queued. */
export function isQueued(uid: string): SQL {
  return sql`exists (select 1 from account_letters where uid = ${uid})`
}

/** A condition on letters: recorded within the last day. Those recorded by a clock that was ahead do not count. */
export function recently(now: number, ms = DAY_MS): SQL {
  return sql`created_at > ${now - ms} and created_at <= ${now + 10 * MINUTE_MS}`
}
