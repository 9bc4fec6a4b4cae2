import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { deviceConfig } from '../../db/schema.ts'
import { built, type Statement, type Store } from '../../db/store.ts'
import type { SectionInput } from '../../meshtastic/config/change.ts'
import { isDownlinkSection, isKeptField, MAX_SECTION_JSON } from '../../shared/mesh/downlink.ts'
import { nest, valueAt } from '../../shared/nested.ts'
import { DAY_MS } from '../../shared/time.ts'
import type { Ports } from '../base/context.ts'
import { AppError, oneLine } from '../http/errors.ts'
import { timeField } from '../http/fields.ts'
import type { contentSchemas } from '../mesh/downlink/contents.ts'
import { ofToken } from '../mesh/downlink/commands.ts'
import type { SendCtx } from '../mesh/sending/send.ts'
import { type DescribedSection, readDescribed } from './described.ts'
import { changeSections } from './device-config.ts'
import type { LiveSection, RadioDevice } from './device.ts'

const MAX_SECTIONS = 40
const MAX_TEXT = 500
const MAX_ITEMS = 64

export const collectedSchema = z.strictObject({
  radio: z.string().min(1).max(300).describe('Name of a connected radio, as in its deliveries'),
  sections: z
    .array(
      z.strictObject({
        section: z.string().min(1).max(60),
        readAt: timeField.describe('When the radio reported it'),
        values: z.record(z.string().max(100), z.unknown()),
      }),
    )
    .max(MAX_SECTIONS)
    .describe('All that the collector shows'),
})
type Collected = z.infer<typeof collectedSchema>

/** What a collector shows of the settings of a radio: nothing of a section that has or may have a secret. */
export function shownSections(sections: readonly LiveSection[]): Collected['sections'] {
  return sections
    .filter(({ section, secrets }) => isDownlinkSection(section) && Object.keys(secrets).length === 0)
    .map(({ section, readAt, values }) => ({ section, readAt, values }))
}

/**
 * Replaces the stored settings of a collector's radio. Only what is a setting and no secret by the table of this service
 * is stored, whatever the collector says. Returns whether the token has such a radio.
 */
export async function storeCollected(
  ctx: Pick<Ports, 'store' | 'now'>,
  tokenId: number,
  { radio, sections }: Collected,
): Promise<boolean> {
  const { store } = ctx
  const described = await readDescribed(ctx)
  const [found] = await store.db.all<{ readonly id: number }>(
    sql`select c.source_id as id from radio_listeners c cross join sources s on s.id = c.source_id
      where s.name = ${radio} and s.kind = 'ingest' and ${ofToken(tokenId, ctx.now())}
        and exists (select 1 from json_each(c.kinds) where value = 'settings')`,
  )
  if (found === undefined) return false
  const sourceId = found.id
  const rows = sections.flatMap(({ section, readAt, values }): Statement[] => {
    const known = described.get(section)
    if (known === undefined || !isDownlinkSection(section)) return []
    const kept = JSON.stringify(keepKnown(known, values))
    if (kept.length > MAX_SECTION_JSON) return []
    const row = { sourceId, section, values: kept, secrets: '{}', readAt: Math.min(readAt, ctx.now()) }
    return [
      store.db
        .insert(deviceConfig)
        .values(row)
        .onConflictDoUpdate({ target: [deviceConfig.sourceId, deviceConfig.section], set: row }),
    ]
  })
  const names = JSON.stringify(sections.map(({ section }) => section))
  await store.atomic([
    built(
      store.db,
      sql`delete from device_config where source_id = ${sourceId}
        and section not in (select value from json_each(${names}))`,
    ),
    ...rows,
  ])
  return true
}

/** How long a service knows the settings of a radio whose collector does not ask for commands. */
const UNASKED_MS = DAY_MS

/**
 * Deletes the settings of collectors' radios that nobody shows any more. A collector that comes back delivers them again.
 * Returns the number of sections.
 */
export async function forgetUnshown({ db }: Store, now: number): Promise<number> {
  const deleted = await db
    .delete(deviceConfig)
    .where(
      // The clock may have been set meanwhile.
      sql`source_id in (select s.id from sources s left join radio_listeners l on l.source_id = s.id
        where s.kind = 'ingest' and (l.listened_at is null
          or l.listened_at not between ${now - UNASKED_MS} and ${now + UNASKED_MS}))`,
    )
    .returning({ section: deviceConfig.section })
    .all()
  return deleted.length
}

/** The values of a section that are settings and no secrets. */
function keepKnown({ fields }: Pick<DescribedSection, 'fields'>, values: Readonly<Record<string, unknown>>) {
  return nest(
    fields.flatMap(({ path, secret, type }): (readonly [string, unknown])[] => {
      const value = valueAt(values, path)
      return secret || type === 'bytes' || !isPlain(value) ? [] : [[path, value]]
    }),
  )
}

function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) {
    return value.length <= MAX_ITEMS && value.every((one) => !Array.isArray(one) && isPlain(one))
  }
  if (typeof value === 'string') return value.length <= MAX_TEXT
  return typeof value === 'number' || typeof value === 'boolean'
}

/**
 * Changes a section because another service asked for it, as if somebody here had: `requestId` is the id of the change.
 * Throws as `changeSections`, `invalid_request` for a field that no command changes, and `configuration_changed` if the
 * values are not those that were seen there.
 */
export async function changeByCommand(
  ctx: SendCtx & { readonly requestId: string },
  device: RadioDevice,
  { section, values, before, confirm }: z.infer<typeof contentSchemas.settings>,
): Promise<void> {
  const input: SectionInput = { values, secrets: {} }
  const live = device.sections().find((each) => each.section === section)
  const [plan] = device.plan(new Map([[section, input]]))
  if (live === undefined || plan === undefined) throw new AppError('radio_unavailable', 'This radio is not connected')
  if (Object.keys(live.secrets).length > 0 || plan.secretsChanged.length > 0) throw new AppError('section_not_found')
  // Also those that would change nothing now: the radio may have another value when it is changed.
  const named = new Set([...Object.keys(values), ...plan.fields])
  const issues = [...named].flatMap((path) =>
    isKeptField(section, path) ? [{ path: `values.${path}`, message: 'read-only' }] : [],
  )
  if (issues.length > 0) throw new AppError('invalid_request', oneLine(issues), { issues })
  const isAsSeen = plan.fields.every((path) => JSON.stringify(plan.before[path]) === JSON.stringify(before[path]))
  if (!isAsSeen) throw new AppError('configuration_changed', 'The section has changed since it was read')
  const change = { ...input, confirm, revision: live.revision }
  const begun = await changeSections(ctx, device, new Map([[section, change]]))
  if (begun.length === 0) throw new AppError('invalid_request', 'The radio has these values already')
}
