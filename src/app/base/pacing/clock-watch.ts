import type { ClockWatch } from './clock.ts'
import { sql, type SQL } from 'drizzle-orm'
import { LATEST } from '../../../db/packet-log.ts'
import { apiTokens, clockMarks, nodes } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { MAX_AHEAD_MS } from '../../../meshtastic/device-time.ts'
import type { Ports } from '../context.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'

/**
 * A clock that differs from its last known time by at most this is trusted: the machine may have been off meanwhile.
 */
const PAUSE_MS = DAY_MS
/** The maximum difference between two correct clocks. */
const AGREE_MS = MAX_AHEAD_MS

const value = sql.placeholder

const future = sql`(${value('now')} + ${sql.raw(String(AGREE_MS))})`
const noLater = (column: SQL) => sql`min(${column}, ${value('now')})`

const queries = prepareOnce((db) => ({
  marks: db.select().from(clockMarks).prepare(),
  // Only received rows count, because rows written during a start prove nothing about the time.
  newest: db
    .select({
      t: sql<number | null>`max((select max(last_heard) from nodes),
        coalesce((select t from (${LATEST})), 0),
        coalesce((select timestamp from messages order by id desc limit 1), 0))`,
    })
    .from(sql`(select 1)`)
    .prepare(),
  mark: db
    .insert(clockMarks)
    .values({ name: value('name'), t: value('t') })
    .onConflictDoUpdate({ target: clockMarks.name, set: { t: sql`excluded.t` } })
    .prepare(),
  tokens: db
    .update(apiTokens)
    .set({
      expiresAt: sql`expires_at - created_at + ${value('now')}`,
      createdAt: sql`${value('now')}`,
      lastUsedAt: noLater(sql`last_used_at`),
    })
    .where(sql`created_at > ${future}`)
    .prepare(),
  nodes: db
    .update(nodes)
    .set({
      firstHeard: noLater(sql`first_heard`),
      lastHeard: noLater(sql`last_heard`),
      lastHeardByRadio: noLater(sql`last_heard_by_radio`),
      lastHeardByBroker: noLater(sql`last_heard_by_broker`),
      publicHeard: noLater(sql`public_heard`),
      telemetryTime: noLater(sql`telemetry_time`),
      positionTime: noLater(sql`position_time`),
      deviceMetricsTime: noLater(sql`device_metrics_time`),
    })
    .where(sql`max(first_heard, coalesce(last_heard, 0), coalesce(position_time, 0),
      coalesce(device_metrics_time, 0), coalesce(telemetry_time, 0)) > ${future}`)
    .prepare(),
}))

type Needs = Pick<Ports, 'store' | 'log' | 'now'> & {
  /** Milliseconds since an arbitrary moment; the clock is never set back or forward. */
  readonly monotonic: () => number
}

/**
 * Watches the clock of a machine that may have no battery-backed clock. Deletion by age uses a time that continues from
 * the last confirmed time. A jump ahead changes it only once another clock confirms it. Must be created before new data
 * is stored: the newest stored row is the first evidence.
 */
export async function watchClock({ store, log, now, monotonic }: Needs): Promise<ClockWatch> {
  const marks = await readMarks(store)
  let lastAgreed = marks.agreed
  let confirmed = marks.confirmed ?? Math.min((await queries(store).newest.get())?.t ?? now(), now())
  let at = monotonic()
  let keptAt: number | null = null
  let state: ReturnType<ClockWatch['state']>['state'] = 'confirmed'
  let isCorrected = true

  const look = () => {
    const time = now()
    const passed = monotonic()
    const expected = confirmed + passed - at
    at = passed
    const before = state
    state = time > expected + PAUSE_MS ? 'ahead' : time < expected - PAUSE_MS ? 'behind' : 'confirmed'
    confirmed = state === 'confirmed' ? time : expected
    if (state !== before) tell(time)
    return { time, isNews: state !== before }
  }
  const tell = (time: number) => {
    isCorrected = state === 'confirmed'
    keptAt = null
    const clock = new Date(time).toISOString()
    if (state === 'confirmed') return log.info('The clock of this machine is confirmed', { clock })
    log.warn(
      state === 'ahead'
        ? 'The clock of this machine is far ahead of what is stored: nothing is deleted by it until another clock agrees'
        : 'The clock of this machine is far behind what is stored: set it',
      {
        clock,
        confirmed: new Date(confirmed).toISOString(),
        remedy: 'set the clock; if it is right: cli confirm-clock',
      },
    )
  }
  const agree: ClockWatch['agree'] = (by, theirs) => {
    if (Math.abs(theirs - now()) > AGREE_MS) return
    look()
    if (state === 'confirmed') return
    log.info('Another clock agrees with the clock of this machine', { by })
    confirmed = now()
    look()
  }
  look()
  return {
    trusted() {
      const { time } = look()
      return Math.min(time, confirmed)
    },
    state() {
      look()
      return { state, confirmed }
    },
    agree,
    async keep() {
      const { agreed } = await readMarks(store)
      if (agreed !== null && agreed !== lastAgreed) agree('an administrator', agreed)
      lastAgreed = agreed
      const { time } = look()
      if (keptAt !== null && at - keptAt < HOUR_MS) return
      const mark = bind(queries(store).mark, { name: 'confirmed', t: Math.round(confirmed) })
      await store.atomic([mark, ...(isCorrected ? endFuture(store, time) : [])], 'lazily')
      keptAt = at
      isCorrected = false
    },
  }
}

async function readMarks(store: Store): Promise<{ confirmed: number | null; agreed: number | null }> {
  const marks = new Map((await queries(store).marks.all()).map(({ name, t }) => [name, t]))
  return { confirmed: marks.get('confirmed') ?? null, agreed: marks.get('agreed') ?? null }
}

/**
 * Corrects rows written while the clock was ahead: tokens get their full lifetime from now on, and nodes can be heard
 * again.
 */
function endFuture(store: Store, now: number): Statement[] {
  const { tokens, nodes: known } = queries(store)
  return [bind(tokens, { now }), bind(known, { now })]
}

/**
 * Records that an administrator on the command line confirms the clock of this machine. A running service notices
 * within a minute.
 */
export async function confirmClock(store: Store, now: number): Promise<void> {
  const { mark } = queries(store)
  await store.atomic([bind(mark, { name: 'confirmed', t: now }), bind(mark, { name: 'agreed', t: now })])
}
