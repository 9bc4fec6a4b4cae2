import { sql } from 'drizzle-orm'
import { isDownlinkSection, isKeptField, MAX_SECTION_JSON } from '../../shared/mesh/downlink.ts'
import { isUnderWay } from '../../shared/mesh/change-states.ts'
import { lossOf } from '../../shared/mesh/losses.ts'
import { isObject } from '../../shared/nested.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import { audit } from '../audit/audit.ts'
import { sha256Hex } from '../base/crypto.ts'
import type { Ctx, SignedInCtx } from '../base/context.ts'
import { AppError, type Issue, oneLine } from '../http/errors.ts'
import { demandPlace, isCommanded, newCommandId, newPacketId, writeCommand } from '../mesh/downlink/commands.ts'
import { listListeners } from '../mesh/downlink/listening.ts'
import { changeEvent } from '../mesh/live/events.ts'
import { type Collector, isListeningAt, readKinds } from '../mesh/radios/listener.ts'
import { nameSender } from '../mesh/sending/send.ts'
import { said } from '../words/words.ts'
import { type DescribedSection, readDescribed } from './described.ts'
import { isFree, readChanges, readSections, type StoredSection, writeChange } from './records.ts'
import type { Change } from './schemas.ts'

/** A collector's radio, and whether its collector changes settings now. */
export type Listening = Collector & { readonly isListening: boolean }

/** A change of which nothing was heard for so long holds no other one up. */
const FORGOTTEN_MS = 15 * MINUTE_MS

type Asked = {
  readonly values: Readonly<Record<string, unknown>>
  readonly secrets: object
  readonly confirm: readonly string[]
  readonly revision: string | null
}

/** Null: no collector ever took commands for a radio of this name. */
export async function findListening({ store, now }: Ctx, source: string): Promise<Listening | null> {
  const found = (await listListeners(store)).find((each) => each.source === source)
  if (found === undefined) return null
  const { kinds, listenedAt, ...collector } = found
  return { ...collector, isListening: isListeningAt(listenedAt, now()) && readKinds(kinds).includes('settings') }
}

/** A section as an editor of a collector's radio may change it. */
export function describeKept<Described extends DescribedSection | undefined>(
  section: string,
  described: Described,
): Described {
  if (described === undefined) return described
  const fields = described.fields.map((field) =>
    isKeptField(section, field.path) ? { ...field, readOnly: true } : field,
  )
  return { ...described, fields }
}

/** Changes with the values that are stored of a section. */
export function revisionOf({ values }: Pick<StoredSection, 'values'>): string {
  return sha256Hex(JSON.stringify(values)).slice(0, 22)
}

/**
 * Asks the collector of a radio to change a section; null if there is nothing to change. The collector checks the values.
 * Throws `section_not_found`, `radio_unavailable`, `invalid_request`, `configuration_changed`, `confirmation_required`,
 * `configuration_change_in_progress`, `queue_full`; nothing is stored then.
 */
