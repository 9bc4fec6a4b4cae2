import { and, eq, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../db/schema.ts'
import { prepareOnce, rememberUnchanged, type Statement, type Store } from '../../db/store.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { type MapTilesSetting, mapTilesSchema } from './map-tiles.ts'
import { removeHidden } from '../../shared/hidden-characters.ts'
import { MAX_ACTIVE_SECONDS, MAX_MESH_NAME, MAX_RETENTION_DAYS } from '../../shared/limits.ts'
import { forEachName, namesOf } from '../../shared/names.ts'

const days = z.int().min(1).max(MAX_RETENTION_DAYS)

const meshName = z
  .string()
  .trim()
  .min(1)
  .max(MAX_MESH_NAME)
  .refine((name) => removeHidden(name) === name, 'Expected no invisible characters')
  .nullable()

type Setting<Value> = {
  readonly schema: z.ZodType<Value>
  /** Its value until somebody sets it. */
  readonly fallback: Value
  readonly meaning: string
  /** Throws `invalid_request` for a value that this service cannot have. */
  demand?(ctx: Ctx, value: Value): void
}

const setting = <Value>(given: Setting<Value>): Setting<Value> => given

/** All settings: API and validation derive from this table, and so does the page for numbers. */
const SETTINGS = {
  telemetryRetentionDays: setting({ schema: days, fallback: 30, meaning: 'Days for which measurements are kept' }),
  telemetryHourlyRetentionDays: setting({
    schema: days,
    fallback: 400,
    meaning: 'Days for which hourly values are kept',
  }),
  packetRetentionDays: setting({ schema: days, fallback: 7, meaning: 'Days for which the packet log is kept' }),
  positionRetentionDays: setting({ schema: days, fallback: 90, meaning: 'Days for which tracks of nodes are kept' }),
  messageRetentionDays: setting({ schema: days, fallback: 365, meaning: 'Days for which messages are kept' }),
  nodeActiveSeconds: setting({
    schema: z.int().min(60).max(MAX_ACTIVE_SECONDS),
    fallback: 7200,
    meaning: 'Seconds for which a node counts as active after it was last heard',
  }),
  meshName: setting<string | null>({
    schema: meshName,
    fallback: null,
    meaning: 'Name of the mesh, in the head of every page and before signing in; null: that of the product',
  }),
  mapTiles: setting<MapTilesSetting>({
    schema: mapTilesSchema,
    fallback: { kind: 'configured' },
    meaning: 'Where the map gets its tiles',
    demand({ mapArchive }, { kind }) {
      if (kind !== 'file' || mapArchive !== null) return
      const message = 'This service has no map file: MAP_PMTILES is not set'
      throw new AppError('invalid_request', `mapTiles: ${message}`, { issues: [{ path: 'mapTiles', message }] })
    },
  }),
}

type Key = keyof typeof SETTINGS
export type Settings = { [Name in Key]: (typeof SETTINGS)[Name]['fallback'] }
const KEYS = namesOf(SETTINGS)

// Each setting has its own schema, whose type is that of its default.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const SCHEMAS = forEachName(SETTINGS, (key) => SETTINGS[key].schema.describe(SETTINGS[key].meaning)) as unknown as {
  [Name in Key]: z.ZodType<Settings[Name]>
}

export const settingsSchema = z.strictObject(SCHEMAS).meta({ id: 'Settings', description: 'Settings of the service' })

export const settingsChangesSchema = settingsSchema.partial()

/** The setting nodeActiveSeconds as SQL. */
export const ACTIVE_SECONDS = sql`coalesce((select cast(value as integer) from settings where key = 'nodeActiveSeconds'),
  ${sql.raw(String(SETTINGS.nodeActiveSeconds.fallback))})`

export const settingQueries = prepareOnce((db) => ({
  all: db.select({ key: settings.key, value: settings.value }).from(settings).prepare(),
}))

/** All current settings, from `settingsOf`. */
export async function readSettings(store: Store): Promise<Settings> {
  return settingsOf(await settingQueries(store).all.all())
}

/** The stored name of the mesh in a select, for `readMeshName`. */
export const storedMeshName = sql<string | null>`(select value from settings where key = 'meshName')`

const rememberMeshName = rememberUnchanged(1, async (store: Store, _key: 'name') => {
  return (await readSettings(store)).meshName
})

/** The name of the mesh; null: none. Costs no query while the database has not changed, or after one of the session. */
export async function readMeshName({
  store,
  meshName: stored,
}: Pick<Ctx, 'store' | 'meshName'>): Promise<string | null> {
  if (stored === undefined) return rememberMeshName(store, 'name')
  return settingsOf(stored === null ? [] : [{ key: 'meshName', value: stored }]).meshName
}

/** The stored values. Values that this version does not know or cannot read count as not set. */
export function settingsOf(rows: readonly { readonly key: string; readonly value: string }[]): Settings {
  const stored = new Map(rows.map(({ key, value }) => [key, value]))
  const values = forEachName(SETTINGS, (key) => {
    const { schema, fallback } = SETTINGS[key]
    const text = stored.get(key)
    const parsed = text === undefined ? undefined : schema.safeParse(JSON.parse(text))
    return parsed?.success ? parsed.data : fallback
  })
  // Each value was read with the schema of its own setting.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return values as Settings
}

/** Sets the named settings and leaves the others. Throws `invalid_request` for a map file if there is none. */
export async function updateSettings(ctx: Ctx, changes: z.infer<typeof settingsChangesSchema>): Promise<Settings> {
  const before = await readSettings(ctx.store)
  for (const key of KEYS) demand(ctx, key, changes[key])
  const isSame = (key: Key) => JSON.stringify(changes[key]) === JSON.stringify(before[key])
  const changed = KEYS.filter((key) => changes[key] !== undefined && !isSame(key))
  if (changed.length === 0) return before
  const pick = (from: typeof changes) => Object.fromEntries(changed.map((key) => [key, from[key]]))
  await ctx.store.atomic([
    audit(
      ctx,
      'settings_updated',
      { before: pick(before), after: pick(changes) },
      // Another request may have made the same change since it was read.
      { onlyIf: or(...changed.map((key) => isOther(key, changes[key]))) },
    ),
    ...changed.map((key) => writeSetting(ctx, key, changes[key])),
  ])
  return readSettings(ctx.store)
}

// A setting may take a narrower value: it only gets values of its own schema.
function demand(ctx: Ctx, key: Key, value: Settings[Key] | undefined): void {
  const { demand: check }: Setting<Settings[Key]> = SETTINGS[key]
  if (value !== undefined) check?.(ctx, value)
}

function isOther(key: Key, value: unknown): SQL {
  const same = and(eq(settings.key, key), eq(settings.value, JSON.stringify(value)))
  return sql`not exists (select 1 from ${settings} where ${same})`
}

function writeSetting(ctx: Ctx, key: Key, value: unknown): Statement {
  const row = { key, value: JSON.stringify(value), updatedAt: ctx.now() }
  return ctx.store.db
    .insert(settings)
    .values(row)
    .onConflictDoUpdate({ target: settings.key, set: { value: row.value, updatedAt: row.updatedAt } })
}
