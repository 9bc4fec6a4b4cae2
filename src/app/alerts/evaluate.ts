import { and, eq, gt, inArray, lte, ne, sql } from 'drizzle-orm'
import { alertAnchors, alertMarks, alerts, auditLog } from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'
import { isNameOf } from '../../shared/names.ts'
import { findOwner } from '../auth/viewer.ts'
import type { Ports } from '../context.ts'
import type { Pause } from '../upkeep/slices.ts'
import { findInArea, newAnchors } from './kinds/area.ts'
import { findBackups } from './kinds/backup.ts'
import type { Finding, OpenAlerts } from './kinds/finding.ts'
import { findKeys } from './kinds/key.ts'
import { findDown } from './kinds/link.ts'
import { findBeyond } from './kinds/metric.ts'
import { findSilent } from './kinds/node-silent.ts'
import { SIGN_IN_ACTIONS, signInSentence } from './kinds/sign-in.ts'
import {
  fire,
  forgetPending,
  HELD_WORDS,
  newStep,
  noteOccurrences,
  type Occurrence,
  readHolds,
  resolve,
  sendOut,
  setInhibited,
  tellAgain,
} from './occur.ts'
import { isSilenced } from './rules/rule.ts'
import { listWatching, ofKind, type WatchingRule } from './rules/watch-list.ts'
import { readWorld } from './read-world.ts'
import { tellOwner } from './tell-owner.ts'
import type { World } from './world.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now' | 'config' | 'providers' | 'radio' | 'events' | 'clockWatch'> & {
  /** When the service began to watch; null: it never stops. */
  readonly startedAt: number | null
}

/** Audit entries that are looked at in one go. */
const ENTRIES = 500

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
    .where(
      sql`user_id = ${sql.placeholder('userId')} and action = 'login_success' and id < ${sql.placeholder('id')} and ip is ${sql.placeholder('ip')}`,
    )
    .limit(1)
    .prepare(),
}))

type OpenRow = typeof alerts.$inferSelect

/**
 * What rules find that look at how things are: silence, measurements, places, keys, links, backups, and what the audit log
 * tells of accounts. Runs each minute. A clock that is not believed decides nothing.
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
  // A run that may not go on has begun with others than the one before.
  const first = rules.length === 0 ? 0 : Math.floor(now / MINUTE_MS) % rules.length
  for (const watching of [...rules.slice(first), ...rules.slice(0, first)]) {
    await settle(needs, watching, { world: read.world, open: open.get(watching.id) ?? [] })
    open.delete(watching.id)
    if (!(await pause())) return
  }
  // Of rules that are gone or off, and of owners who may not see it any more: nothing is told.
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

/** Rules of owners whose way in is open. */
async function listLive(needs: Needs): Promise<WatchingRule[]> {
  const rules = await listWatching(needs.store)
  const live = new Map<number, boolean>()
  for (const { ownerId } of rules) {
    if (!live.has(ownerId)) live.set(ownerId, (await findOwner(needs, ownerId)) !== null)
  }
  return rules.filter(({ ownerId }) => live.get(ownerId) === true)
}

/** What the rule finds; null: it does not look at how things are. */
function find(watching: WatchingRule, world: World, open: OpenAlerts): Finding[] | null {
  const only = [watching]
  switch (watching.rule.kind) {
    case 'node_silent':
      return ofKind(only, 'node_silent').flatMap((each) => findSilent(each, world, open))
    case 'metric':
      return ofKind(only, 'metric').flatMap((each) => findBeyond(each, world, open))
    case 'area':
      return ofKind(only, 'area').flatMap((each) => findInArea(each, world, open))
    case 'key':
      return ofKind(only, 'key').flatMap((each) => findKeys(each, world, open))
    case 'link':
      return ofKind(only, 'link').flatMap((each) => findDown(each, world, open))
    case 'backup':
      return ofKind(only, 'backup').flatMap((each) => findBackups(each, world, open))
    case 'node_new':
    case 'node_restarted':
    case 'message':
    case 'sign_in':
      return null
    default:
      return watching.rule satisfies never
  }
}