export async function commandChange(
  ctx: SignedInCtx,
  collector: Listening,
  section: string,
  asked: Asked,
): Promise<Change | null> {
  const { store } = ctx
  const { source } = collector
  const described = describeKept(section, (await readDescribed(ctx)).get(section))
  const stored = (await readSections(store, source)).find((each) => each.section === section)
  if (described === undefined || stored === undefined || !isDownlinkSection(section)) {
    throw new AppError('section_not_found')
  }
  if (!collector.isListening) {
    throw new AppError('radio_unavailable', 'The collector of the radio is not listening for changes of its settings')
  }
  const after = readAsked(described, asked)
  if (asked.revision !== null && asked.revision !== revisionOf(stored)) {
    throw new AppError('configuration_changed', 'The section has changed since it was read')
  }
  const before = new Map(flatten(described, stored.values).map(({ path, value }) => [path, value]))
  const changed = after.filter(({ path, value }) => JSON.stringify(value) !== JSON.stringify(before.get(path)))
  if (changed.length === 0) return null
  refuseUnconfirmed(section, described, changed, asked.confirm)
  const since = ctx.now() - FORGOTTEN_MS
  const last = await readChanges(store, source)
  if (last.some(({ state, at }) => isUnderWay(state) && at > since)) {
    throw new AppError('configuration_change_in_progress')
  }
  await demandPlace(ctx, collector)
  const id = newCommandId()
  const by = nameSender(ctx, null)
  const change: Change = {
    id,
    section,
    state: 'waiting',
    at: ctx.now(),
    settledAt: null,
    by,
    fields: changed.map(({ path }) => path),
    differing: [],
    reason: null,
  }
  const was = Object.fromEntries(changed.map(({ path }) => [path, before.get(path) ?? null]))
  const content = { section, values: asked.values, before: was, confirm: asked.confirm }
  const command = { id, kind: 'settings', content, packetId: newPacketId(), askedBy: by ?? '' } as const
  const details = {
    source,
    section,
    before: was,
    after: Object.fromEntries(changed.map(({ path, value }) => [path, value])),
    secretsChanged: [],
  }
  // Somebody else may have asked for another one since it was looked.
  const isFirst = sql`exists (select 1 from device_config_changes where source_id = ${collector.sourceId} and id = ${id})`
  await store.atomic([
    writeChange(store, source, change, isFree(collector, since)),
    writeCommand(ctx, collector, command, isFirst),
    audit(ctx, 'configuration_updated', details, { onlyIf: isFirst }),
  ])
  if (!(await isCommanded(store, id))) throw new AppError('configuration_change_in_progress')
  ctx.events?.publish([changeEvent(source, change)])
  return change
}

type Given = { readonly path: string; readonly value: unknown }

/** The fields that a change names. Throws `invalid_request`. */
function readAsked(described: DescribedSection, { values, secrets }: Asked): Given[] {
  const given = flatten(described, values)
  const fields = new Map(described.fields.map((field) => [field.path, field]))
  const issues: Issue[] = [
    ...Object.keys(secrets).map((path) => ({ path: `secrets.${path}`, message: 'not a secret of this section' })),
    ...given.flatMap(({ path }) => {
      const field = fields.get(path)
      if (field === undefined || field.secret) return [{ path: `values.${path}`, message: 'unknown field' }]
      return field.readOnly ? [{ path: `values.${path}`, message: 'read-only' }] : []
    }),
  ]
  if (JSON.stringify(values).length > MAX_SECTION_JSON) issues.push({ path: 'values', message: 'Text too long' })
  const few = issues.slice(0, 50).map((one) => ({ ...one, path: one.path.slice(0, 200).toWellFormed() }))
  if (few.length > 0) throw new AppError('invalid_request', oneLine(few), { issues: few })
  return given
}

/** Paths and values. A name that leads to no field is a path itself. */
function flatten(
  { fields }: Pick<DescribedSection, 'fields'>,
  values: Readonly<Record<string, unknown>>,
  prefix = '',
): Given[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `${prefix}${name}`
    const hasChildren = !name.includes('.') && fields.some((field) => field.path.startsWith(`${path}.`))
    if (hasChildren && isObject(value)) return flatten({ fields }, value, `${path}.`)
    // A name with a dot would be a second path to a field.
    return [{ path: name.includes('.') ? `${path} ` : path, value }]
  })
}

/** Throws `confirmation_required`, as the radio's own service does. */
function refuseUnconfirmed(
  section: string,
  { fields }: DescribedSection,
  changed: readonly Given[],
  confirm: readonly string[],
): void {
  const risky = changed.filter(
    ({ path, value }) =>
      fields.some((field) => field.path === path && field.risk !== null) || lossOf(section, path, value) !== null,
  )
  const missing = risky.map(({ path }) => path).filter((path) => !confirm.includes(path))
  if (missing.length === 0) return
  throw new AppError(
    'confirmation_required',
    said('Confirmation required: {missing}', { missing: missing.join(', ') }),
    {
      confirm: missing,
    },
  )
}
