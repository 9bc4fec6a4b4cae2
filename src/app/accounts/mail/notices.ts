import { and, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import { alertMarks, auditLog, users } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { isNameOf, namesOf } from '../../../shared/names.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { isClockTrusted } from '../../base/pacing/clock.ts'
import { siteOfMail } from './account-mail.ts'
import { newUid, queueLetter } from './letters.ts'
import { CHANGES } from './letter-text.ts'
import type { LetterNeeds } from './sending.ts'
import { addressesToTell } from '../users/verified-email.ts'

/** How far the audit log has been read: a row of `alert_marks`. */
const MARK = 'letters'
/** Entries that are read at a time. */
const ENTRIES = 200
const ACTIONS = ['login_success', ...namesOf(CHANGES)]

const queries = prepareOnce((db) => ({
  mark: db.select().from(alertMarks).where(eq(alertMarks.name, MARK)).prepare(),
  lastEntry: db
    .select({ id: sql<number>`coalesce(max(id), 0)` })
    .from(auditLog)
    .prepare(),
  entries: db
    .select({
      id: auditLog.id,
      action: auditLog.action,
      userId: auditLog.userId,
      details: auditLog.details,
      ip: auditLog.ip,
      requestId: auditLog.requestId,
      at: auditLog.timestamp,
    })
    .from(auditLog)
    .where(
      and(
        gt(auditLog.id, sql.placeholder('after')),
        lte(auditLog.id, sql.placeholder('until')),
        inArray(auditLog.action, ACTIONS),
      ),
    )
    .orderBy(auditLog.id)
    .prepare(),
  username: db
    .select({ username: users.username })
    .from(users)
    .where(eq(users.id, sql.placeholder('id')))
    .prepare(),
}))

type Entry = {
  readonly id: number
  readonly action: string
  readonly userId: number | null
  readonly details: string
  readonly ip: string | null
  readonly requestId: string | null
  readonly at: number
}

/** What one request changed in one account. */
type Notice = { readonly userId: number; readonly entries: Entry[] }

/**
 * Queues letters about sign-ins from new browsers and changes of ways to sign in that the audit log has recorded since
 * the last call. The first call reports nothing. Letters go to verified addresses only.
 */
export async function noteChanges(needs: LetterNeeds): Promise<void> {
  const { store, now } = needs
  if (siteOfMail(needs) === null || !isClockTrusted(needs)) return
  const { mark, lastEntry, entries } = queries(store)
  const last = (await lastEntry.get())?.id ?? 0
  const known = (await mark.get())?.value
  const after = known === undefined || known > last ? last : known
  if (known !== undefined && after === last && known === last) return
  const until = Math.min(last, after + ENTRIES)
  const found = after < until ? await entries.all({ after, until }) : []
  const letters = []
  for (const notice of grouped(found.filter(({ at }) => at > now() - DAY_MS)))
    letters.push(...(await write(needs, notice)))
  await store.atomic([
    store.db
      .insert(alertMarks)
      .values({ name: MARK, value: until })
      .onConflictDoUpdate({ target: alertMarks.name, set: { value: until } }),
    ...letters,
  ])
}

function grouped(entries: readonly Entry[]): Notice[] {
  const all = new Map<string, Notice>()
  for (const entry of entries) {
    const details: unknown = JSON.parse(entry.details)
    const { userId: about, newBrowser, before, after } = Object(details)
    const userId: unknown = about ?? entry.userId
    if (typeof userId !== 'number') continue
    if (entry.action === 'login_success' && newBrowser !== true) continue
    if (entry.action === 'user_updated' && Object(after).email === undefined) continue
    // Renaming or deleting a destination is not reported.
    if (entry.action === 'alert_destination_updated' && !isNewWay(before, after)) continue
    const key = `${userId} ${entry.requestId ?? entry.id} ${entry.action === 'login_success'}`
    const notice = all.get(key) ?? { userId, entries: [] }
    notice.entries.push(entry)
    all.set(key, notice)
  }
  return [...all.values()]
}

/** Whether a destination of alerts is new, or has other settings. */
function isNewWay(before: unknown, after: unknown): boolean {
  return after !== null && (before === null || Object(after).settings !== undefined)
}

async function write(needs: LetterNeeds, { userId, entries }: Notice) {
  const { store, now } = needs
  const [first] = entries
  const user = await queries(store).username.get({ id: userId })
  if (first === undefined || user === undefined) return []
  const { browser } = Object(JSON.parse(first.details))
  const actions = [...new Set(entries.map(({ action }) => action))].filter((action) => isNameOf(CHANGES, action))
  const details = {
    username: user.username,
    at: first.at,
    ip: first.ip,
    ...(typeof browser === 'string' && { browser }),
    actions,
    entries: entries.map(({ id }) => id),
  }
  const kind = first.action === 'login_success' ? ('sign_in' as const) : ('change' as const)
  const emails = await addressesToTell(store, userId, now())
  return emails.map((email) => queueLetter(needs, { uid: newUid(), userId, kind, email, details }))
}
