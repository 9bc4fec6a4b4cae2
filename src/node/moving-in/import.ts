import { sql } from 'drizzle-orm'
import { audit } from '../../app/audit/audit.ts'
import type { Ctx } from '../../app/base/context.ts'
import { promisedCutoffs } from '../../app/retention/plan.ts'
import { readSettings } from '../../app/settings/settings.ts'
import {
  importReportSchema,
  type ImportReport,
  keepImportReport,
  readImportReport,
} from '../../app/system/moving-in/report.ts'
import { IMPORTED_NAMES } from '../../shared/moving-in.ts'
import type { SqliteStore } from '../database.ts'
import type { Job } from './job.ts'
import { keepAuditLog } from './parts/audit-file.ts'
import { readKnownNumbers, writeChannels, writeKeys, writeOrigins } from './parts/channels.ts'
import { countLeftBehind } from './parts/left-behind.ts'
import { importMessages } from './parts/messages.ts'
import { importNodes } from './parts/nodes.ts'
import { readPlaces } from './parts/places.ts'
import { importSettings, readUnits } from './parts/settings.ts'
import { importTelemetry } from './parts/telemetry.ts'
import { importNeighbors, importTraceroutes, importWaypoints } from './parts/topology.ts'
import { importUsers } from './parts/users.ts'
import { openSource } from './source/open-source.ts'
import { createTally } from './tally.ts'
import { createWriter } from './writer.ts'

export const PHASES = ['channels', 'users', 'nodes', 'messages', 'telemetry', 'topology', 'settings', 'audit'] as const
export type Phase = (typeof PHASES)[number]

export type ImportOptions = {
  readonly file: string
  readonly isDryRun: boolean
  readonly withKeys: boolean
  /** Of the provider that the users of the file sign in at; null: they are left out. */
  readonly oidcIssuer: string | null
  /** Called after each transaction. */
  readonly onSlice?: (phase: Phase) => void
}

/**
 * Imports a database of MeshMonitor, in small transactions, so that a running service works meanwhile. Everything is
 * recognised by what it is, so that a second run, or one after a kill, adds only what is missing. Throws
 * `invalid_request` for a file that cannot be read.
 */
export async function importMeshMonitor(
  ctx: Ctx & { readonly store: SqliteStore },
  options: ImportOptions,
): Promise<ImportReport> {
  const source = await openSource(options.file, ctx.config.DATA_DIR)
  try {
    let phase: Phase = 'channels'
    const writer = createWriter(ctx.store, options.isDryRun, () => options.onSlice?.(phase))
    const job: Job = { ctx, source, writer, tally: createTally(), now: ctx.now() }
    const enter = (next: Phase) => {
      phase = next
    }
    const report = await importAll(job, options, enter)
    source.checkUnchanged()
    if (!options.isDryRun) await finish(job, report)
    return report
  } finally {
    source.close()
  }
}

async function importAll(job: Job, options: ImportOptions, enter: (phase: Phase) => void): Promise<ImportReport> {
  const { ctx, source, tally, now } = job
  const isFirst = (await readImportReport(ctx.store)) === null
  const cutoffs = promisedCutoffs(await readSettings(ctx.store), now)
  const places = readPlaces(job, await readKnownNumbers(job))
  countLeftBehind(job)
  tally.found('channels', places.slots.length)
  await writeOrigins(job, places)
  await writeChannels(job, places.slots)
  await writeKeys(job, places.slots, options.withKeys)
  enter('users')
  const users = await importUsers(job, places, { oidcIssuer: options.oidcIssuer, units: readUnits(job) })
  enter('nodes')
  const nodes = await importNodes(job, places, { isFirst })
  enter('messages')
  await importMessages(job, places, { after: cutoffs.messages })
  enter('telemetry')
  await importTelemetry(job, places, { cutoffs, nodes })
  enter('topology')
  await importTraceroutes(job, places)
  await importNeighbors(job)
  await importWaypoints(job, places)
  enter('settings')
  await importSettings(job)
  // Channels that only rows name are known by now.
  await writeChannels(job, places.slots)
  enter('audit')
  const auditFile = keepAuditLog(job)
  return {
    file: source.name.replaceAll(/\p{C}/gu, '').slice(0, 255),
    program: 'meshmonitor',
    migration: source.migration,
    isDryRun: options.isDryRun,
    startedAt: now,
    finishedAt: ctx.now(),
    counts: tally.counts(),
    losses: tally.losses(),
    users,
    auditFile,
  }
}

/** The entry about a whole import, beside one for each user. A run that added nothing after a whole one has none. */
async function finish({ ctx, writer, tally }: Job, report: ImportReport): Promise<void> {
  const { store } = ctx
  const sha256 = report.auditFile?.sha256 ?? null
  const hasAdded = IMPORTED_NAMES.some((what) => tally.addedOf(what) > 0)
  const isKnown = sql`exists (select 1 from audit_log where action = 'audit_imported' and details ->> 'sha256' is ${sha256})`
  const added = Object.fromEntries(report.counts.map((count) => [count.what, count.added]))
  const users = report.users.flatMap(({ username, outcome }) => (outcome === 'added' ? [username] : []))
  const details = {
    program: report.program,
    file: report.file,
    auditFile: report.auditFile?.name ?? null,
    sha256,
    added,
    users,
  }
  await store.atomic([audit(ctx, 'audit_imported', details, hasAdded ? {} : { onlyIf: sql`not ${isKnown}` })])
  await keepImportReport(store, importReportSchema.parse(report))
  await writer.flush()
}
