import type { LiveSection, RadioDevice, SectionChange } from './device.ts'
import type * as z from 'zod'
import { audit } from '../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { changeEvent } from '../mesh/live/events.ts'
import { writeSources } from '../mesh/radios/source-table.ts'
import { nameSender, noteCommand, type SendCtx } from '../mesh/sending/send.ts'
import { commandChange, describeKept, findListening, type Listening, revisionOf } from './commanding.ts'
import { readDescribed } from './described.ts'
import { readChanges, readConfiguredSources, readSections, type StoredSection, writeChange } from './records.ts'
import type { Change, overviewSchema, sectionChangeSchema, sectionSchema } from './schemas.ts'

/** A radio: connected to this process, or known from earlier. */
type KnownRadio = { readonly source: string; readonly nodeNum: number | null; readonly device: RadioDevice | null }

/** The known settings of a radio, or of the first one without `source`. Throws `source_not_found`. */
export async function readOverview(ctx: Ctx, source: string | undefined): Promise<z.infer<typeof overviewSchema>> {
  const all = await listRadios(ctx)
  const sources = all.map((each) => each.source)
  const [first] = all
  if (first === undefined && source === undefined) {
    return {
      source: null,
      sources,
      nodeNum: null,
      editable: false,
      byCollector: false,
      sections: [],
      lastChange: null,
    }
  }
  const radio = pick(all, source)
  const live = radio.device?.sections() ?? []
  const collected = await findCollected(ctx, radio)
  const changes = await readChanges(ctx.store, radio.source)
  const sections: readonly (LiveSection | StoredSection)[] =
    live.length > 0 ? live : await readSections(ctx.store, radio.source)
  const described = await readDescribed(ctx)
  return {
    source: radio.source,
    sources,
    nodeNum: radio.nodeNum,
    editable: live.length > 0 || collected?.isListening === true,
    byCollector: collected !== null,
    sections: sections.flatMap(({ section, readAt }) => {
      const kind = described.get(section)?.kind
      return kind === undefined ? [] : [{ section, kind, readAt, lastChange: latestOf(changes, section) }]
    }),
    lastChange: changes[0] ?? null,
  }
}

/** A section without its secrets. Throws `source_not_found`, `section_not_found`. */
export async function readSection(
  ctx: Ctx,
  section: string,
  source: string | undefined,
): Promise<z.infer<typeof sectionSchema>> {
  const radio = pick(await listRadios(ctx), source)
  const described = (await readDescribed(ctx)).get(section)
  const live = radio.device?.sections().find((each) => each.section === section)
  const found: LiveSection | StoredSection | undefined =
    live ?? (await readSections(ctx.store, radio.source)).find((each) => each.section === section)
  if (described === undefined || found === undefined) throw new AppError('section_not_found')
  const changes = await readChanges(ctx.store, radio.source)
  const collected = await findCollected(ctx, radio)
  const isCollected = collected?.isListening === true
  return {
    source: radio.source,
    nodeNum: radio.nodeNum,
    section,
    readAt: found.readAt,
    lastChange: latestOf(changes, section),
    editable: live !== undefined || isCollected,
    revision: live?.revision ?? (isCollected ? revisionOf(found) : null),
    values: found.values,
    secrets: found.secrets,
    ...(collected === null ? described : describeKept(section, described)),
    regionPresets: (section === 'lora' ? (radio.device?.regionPresets() ?? []) : []).map((each) => ({
      ...each,
      presets: [...each.presets],
    })),
  }
}

/** What a collector has of a radio that is not one of this process; null: it is not a collector's. */
async function findCollected(ctx: Ctx, { source, device }: KnownRadio): Promise<Listening | null> {
  return device === null ? findListening(ctx, source) : null
}

/**
 * Begins to change a section, or asks the collector of the radio to; null if there is nothing to change. `readSection`
 * returns the outcome. Throws `source_not_found`, `section_not_found`, and the errors of the radio's `prepare`; nothing is
 * sent or stored then.
 */
