import { sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertAnchors } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { seesEverything, seesNodes } from '../../accounts/access/visible.ts'
import type { Finding } from '../kinds/kind.ts'
import { kindOf } from '../kinds/kinds.ts'
import {
  fire,
  forgetPending,
  newStep,
  noteOccurrences,
  type Occurrence,
  readHolds,
  resolve,
  sendOut,
  setInhibited,
  tellAgain,
} from './occur.ts'
import { countOpen, MAX_OPEN, type OpenRow } from './open.ts'
import { isSilenced } from '../rules/rule.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World } from '../world/world.ts'

const queries = prepareOnce((db) => ({
  anchor: insertSelect(
    db,
    alertAnchors,
    {
      ruleId: sql`j.value ->> 'ruleId'`,
      nodeNum: sql`j.value ->> 'nodeNum'`,
      latitude: sql`j.value ->> 'latitude'`,
      longitude: sql`j.value ->> 'longitude'`,
    },
    sql`from json_each(${sql.placeholder('rows')}) j where true`,
  )
    .onConflictDoNothing()
    .prepare(),
}))

/** Changes of alerts, of each sort, that one transaction makes: a few milliseconds. */
const AT_ONCE = 200
/** How long a message waits for the alerts of further transactions. */
const FURTHER_MS = 2000

/**
 * The statements that update the alerts of one rule to its findings, in parts that are a transaction each. `hasChanged`:
 * something that its owner should see.
 */
type Settlement = { readonly parts: readonly (readonly Statement[])[]; readonly hasChanged: boolean }

/** Compares the open alerts of one rule with its findings. Of an owner with `MAX_OPEN` open alerts it begins no more. */
export async function settle(
  store: Store,
  watching: WatchingRule,
  { world: whole, open }: { world: World; open: readonly OpenRow[] },
): Promise<Settlement> {
  const { id: ruleId, rule } = watching
  const { state } = kindOf(rule.kind)
  if (state === undefined) return { parts: [], hasChanged: false }
  const world = await worldSeenBy(store, watching, whole)
  const { now } = world
  const bySubject = new Map(open.map((row) => [row.subject, row]))
  const found = state.find(watching, world, bySubject)
  const compared = compare(watching, found, { bySubject, now })
  const room = compared.begun.length === 0 ? 0 : MAX_OPEN - (await countOpen(store, watching.ownerId))
  const changes = { ...compared, begun: compared.begun.slice(0, Math.max(0, room)) }
  const anchors = state.newAnchors?.(watching, world) ?? []
  const fired = changes.begun.filter(({ state }) => state === 'firing').length + changes.matured.length
  const hold = await readHolds(store, fired > 0 ? [ruleId] : [], now)
  const quieten: Quieten = (subject, nodeNum) => {
    const { isHeld, isQuiet } = hold(ruleId, subject)
    return { isHeld, isQuiet: isQuiet || isSilenced(rule, nodeNum, now) }
  }
  const parts = partsOf(changes)
  const waitMs = parts.length > 1 ? FURTHER_MS : 0
  return {
    parts: [
      ...(anchors.length > 0 ? [[bind(queries(store).anchor, { rows: JSON.stringify(anchors) })]] : []),
      ...parts.map((part) => statementsOf(store, part, { ruleId, now, quieten, waitMs })),
    ],
    hasChanged: parts.length > 0,
  }
}

type Quieten = (subject: string, nodeNum: number | null) => { readonly isHeld: boolean; readonly isQuiet: boolean }

