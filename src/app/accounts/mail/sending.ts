import { asc, sql } from 'drizzle-orm'
import { accountLetters } from '../../../db/schema.ts'
import { bind, prepareOnce } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { SendFailure } from '../../base/outgoing/ports.ts'
import { pauseAfter } from '../../base/outgoing/pauses.ts'
import type { Ports } from '../../base/context.ts'
import { siteOfMail } from './account-mail.ts'
import { isClockTrusted } from '../../base/pacing/clock.ts'
import { letterDetailsSchema, openLink } from './letters.ts'
import { wordsOf } from '../../words/reader.ts'
import { languageIn, readerOf } from '../users/reader.ts'
import { writeText } from './letter-text.ts'
import { LINK_MS, sweepLinks } from './links.ts'

/** Letters that are sent at the same time. */
const AT_ONCE = 4
/** An interrupted attempt is repeated after this time. */
const CLAIM_MS = MINUTE_MS
/** Sent and abandoned letters are kept for this long, because they count against the limits. */
const KEPT_MS = 2 * DAY_MS
/** After this time a letter is given up. */
const GIVEN_UP_MS = {
  reset: LINK_MS.reset,
  verify: LINK_MS.verify,
  invitation: DAY_MS,
  sign_in: DAY_MS,
  change: DAY_MS,
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  due: db
    .select()
    .from(accountLetters)
    .where(sql`ended_at is null and due_at <= ${value('now')}`)
    .orderBy(asc(accountLetters.dueAt), asc(accountLetters.id))
    .limit(AT_ONCE)
    .prepare(),
  claim: db
    .update(accountLetters)
    .set({ attempts: sql`attempts + 1`, dueAt: sql`${value('until')}` })
    .where(sql`id = ${value('id')} and ended_at is null and due_at <= ${value('now')}`)
    .returning({ id: accountLetters.id })
    .prepare(),
  // Deletes the sealed token: from then on the link is only in the letter itself.
  end: db
    .update(accountLetters)
    .set({ endedAt: sql`${value('now')}`, result: sql`${value('result')}`, sealed: null })
    .where(sql`id = ${value('id')} and ended_at is null`)
    .prepare(),
  fail: db
    .update(accountLetters)
    .set({ dueAt: sql`${value('until')}`, result: sql`${value('result')}` })
    .where(sql`id = ${value('id')}`)
    .prepare(),
  // Gives up letters recorded by a clock that was ahead, whose links are invalid.
  distrust: db
    .update(accountLetters)
    .set({ endedAt: sql`${value('now')}`, result: 'written while the clock was ahead', sealed: null })
    .where(sql`ended_at is null and (due_at > ${value('far')} or created_at > ${value('far')})`)
    .prepare(),
  forget: db
    .delete(accountLetters)
    .where(
      sql`id in (select id from account_letters where ended_at is not null
        and (created_at < ${value('before')} or created_at > ${value('far')}) limit 1000)`,
    )
    .prepare(),
}))

export type LetterNeeds = Pick<Ports, 'store' | 'config' | 'mail' | 'now' | 'log' | 'clockWatch' | 'translations'>

/** Deletes expired links and old letters, and gives up letters recorded by a clock that was ahead. Runs each minute. */
export async function tidyLetters(needs: LetterNeeds): Promise<void> {
  const { store, now } = needs
  if (!isClockTrusted(needs)) return
  const { distrust, forget } = queries(store)
  const far = now() + 2 * HOUR_MS
  await store.atomic([
    sweepLinks(needs),
    bind(distrust, { now: now(), far }),
    bind(forget, { before: now() - KEPT_MS, far }),
  ])
}

/**
 * Sends the letters that are due. Returns how many were tried, so that the caller continues. `mayWrite` is checked
 * before each, because another process may have taken over.
 */
export async function sendLetters(needs: LetterNeeds, mayWrite: () => boolean = () => true): Promise<number> {
  const { store, now } = needs
  const site = siteOfMail(needs)
  if (site === null || !isClockTrusted(needs)) return 0
  const due = await queries(store).due.all({ now: now() })
  const tried = await Promise.all(due.map(async (letter) => mayWrite() && (await sendLetter(needs, letter, site))))
  return tried.filter(Boolean).length
}

type Letter = typeof accountLetters.$inferSelect

/** Whether this process tried to send it. */
async function sendLetter(needs: LetterNeeds, letter: Letter, site: string): Promise<boolean> {
  const { store, now, mail, log } = needs
  const { id, uid, userId, kind, email, createdAt, attempts } = letter
  const prepared = queries(store)
  const at = now()
  const end = (result: string) => store.atomic([bind(prepared.end, { id, now: now(), result })])
  if ((await prepared.claim.all({ id, now: at, until: at + CLAIM_MS })).length === 0) return false
  const giveUpAt = createdAt + GIVEN_UP_MS[kind]
  const link = await linkOf(needs, letter, site)
  const details = letterDetailsSchema.safeParse(JSON.parse(letter.details))
  if (at >= giveUpAt || link === false || !details.success || mail === null) {
    log.warn('An e-mail about an account was not sent', { kind, letter: id, attempts })
    await end(link === false ? 'its link was sealed under another SESSION_SECRET' : 'not sent in time')
    return true
  }
  const words = await wordsOf(needs, await readerOf(store, userId, languageIn(details.data.language) ?? 'en'))
  try {
    await mail.send({ to: email, ...writeText(kind, details.data, { site, link, words }), id: uid })
  } catch (error) {
    // The message of a SendFailure contains no address and no text.
    const result = error instanceof SendFailure ? error.message : 'the message could not be created'
    if (attempts === 0) log.warn('An e-mail about an account could not be sent yet', { kind, letter: id, result })
    await store.atomic([bind(prepared.fail, { id, until: Math.min(now() + pauseAfter(attempts), giveUpAt), result })])
    return true
  }
  await end('accepted by the mail server')
  return true
}

/** The address in a letter; null: it has none, false: it cannot be read. */
async function linkOf(needs: LetterNeeds, { uid, sealed }: Letter, site: string): Promise<string | null | false> {
  if (sealed === null) return null
  const token = await openLink(needs, uid, sealed)
  // The token is in the fragment, which browsers send to no server, so no log and no Referer contains it.
  return token === null ? false : `${site}/link#${token}`
}