export async function changeSection(
  ctx: SignedInCtx,
  section: string,
  source: string | undefined,
  asked: z.infer<typeof sectionChangeSchema>,
): Promise<Change | null> {
  const collected = await findCollectedOf(ctx, source)
  if (collected !== null) return commandChange(ctx, collected, section, asked)
  if (ctx.radio === null) throw new AppError('unsupported_on_this_runtime')
  if (!(await readDescribed(ctx)).has(section)) throw new AppError('section_not_found')
  const [change] = await changeSections(ctx, await findDevice(ctx, source), new Map([[section, asked]]))
  return change ?? null
}

async function findCollectedOf(ctx: Ctx, source: string | undefined): Promise<Listening | null> {
  const all = await listRadios(ctx)
  const radio = source === undefined ? all[0] : all.find((each) => each.source === source)
  return radio === undefined ? null : findCollected(ctx, radio)
}

/**
 * Begins to change sections in one edit: a change for each section that changes. Throws as `prepare` of the radio. Without
 * a viewer, another service asked for it.
 */
export async function changeSections(
  ctx: SendCtx & { readonly requestId: string },
  device: RadioDevice,
  asked: ReadonlyMap<string, SectionChange>,
): Promise<Change[]> {
  const prepared = device.prepare(asked)
  try {
    const changes = prepared.sections.map(({ section, fields }, at): Change => ({
      id: at === 0 ? ctx.requestId : `${ctx.requestId}.${at}`,
      section,
      state: 'applying',
      at: ctx.now(),
      settledAt: null,
      by: nameSender(ctx, null),
      fields: [...fields],
      differing: [],
      reason: null,
    }))
    const known = { kind: device.kind, name: device.source, createdAt: ctx.now() }
    const [first, ...others] = [
      ...prepared.sections.map(({ section, before, after, secretsChanged }) =>
        audit(ctx, 'configuration_updated', {
          source: device.source,
          section,
          before,
          after,
          secretsChanged,
          ...noteCommand(ctx),
        }),
      ),
      ...(changes.length === 0 ? [] : writeSources(ctx.store, [known])),
      ...changes.map((change) => writeChange(ctx.store, device.source, change)),
    ]
    if (first === undefined) return []
    await ctx.store.atomic([first, ...others])
    ctx.events?.publish(changes.map((change) => changeEvent(device.source, change)))
    prepared.start(new Map(changes.map(({ section, id }) => [section, id])))
    return changes
  } finally {
    prepared.release()
  }
}

/** A connected radio; without `source` the first one. Throws `source_not_found`, `radio_unavailable`. */
export async function findDevice(ctx: Ctx, source: string | undefined): Promise<RadioDevice> {
  const { device } = pick(await listRadios(ctx), source)
  if (device === null) throw new AppError('radio_unavailable', 'This radio is not connected')
  return device
}

/** The radios of this process first, then others that were read earlier. */
async function listRadios(ctx: Ctx): Promise<KnownRadio[]> {
  const devices = ctx.radio?.devices() ?? []
  const stored = await readConfiguredSources(ctx.store)
  const nodeNumOf = (name: string) => stored.find((each) => each.name === name)?.nodeNum ?? null
  const present = devices.map((device) => ({
    source: device.source,
    nodeNum: device.nodeNum() ?? nodeNumOf(device.source),
    device,
  }))
  const gone = stored.filter(({ name }) => !devices.some(({ source }) => source === name))
  return [...present, ...gone.map(({ name, nodeNum }) => ({ source: name, nodeNum, device: null }))]
}

function pick(all: readonly KnownRadio[], source: string | undefined): KnownRadio {
  const found = source === undefined ? all[0] : all.find((each) => each.source === source)
  if (found === undefined) throw new AppError('source_not_found')
  return found
}

function latestOf(changes: readonly Change[], section: string): Change | null {
  return changes.find((change) => change.section === section) ?? null
}
