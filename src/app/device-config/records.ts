import type { LiveSection } from './device.ts'
import { and, asc, eq, inArray, isNull, ne, or, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { deviceConfig, deviceConfigChanges, sources } from '../../db/schema.ts'
import { insertSelect } from '../../db/insert-select.ts'
import type { Statement, Store } from '../../db/store.ts'
import type { SectionView } from '../../meshtastic/config/values.ts'
import { type Source, writeSources } from '../mesh/radios/source-table.ts'
import { type Change, secretStateSchema } from './schemas.ts'

/** A section of any radio, as it was last read. */
export type StoredSection = SectionView & { readonly section: string; readonly readAt: number }

/** The outcome of a change. */
export type ChangeOutcome = {
  readonly state: Exclude<Change['state'], 'waiting' | 'applying'>
  readonly differing: readonly string[]
  /** In words; null if it was applied. */
  readonly reason: string | null
}

const idOf = (source: string) => sql<number>`(select id from sources where name = ${source})`

/**
 * Replaces the stored settings of a radio with those that it reported.
 * Decision: docs/decisions/radio-secrets-in-memory.md
 */
export async function storeSections(
  store: Store,
  source: Source,
  sections: readonly LiveSection[],
  now: number,
): Promise<void> {
  const sourceId = idOf(source.name)
  const rows = sections.map(({ section, values, secrets, readAt }) =>
    store.db
      .insert(deviceConfig)
      .values({ sourceId, section, values: JSON.stringify(values), secrets: JSON.stringify(secrets), readAt }),
  )
  // The source may not exist yet: it is created with the first packets, which may not be stored yet.
  const made = writeSources(store, [{ ...source, createdAt: now }])
  const [first, ...others] = [
    ...made,
    store.db.delete(deviceConfig).where(eq(deviceConfig.sourceId, sourceId)),
    ...rows,
  ]
  if (first !== undefined) await store.atomic([first, ...others])
}

/** All sections of a source, in order of their names. */
export async function readSections(store: Store, source: string): Promise<StoredSection[]> {
  const rows = await store.db
    .select()
    .from(deviceConfig)
    .where(eq(deviceConfig.sourceId, idOf(source)))
    .orderBy(asc(deviceConfig.section))
    .all()
  return rows.map(({ section, readAt, values, secrets }) => ({
    section,
    readAt,
    values: valuesSchema.parse(JSON.parse(values)),
    secrets: secretsSchema.parse(JSON.parse(secrets)),
  }))
}

const valuesSchema = z.record(z.string(), z.json())
const secretsSchema = z.record(z.string(), secretStateSchema)

/** Sources with stored settings, and the node number of each; the oldest first. A collector's need its token. */
export function readConfiguredSources(store: Store): Promise<{ name: string; nodeNum: number | null }[]> {
  return Promise.resolve(
    store.db
      .select({ name: sources.name, nodeNum: sources.localNodeNum })
      .from(sources)
      .where(
        sql`exists (select 1 from device_config where source_id = ${sources.id})
          and (${sources.kind} <> 'ingest' or ${sources.tokenId} is not null)`,
      )
      .orderBy(asc(sources.id))
      .all(),
  )
}

/** The latest change of each section of a source, the latest first. */
export async function readChanges(store: Store, source: string): Promise<Change[]> {
  const rows = await store.db
    .select()
    .from(deviceConfigChanges)
    .where(eq(deviceConfigChanges.sourceId, idOf(source)))
    .all()
  return rows
    .toSorted((a, b) => b.requestedAt - a.requestedAt)
    .map(({ id, section, state, requestedAt, settledAt, requestedBy, fields, differing, reason, notice }) => ({
      id,
      section,
      state,
      at: requestedAt,
      settledAt,
      by: requestedBy,
      fields: pathsSchema.parse(JSON.parse(fields)),
      differing: pathsSchema.parse(JSON.parse(differing)),
      reason,
      ...(notice === null ? {} : { notice }),
    }))
}

const pathsSchema = z.array(z.string())

/** Condition: no change of a radio that was asked for later than this is under way. */
export function isFree({ sourceId }: { readonly sourceId: number }, since: number): SQL {
  return sql`not exists (select 1 from device_config_changes
    where source_id = ${sourceId} and state in ('waiting', 'applying') and requested_at > ${since})`
}

/**
 * The statement that records a change as begun, replacing the section's earlier one; `onlyIf`: only under this condition.
 */
export function writeChange(store: Store, source: string, change: Change, onlyIf = sql`true`): Statement {
  const { id, section, state, at, by, fields } = change
  const values = {
    id,
    state,
    fields: JSON.stringify(fields),
    differing: '[]',
    reason: null,
    notice: null,
    requestedAt: at,
    requestedBy: by,
    settledAt: null,
  }
  const row = { sourceId: idOf(source), section, ...values }
  return insertSelect(store.db, deviceConfigChanges, row, sql`where ${onlyIf}`).onConflictDoUpdate({
    target: [deviceConfigChanges.sourceId, deviceConfigChanges.section],
    set: values,
  })
}

/**
 * Records the outcome of a change, unless it is recorded already or a later change has replaced this one. `settledAt`
 * null: the change is not finished.
 */
export async function settleChange(
  store: Store,
  id: string,
  outcome: ChangeOutcome,
  settledAt: number | null,
): Promise<void> {
  const { state, differing, reason } = outcome
  await store.db
    .update(deviceConfigChanges)
    .set({ state, differing: JSON.stringify(differing), reason, settledAt })
    .where(and(eq(deviceConfigChanges.id, id), isNull(deviceConfigChanges.settledAt)))
    .run()
}

/** A radio checks new settings after saving them, and may report a problem only after its restart. */
const AFTERWORD_MS = 60_000

/** Records a radio's notification during its latest change, or shortly after it. */
export async function noteDuringChange(store: Store, source: string, notice: string, now: number): Promise<void> {
  await store.db
    .update(deviceConfigChanges)
    .set({ notice })
    .where(
      sql`(source_id, section) in (select source_id, section from device_config_changes
        where source_id = ${idOf(source)} and coalesce(settled_at, ${now}) >= ${now - AFTERWORD_MS}
        order by requested_at desc limit 1)`,
    )
    .run()
}

/** A change with an unknown outcome. */
export type LostChange = { readonly source: string; readonly id: string; readonly section: string }

/** Changes by this service that an earlier process began and did not finish. Their outcome is unknown until they are settled. */
export async function loseChanges(store: Store, names: readonly string[] | null = null): Promise<LostChange[]> {
  const ofSource = names === null ? undefined : inArray(sources.name, names)
  const lost = await store.db
    .select({ source: sources.name, id: deviceConfigChanges.id, section: deviceConfigChanges.section })
    .from(deviceConfigChanges)
    .innerJoin(sources, eq(sources.id, deviceConfigChanges.sourceId))
    .where(and(isOpen, ne(sources.kind, 'ingest'), ofSource))
    .all()
  const ids = lost.map(({ id }) => id)
  if (ids.length > 0) {
    await store.db
      .update(deviceConfigChanges)
      .set({ state: 'unknown', reason: LOST })
      .where(inArray(deviceConfigChanges.id, ids))
      .run()
  }
  return lost
}

const isOpen = or(
  eq(deviceConfigChanges.state, 'applying'),
  and(eq(deviceConfigChanges.state, 'unknown'), isNull(deviceConfigChanges.settledAt)),
)

const LOST =
  'the service was stopped while the change was made; the radio is restarted as soon as it is connected, to end what was begun'