/** Brings the alerts of one rule to what it finds, as one step. */
async function settle(
  needs: Needs,
  watching: WatchingRule,
  { world, open }: { world: World; open: readonly OpenRow[] },
): Promise<void> {
  const { store } = needs
  const { id: ruleId, rule } = watching
  const { now } = world
  const bySubject = new Map(open.map((row) => [row.subject, row]))
  const found = find(watching, world, bySubject)
  if (found === null) return
  const changes = compare(watching, found, { bySubject, now })
  const anchors = ofKind([watching], 'area').flatMap((each) => newAnchors(each, world))
  const fired = changes.begun.filter(({ state }) => state === 'firing').length + changes.matured.length
  const hold = await readHolds(store, fired > 0 ? [ruleId] : [], now)
  const quieten = (subject: string, nodeNum: number | null) => {
    const { isHeld, isQuiet } = hold(ruleId, subject)
    return { isHeld, isQuiet: isQuiet || isSilenced(rule, nodeNum, now) }
  }
  const said = (what: string, isHeld: boolean) => (isHeld ? what + HELD_WORDS : what)
  const begun = changes.begun.map(({ finding, state }): Occurrence => {
    const { subject, key, nodeNum, channel, since, what } = finding
    const quiet = state === 'firing' ? quieten(subject, nodeNum) : { isHeld: false, isQuiet: true }
    return {
      ruleId,
      state,
      subject,
      key,
      nodeNum,
      channel,
      direct: false,
      startedAt: since,
      what: said(what, quiet.isHeld),
      ...quiet,
    }
  })
  const matured = changes.matured.map(({ row: { id }, finding: { subject, nodeNum, what } }) => {
    const quiet = quieten(subject, nodeNum)
    return { id, what: said(what, quiet.isHeld), ...quiet }
  })
  const steps = { fired: newStep(), resolved: newStep(), repeated: newStep() }
  const ids = (rows: readonly OpenRow[]) => rows.map(({ id }) => id)
  const isFiring = begun.some(({ state }) => state === 'firing') || matured.length > 0 || changes.unsaid.length > 0
  const hasChanged = Object.values(changes).some((rows) => rows.length > 0)
  await run(store, [
    ...anchors.map((anchor) => store.db.insert(alertAnchors).values(anchor).onConflictDoNothing()),
    ...setInhibited(store, ids(changes.lost), true),
    ...setInhibited(store, ids(changes.regained), false),
    ...forgetPending(store, ids(changes.withdrawn)),
    ...resolve(store, { ids: ids(changes.over), now, step: steps.resolved }),
    ...noteOccurrences(store, begun, { now, step: steps.fired }),
    ...fire(store, matured, { now, step: steps.fired }),
    ...tellAgain(store, { ids: ids(changes.unsaid), now, step: steps.fired }),
    ...tellAgain(store, { ids: ids(changes.repeated), now, step: steps.repeated }),
    ...(isFiring ? sendOut(store, { step: steps.fired, told: 'fired', now, waitMs: 0 }) : []),
    ...(changes.over.length > 0 ? sendOut(store, { step: steps.resolved, told: 'resolved', now, waitMs: 0 }) : []),
    ...(changes.repeated.length > 0 ? sendOut(store, { step: steps.repeated, told: 'repeated', now, waitMs: 0 }) : []),
  ])
  if (hasChanged) tellOwner(needs, watching.ownerId)
}

type Matured = { readonly row: OpenRow; readonly finding: Finding }

/** What is to be done about the open alerts of a rule, and what is not open yet. Pure. */
export function compare(
  { rule }: Pick<WatchingRule, 'rule'>,
  found: readonly Finding[],
  { bySubject, now }: { readonly bySubject: ReadonlyMap<string, OpenRow>; readonly now: number },
) {
  const changes = {
    begun: [] as { finding: Finding; state: 'pending' | 'firing' }[],
    matured: [] as Matured[],
    /** Pending ones that came to nothing. */
    withdrawn: [] as OpenRow[],
    over: [] as OpenRow[],
    lost: [] as OpenRow[],
    regained: [] as OpenRow[],
    /** Fired while they were silenced. */
    unsaid: [] as OpenRow[],
    repeated: [] as OpenRow[],
  }
  const subjects = new Set(found.map(({ subject }) => subject))
  for (const row of bySubject.values()) {
    if (!subjects.has(row.subject)) (row.state === 'pending' ? changes.withdrawn : changes.over).push(row)
  }
  for (const finding of found) {
    const row = bySubject.get(finding.subject)
    const isLongEnough = now - (row?.startedAt ?? finding.since) >= finding.forMs
    if (row === undefined) {
      if (finding.isKnown) changes.begun.push({ finding, state: isLongEnough ? 'firing' : 'pending' })
    } else if (!finding.isKnown) {
      if (!row.inhibited) changes.lost.push(row)
    } else {
      if (row.inhibited) changes.regained.push(row)
      if (row.state === 'pending') {
        if (isLongEnough) changes.matured.push({ row, finding })
      } else if (!isSilenced(rule, row.nodeNum, now) && row.acknowledgedAt === null) {
        if (row.toldAt === null) {
          if (!row.held) changes.unsaid.push(row)
        } else if (rule.repeatHours !== null && now - row.toldAt >= rule.repeatHours * HOUR_MS)
          changes.repeated.push(row)
      }
    }
  }
  return changes
}

/** What the audit log tells of accounts since the last time. A log that was not looked at yet tells nothing. */
async function lookAtAccounts(needs: Needs, rules: readonly WatchingRule<'sign_in'>[], now: number): Promise<void> {
  const { store } = needs
  if (rules.length === 0) return
  const { mark, lastEntry, entries, seenFrom } = queries(store)
  const last = (await lastEntry.get())?.id ?? 0
  const after = (await mark.get())?.value ?? last
  const until = Math.min(last, after + ENTRIES)
  const events: { watching: WatchingRule<'sign_in'>; id: number; what: string; at: number }[] = []
  for (const { id, action, userId, details, ip, at } of after < until ? await entries.all({ after, until }) : []) {
    const about: unknown = Object(JSON.parse(details)).userId ?? userId
    const watching = rules.filter(({ ownerId, anchorAt }) => ownerId === about && at >= anchorAt)
    if (watching.length === 0 || !isNameOf(SIGN_IN_ACTIONS, action)) continue
    if (action === 'login_success' && (await seenFrom.get({ userId, id, ip })) !== undefined) continue
    events.push(...watching.map((each) => ({ watching: each, id, what: signInSentence(action, ip), at })))
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

async function run(store: Store, [first, ...others]: readonly Statement[]): Promise<void> {
  if (first !== undefined) await store.atomic([first, ...others])
}
