import { sql } from 'drizzle-orm'
import type * as z from 'zod'
import { alertDeliveries, auditLog } from '../../../db/schema.ts'
import { prepareOnce, readTogether } from '../../../db/store.ts'
import type { AuditAction } from '../../../shared/access/audit-actions.ts'
import { readAnchorProgress } from '../../audit/anchor/state.ts'
import type { SignedInCtx } from '../../base/context.ts'
import type { CollectorInfo } from '../../mesh/collector/state.ts'
import type { LinkInfo } from '../../mesh/radios/radio.ts'
import { readRetentionState } from '../../retention/state.ts'
import { MAX_COUNTED } from '../../../shared/limits.ts'
import { namesOf } from '../../../shared/names.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { readBackupSchedule, readRestoreOutcome } from '../backup/settings.ts'
import { findProblems } from './problems.ts'
import { describeRelease, releaseSchema } from './release.ts'
import { JOBS, runsSchema } from './runs.ts'
import type { System } from './schema.ts'
import { stateOf, stateQueries } from './state.ts'
import type { InstanceInfo } from './instances.ts'
import { forecastRoom, readStorage, samplesSchema } from './storage.ts'

const newest = (action: AuditAction) => sql`(select count(*) from (select timestamp from ${auditLog}
  where action = ${sql.raw(`'${action}'`)} order by id desc limit ${sql.raw(String(MAX_COUNTED))})
  where timestamp > ${sql.placeholder('since')})`

const queries = prepareOnce((db) => ({
  // Each part reads as many rows as it counts at most.
  counts: db
    .select({
      failed: sql<number>`min(${sql.raw(String(MAX_COUNTED))}, ${newest('login_failed')} + ${newest('oidc_login_failed')})`,
      alerts: sql<number>`count(*)`,
      alertsFailingSince: sql<number | null>`min(iif(attempts > 0, created_at, null))`,
    })
    .from(
      sql`(select attempts, created_at from ${alertDeliveries} where state = 'waiting' order by due_at
        limit ${sql.raw(String(MAX_COUNTED))})`,
    )
    .prepare(),
}))

/** The state of the service. The cost does not depend on the amount of stored data. */
export async function readSystem(ctx: SignedInCtx): Promise<System> {
  const { config, store, version, startedAt } = ctx
  const now = ctx.now()
  const [states, [counts]] = await readTogether(store, { since: now - DAY_MS }, [
    stateQueries(store).all,
    queries(store).counts,
  ])
  const samples = stateOf(states, 'storage', samplesSchema) ?? []
  const storage = await readStorage(ctx)
  const collector = ctx.radio?.collector() ?? null
  const anchor = config.AUDIT_ANCHOR_URL === null ? null : await readAnchorProgress(store)
  const clock = ctx.clockWatch?.state() ?? null
  const system = {
    now,
    version,
    startedAt,
    release: describeRelease(ctx, stateOf(states, 'release', releaseSchema)),
    clock: clock === null ? null : { state: clock.state, confirmed: Math.round(clock.confirmed) },
    storage: {
      ...storage,
      forecast: forecastRoom(samples, storage.roomBytes, now),
      samples: samples.map(({ at, database, room }) => ({ at, databaseBytes: database, roomBytes: room })),
    },
    retention: await readRetentionState(store, now),
    backups: await readBackups(ctx),
    links: (ctx.radio?.links() ?? []).map(describeLink),
    collector: collector === null ? null : describeCollector(collector),
    anchor: anchor === null ? null : { failures: anchor.failures, deliveredAt: anchor.deliveredAt },
    instances: ctx.instances?.list().map(describeInstance) ?? null,
    queues: {
      ingest: ctx.radio?.waiting() ?? null,
      sending: ctx.radio?.sending() ?? null,
      collector: collector?.waiting ?? null,
      anchor: anchor?.waiting ?? null,
      alerts: counts?.alerts ?? 0,
      alertsFailingSince: counts?.alertsFailingSince ?? null,
    },
    signIns: { failed: counts?.failed ?? 0 },
    runs: runsOf(stateOf(states, 'runs', runsSchema) ?? {}),
  }
  return { ...system, problems: findProblems(system) }
}

async function readBackups({ backups, store }: SignedInCtx): Promise<System['backups']> {
  if (backups === null) return null
  const all = await backups.list()
  const schedule = await readBackupSchedule(store)
  const { settings, run } = schedule
  const [last] = all
  return {
    count: all.length,
    sizeBytes: all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    last:
      last === undefined
        ? null
        : { name: last.name, createdAt: last.createdAt, kind: last.kind, sizeBytes: last.sizeBytes },
    running: await backups.running(),
    enabled: settings.enabled,
    since: settings.since,
    nextRunAt: await backups.nextRun(schedule),
    lastRun: run === null ? null : { at: run.at, ok: run.ok, error: run.error },
    lastSuccessAt: run?.succeededAt ?? null,
    restoreError: (await readRestoreOutcome(store))?.error ?? null,
  }
}

function describeLink({
  name,
  kind,
  state,
  since,
  lastFrameAt,
  reconnects,
  reason,
}: LinkInfo): System['links'][number] {
  return { name, kind, state, since, lastFrameAt, reconnects, reason }
}

function describeCollector({ target, state, lastDeliveredAt, reason }: CollectorInfo): System['collector'] {
  return { target, state, lastDeliveredAt, reason }
}

function describeInstance({ id, isSelf, hasLease, seenAt }: InstanceInfo) {
  return { id, isSelf, hasLease, seenAt }
}

function runsOf(runs: z.infer<typeof runsSchema>): System['runs'] {
  return namesOf(JOBS).flatMap((job) => {
    const run = runs[job]
    return run === undefined ? [] : [{ job, at: run.at, ok: run.ok }]
  })
}