/** The statements of one transaction. */
function statementsOf(
  store: Store,
  changes: Changes,
  about: { readonly ruleId: number; readonly now: number; readonly quieten: Quieten; readonly waitMs: number },
): Statement[] {
  const { ruleId, now, quieten, waitMs } = about
  const begun = changes.begun.map(({ finding, state }): Occurrence => {
    const { subject, key, nodeNum, channel, since, fact } = finding
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
      fact,
      ...quiet,
    }
  })
  const matured = changes.matured.map(({ row: { id }, finding: { subject, nodeNum, fact } }) => {
    const quiet = quieten(subject, nodeNum)
    return { id, fact, ...quiet }
  })
  const steps = { fired: newStep(), resolved: newStep(), repeated: newStep() }
  const ids = (rows: readonly OpenRow[]) => rows.map(({ id }) => id)
  const isFiring = begun.some(({ state }) => state === 'firing') || matured.length > 0 || changes.unsaid.length > 0
  return [
    ...setInhibited(store, ids(changes.lost), true),
    ...setInhibited(store, ids(changes.regained), false),
    ...forgetPending(store, ids(changes.withdrawn)),
    ...resolve(store, { ids: ids(changes.over), now, step: steps.resolved }),
    ...noteOccurrences(store, begun, { now, step: steps.fired }),
    ...fire(store, matured, { now, step: steps.fired }),
    ...tellAgain(store, { ids: ids(changes.unsaid), now, step: steps.fired }),
    ...tellAgain(store, { ids: ids(changes.repeated), now, step: steps.repeated }),
    ...(isFiring ? sendOut(store, { step: steps.fired, notification: 'fired', now, waitMs }) : []),
    ...(changes.over.length > 0 ? sendOut(store, { step: steps.resolved, notification: 'resolved', now, waitMs }) : []),
    ...(changes.repeated.length > 0
      ? sendOut(store, { step: steps.repeated, notification: 'repeated', now, waitMs })
      : []),
  ]
}

/** The same changes in parts with at most `AT_ONCE` of each sort. */
function partsOf(changes: Changes): Changes[] {
  const most = Math.max(...Object.values(changes).map(({ length }) => length))
  return Array.from({ length: Math.ceil(most / AT_ONCE) }, (_, part) => {
    const cut = <T>(rows: readonly T[]) => rows.slice(part * AT_ONCE, (part + 1) * AT_ONCE)
    return {
      begun: cut(changes.begun),
      matured: cut(changes.matured),
      withdrawn: cut(changes.withdrawn),
      over: cut(changes.over),
      lost: cut(changes.lost),
      regained: cut(changes.regained),
      unsaid: cut(changes.unsaid),
      repeated: cut(changes.repeated),
    }
  })
}

/**
 * The world as the owner of a rule sees it: without hidden nodes, and with the latest values that the owner may read.
 */
async function worldSeenBy(store: Store, watching: WatchingRule, world: World): Promise<World> {
  const { rule, owner } = watching
  if (seesEverything(owner.view)) return world
  const seen = { ...world, nodes: world.nodes.filter(({ nodeNum }) => seesNodes(owner.view, [nodeNum])) }
  return (await kindOf(rule.kind).state?.seenBy?.(store, watching, seen)) ?? seen
}

type Matured = { readonly row: OpenRow; readonly finding: Finding }

/** What becomes of open alerts and of new findings. */
type Changes = {
  readonly begun: readonly { readonly finding: Finding; readonly state: 'pending' | 'firing' }[]
  readonly matured: readonly Matured[]
  /** Pending alerts whose condition ended. */
  readonly withdrawn: readonly OpenRow[]
  readonly over: readonly OpenRow[]
  readonly lost: readonly OpenRow[]
  readonly regained: readonly OpenRow[]
  /** Alerts that fired while the node was silenced. */
  readonly unsaid: readonly OpenRow[]
  readonly repeated: readonly OpenRow[]
}

/** Decides what to do with the open alerts of a rule and with new findings. Pure. */
function compare(
  { rule }: Pick<WatchingRule, 'rule'>,
  found: readonly Finding[],
  { bySubject, now }: { readonly bySubject: ReadonlyMap<string, OpenRow>; readonly now: number },
): Changes {
  const changes = {
    begun: [] as { finding: Finding; state: 'pending' | 'firing' }[],
    matured: [] as Matured[],
    withdrawn: [] as OpenRow[],
    over: [] as OpenRow[],
    lost: [] as OpenRow[],
    regained: [] as OpenRow[],
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
        if (row.notifiedAt === null) {
          if (!row.held) changes.unsaid.push(row)
        } else if (rule.repeatHours !== null && now - row.notifiedAt >= rule.repeatHours * HOUR_MS)
          changes.repeated.push(row)
      }
    }
  }
  return changes
}

export async function run(store: Store, [first, ...others]: readonly Statement[]): Promise<void> {
  if (first !== undefined) await store.atomic([first, ...others])
}
