import { and, eq, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { type MapTilesSetting, mapTilesSchema } from './map-tiles.ts'
import { MAX_ACTIVE_SECONDS, MAX_RETENTION_DAYS } from '../../shared/limits.ts'
import { forEachName, namesOf } from '../../shared/names.ts'

const days = z.int().min(1).max(MAX_RETENTION_DAYS)

/** All numeric settings, with schema, default and description. */
const NUMBERS = {
  telemetryRetentionDays: { schema: days, fallback: 30, meaning: 'Days for which measurements are kept' },
  telemetryHourlyRetentionDays: { schema: days, fallback: 400, meaning: 'Days for which hourly values are kept' },
  packetRetentionDays: { schema: days, fallback: 7, meaning: 'Days for which the packet log is kept' },
  positionRetentionDays: { schema: days, fallback: 90, meaning: 'Days for which tracks of nodes are kept' },
  messageRetentionDays: { schema: days, fallback: 365, meaning: 'Days for which messages are kept' },
  nodeActiveSeconds: {
    schema: z.int().min(60).max(MAX_ACTIVE_SECONDS),
    fallback: 7200,
    meaning: 'Seconds for which a node counts as active after it was last heard',
  },
} as const satisfies Record<string, { schema: z.ZodType; fallback: unknown; meaning: string }>

const AS_CONFIGURED: MapTilesSetting = { kind: 'configured' }

type Key = keyof Settings
const KEYS: readonly Key[] = [...namesOf(NUMBERS), 'mapTiles']

export const settingsSchema = z
  .strictObject({
    ...forEachName(NUMBERS, (key) => NUMBERS[key].schema.describe(NUMBERS[key].meaning)),
    mapTiles: mapTilesSchema.describe('Where the map gets its tiles'),
  })
  .meta({ id: 'Settings', description: 'Settings of the service' })
export type Settings = z.infer<typeof settingsSchema>

export const settingsChangesSchema = settingsSchema.partial()

/** The setting nodeActiveSeconds as SQL. */
export const ACTIVE_SECONDS = sql`coalesce((select cast(value as integer) from settings where key = 'nodeActiveSeconds'),
  ${sql.raw(String(NUMBERS.nodeActiveSeconds.fallback))})`

export const settingQueries = prepareOnce((db) => ({
  all: db.select({ key: settings.key, value: settings.value }).from(settings).prepare(),
}))

/** All current settings, from `settingsOf`. */
export async function readSettings(store: Store): Promise<Settings> {
  return settingsOf(await settingQueries(store).all.all())
}

/** The stored values. Values that this version does not know or cannot read count as not set. */
export function settingsOf(rows: readonly { readonly key: string; readonly value: string }[]): Settings {
  const stored = new Map(rows.map(({ key, value }) => [key, value]))
  const read = <T>(key: string, schema: z.ZodType<T>, fallback: T): T => {
    const text = stored.get(key)
    const parsed = text === undefined ? undefined : schema.safeParse(JSON.parse(text))
    return parsed?.success ? parsed.data : fallback
  }
  return {
    ...forEachName(NUMBERS, (key) => read<number>(key, NUMBERS[key].schema, NUMBERS[key].fallback)),
    mapTiles: read('mapTiles', mapTilesSchema, AS_CONFIGURED),
  }
}

/** Sets the named settings and leaves the others. Throws `invalid_request` for a map file if there is none. */
export async function updateSettings(ctx: Ctx, changes: z.infer<typeof settingsChangesSchema>): Promise<Settings> {
  const before = await readSettings(ctx.store)
  if (changes.mapTiles?.kind === 'file' && ctx.mapArchive === null) {
    const message = 'This service has no map file: MAP_PMTILES is not set'
    throw new AppError('invalid_request', `mapTiles: ${message}`, { issues: [{ path: 'mapTiles', message }] })
  }
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
