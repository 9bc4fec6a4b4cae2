import { and, eq, gt, inArray, lte, ne, sql } from 'drizzle-orm'
import { alertMarks, alerts, auditLog } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import { isNameOf } from '../../shared/names.ts'
import { findOwner } from '../auth/viewer.ts'
import type { Ports } from '../context.ts'
import type { Pause } from '../upkeep/slices.ts'
import { SIGN_IN_ACTIONS, signInSentence } from './kinds/sign-in.ts'
import {
  forgetPending,
  HELD_WORDS,
  newStep,
  noteOccurrences,
  type Occurrence,
  readHolds,
  resolve,
  sendOut,
} from './occur.ts'
import { isSilenced } from './rules/rule.ts'
import { listWatching, ofKind, type WatchingRule } from './rules/watch-list.ts'
import { readWorld } from './read-world.ts'
import { run, settle } from './settle.ts'
import { tellOwner } from './tell-owner.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now' | 'config' | 'providers' | 'radio' | 'events' | 'clockWatch'> & {
  /** When the service began to watch; null: it never stops. */
  readonly startedAt: number | null
}

/** Audit entries that are read at a time. */
const ENTRIES = 500

const EARLIER_SIGN_IN = sql`user_id = ${sql.placeholder('userId')} and action = 'login_success'
  and id < ${sql.placeholder('id')}`

const queries = prepareOnce((db) => ({
  open: db.select().from(alerts).where(ne(alerts.state, 'resolved')).prepare(),
  mark: db.select().from(alertMarks).where(eq(alertMarks.name, 'audit')).prepare(),
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
      at: auditLog.timestamp,
    })
    .from(auditLog)
    .where(
      and(
        gt(auditLog.id, sql.placeholder('after')),
        lte(auditLog.id, sql.placeholder('until')),
        inArray(auditLog.action, Object.keys(SIGN_IN_ACTIONS)),
      ),
    )
    .orderBy(auditLog.id)
    .prepare(),
  seenFrom: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and ip is ${sql.placeholder('ip')}`)
    .limit(1)
    .prepare(),
  seenBy: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and details ->> 'browser' = ${sql.placeholder('browser')}`)
    .limit(1)
    .prepare(),
  seenByAny: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and details ->> 'browser' is not null`)
    .limit(1)
    .prepare(),
}))

/**
 * Evaluates the rules about states: silence, measurements, positions, keys, links, backups, and accounts in the audit
 * log. Runs each minute. Does nothing while the clock is not trusted.
 */
export async function evaluateRules(needs: Needs, pause: Pause): Promise<void> {
  const { store, clockWatch } = needs
  if (clockWatch !== null && clockWatch.state().state !== 'confirmed') return
  const now = needs.now()
  const open = Map.groupBy(await queries(store).open.all(), ({ ruleId }) => ruleId)
  const rules = await listLive(needs)
  if (rules.length === 0 && open.size === 0) return
  const read = await readWorld({ ...needs, now }, rules, pause)
  if (read === null) return
  await run(store, read.marks)
  // A run that must stop early starts with other rules than the previous one.
  const first = rules.length === 0 ? 0 : Math.floor(now / MINUTE_MS) % rules.length
  for (const watching of [...rules.slice(first), ...rules.slice(0, first)]) {
    const about = { world: read.world, open: open.get(watching.id) ?? [] }
    const { statements, hasChanged } = await settle(store, watching, about)
    await run(store, statements)
    if (hasChanged) tellOwner(needs, watching.ownerId)
    open.delete(watching.id)
    if (!(await pause())) return
  }
  // Rules that are gone or off, and owners who have lost the permission: their alerts end silently.
  const left = [...open.values()].flat()
  await run(store, [
    ...forgetPending(
      store,
      left.flatMap(({ id, state }) => (state === 'pending' ? [id] : [])),
    ),
    ...resolve(store, { ids: left.flatMap(({ id, state }) => (state === 'firing' ? [id] : [])), now, step: newStep() }),
  ])
  await lookAtAccounts(needs, ofKind(rules, 'sign_in'), now)
}

/** Rules whose owners can sign in. */
async function listLive(needs: Needs): Promise<WatchingRule[]> {
  const rules = await listWatching(needs.store)
  const live = new Map<number, boolean>()
  for (const { ownerId } of rules) {
    if (!live.has(ownerId)) live.set(ownerId, (await findOwner(needs, ownerId)) !== null)
  }
  return rules.filter(({ ownerId }) => live.get(ownerId) === true)
}

/** Account events in the audit log since the last run. The first run reports nothing. */
async function lookAtAccounts(needs: Needs, rules: readonly WatchingRule<'sign_in'>[], now: number): Promise<void> {
  const { store } = needs
  if (rules.length === 0) return
  const { mark, lastEntry, entries } = queries(store)
  const last = (await lastEntry.get())?.id ?? 0
  const after = (await mark.get())?.value ?? last
  const until = Math.min(last, after + ENTRIES)
  const events: { watching: WatchingRule<'sign_in'>; id: number; what: string; at: number }[] = []
  for (const { id, action, userId, details, ip, at } of after < until ? await entries.all({ after, until }) : []) {
    const about: unknown = Object(JSON.parse(details)).userId ?? userId
    const watching = rules.filter(({ ownerId, anchorAt }) => ownerId === about && at >= anchorAt)
    if (watching.length === 0 || !isNameOf(SIGN_IN_ACTIONS, action)) continue
    if (action === 'login_success' && (await isFamiliar(store, { userId, id, ip, details }))) continue
    const what = signInSentence(action, ip, browserIn(details))
    events.push(...watching.map((each) => ({ watching: each, id, what, at })))
  }
  const hold = await readHolds(store, [...new Set(events.map(({ watching }) => watching.id))], now)
  const step = newStep()
  const rows = events.map(({ watching, id, what, at }): Occurrence => {
    const { isHeld, isQuiet } = hold(watching.id, 'account')
    const isSilent = isQuiet || isSilenced(watching.rule, null, now)
    const key = `audit:${id}`
    const said = isHeld ? what + HELD_WORDS : what
    return {
      ruleId: watching.id,
      state: 'resolved',
      subject: 'account',
      key,
      nodeNum: null,
      channel: null,
      direct: false,
      startedAt: at,
      what: said,
      isHeld,
      isQuiet: isSilent,
    }
  })
  await run(store, [
    ...noteOccurrences(store, rows, { now, step }),
    ...(rows.length > 0 ? sendOut(store, { step, told: 'fired', now, waitMs: 0 }) : []),
    store.db
      .insert(alertMarks)
      .values({ name: 'audit', value: until })
      .onConflictDoUpdate({ target: alertMarks.name, set: { value: until } }),
  ])
  for (const ownerId of new Set(events.map(({ watching }) => watching.ownerId))) tellOwner(needs, ownerId)
}

type Entry = {
  readonly userId: number | null
  readonly id: number
  readonly ip: string | null
  readonly details: string
}

/** Whether both the address and the browser of a sign-in were seen before. */
async function isFamiliar(store: Store, { userId, id, ip, details }: Entry): Promise<boolean> {
  const { seenFrom, seenBy, seenByAny } = queries(store)
  if ((await seenFrom.get({ userId, id, ip })) === undefined) return false
  const browser = browserIn(details)
  if (browser === null || (await seenBy.get({ userId, id, browser })) !== undefined) return true
  // While no browser was ever noted, nothing is known about which ones are new.
  return (await seenByAny.get({ userId, id })) === undefined
}

function browserIn(details: string): string | null {
  const { browser } = Object(JSON.parse(details))
  return typeof browser === 'string' ? browser : null
}
