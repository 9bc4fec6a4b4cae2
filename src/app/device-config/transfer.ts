import type * as z from 'zod'
import type { SectionInput } from '../../meshtastic/config/change.ts'
import type { RadioConfig, RawSection } from '../../meshtastic/config/sections.ts'
import {
  channelsOf,
  isUsed,
  type MayCompare,
  planAdding,
  planReplacing,
  type SlotChange,
} from '../../meshtastic/exchange/channel-plan.ts'
import {
  encodeChannelUrl,
  parseChannelUrl,
  type SharedChannels,
  type UrlProblem,
} from '../../meshtastic/exchange/channel-url.ts'
import { sharedLora, takenLora } from '../../meshtastic/exchange/mesh-settings.ts'
import { Channel_Role } from '../../meshtastic/gen/channel_pb.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { wordsFor } from '../words/reader.ts'
import { type Said, said } from '../words/words.ts'
import { changeSections, findDevice } from './device-config.ts'
import type { RadioDevice } from './device.ts'
import { readSlots } from './readable-slots.ts'
import type { Change } from './schemas.ts'
import type {
  channelImportSchema,
  channelPlanSchema,
  channelPreviewSchema,
  sharedSchema,
  shareSchema,
} from './transfer-schemas.ts'

/**
 * The URL of channels with their keys, which is what is asked for. Those that the viewer may not read count as missing.
 * Throws `radio_unavailable`, `invalid_request`.
 */
export async function shareChannels(
  ctx: SignedInCtx,
  source: string | undefined,
  { channels: slots, lora, add }: z.infer<typeof shareSchema>,
): Promise<z.infer<typeof sharedSchema>> {
  const device = await findDevice(ctx, source)
  const { sections } = device.reveal()
  const canRead = await readSlots(ctx, device)
  const present = channelsOf(sections).filter((channel) => isUsed(channel) && canRead(channel.index))
  const chosen = present
    .filter(({ index }) => slots.includes(index))
    .toSorted((a, b) => Number(b.role === Channel_Role.PRIMARY) - Number(a.role === Channel_Role.PRIMARY))
  const missing = slots.find((slot) => !present.some(({ index }) => index === slot))
  if (missing !== undefined) {
    throw new AppError('invalid_request', said('The radio has no channel in slot {slot}', { slot: missing }))
  }
  const withLora = lora && !add ? sharedLora(sections) : null
  const url = urlOf(chosen, { lora: withLora, isAddOnly: add })
  const named = chosen.map(({ index, settings }) => ({ index, name: settings?.name ?? '' }))
  const details = { source: device.source, channels: named, lora: withLora !== null }
  await ctx.store.atomic([audit(ctx, 'channels_shared', details)])
  return { url, channels: named, lora: withLora !== null }
}

function urlOf(channels: ReturnType<typeof channelsOf>, how: Omit<SharedChannels, 'channels'>): string {
  return encodeChannelUrl({ channels: channels.flatMap(({ settings }) => settings ?? []), ...how })
}

/** The URL of all channels of a radio, keys included; null if it has none. */
export function urlOfAll({ sections }: RadioConfig): string | null {
  const used = channelsOf(sections)
    .filter(isUsed)
    .toSorted((a, b) => Number(b.role === Channel_Role.PRIMARY) - Number(a.role === Channel_Role.PRIMARY))
  return used.length === 0 ? null : urlOf(used, { lora: sharedLora(sections), isAddOnly: false })
}

/** Throws `source_not_found`, `radio_unavailable`, `invalid_request`. */
export async function previewChannels(
  ctx: SignedInCtx,
  source: string | undefined,
  asked: z.infer<typeof channelPreviewSchema>,
): Promise<z.infer<typeof channelPlanSchema>> {
  const device = await findDevice(ctx, source)
  const { shared, mode, ...plan } = await planChannels(ctx, device, asked)
  return {
    mode,
    hasLora: shared.lora !== null,
    keepsRegion: shared.lora !== null && takenLora(shared.lora)['region'] === undefined,
    ...(await tell(ctx, device, plan)),
  }
}

/** Begins the import as one edit. Throws as `changeSections`, and `confirmation_required`. */
export async function importChannels(
  ctx: SignedInCtx,
  source: string | undefined,
  { confirm, revisions, ...asked }: z.infer<typeof channelImportSchema>,
): Promise<Change[]> {
  const device = await findDevice(ctx, source)
  return apply(ctx, device, await planChannels(ctx, device, asked), { confirm, revisions })
}

/** What an import asks for. */
export type ImportPlan = {
  readonly inputs: ReadonlyMap<string, SectionInput>
  readonly slots: readonly SlotChange[]
}

type PlannedChannels = ImportPlan & { readonly shared: SharedChannels; readonly mode: 'add' | 'replace' }

async function planChannels(
  ctx: SignedInCtx,
  device: RadioDevice,
  { url, mode: wanted, lora }: z.infer<typeof channelPreviewSchema>,
): Promise<PlannedChannels> {
  const canRead = await readSlots(ctx, device)
  const shared = readUrl(url)
  const mode = wanted ?? (shared.isAddOnly ? 'add' : 'replace')
  const { input, slots } = planSlots(device.reveal().sections, shared, mode, canRead)
  const inputs = new Map([['channels', input]])
  if (lora && shared.lora !== null) inputs.set('lora', { values: takenLora(shared.lora), secrets: {} })
  return { inputs, slots, shared, mode }
}

/** Throws `invalid_request`, in a sentence. */
export function readUrl(url: string): SharedChannels {
  const read = parseChannelUrl(url)
  if (!read.ok) throw new AppError('invalid_request', sentenceOf(read.problem))
  return read.shared
}

/** Throws `invalid_request` if the channels do not fit. */
export function planSlots(
  sections: ReadonlyMap<string, RawSection>,
  { channels }: SharedChannels,
  mode: 'add' | 'replace',
  mayCompare: MayCompare,
): { readonly input: SectionInput; readonly slots: readonly SlotChange[] } {
  const plan = (mode === 'add' ? planAdding : planReplacing)(channelsOf(sections), channels, mayCompare)
  if (plan.ok) return plan
  const { wanted, free } = plan
  throw new AppError(
    'invalid_request',
    said('{wanted} channels do not fit: the radio has {free} free slots. Remove channels first, or replace all', {
      wanted,
      free,
    }),
  )
}

function sentenceOf(problem: UrlProblem): Said {
  switch (problem.kind) {
    case 'not_a_url':
      return said('This is no URL. A URL of channels begins with https://meshtastic.org/e/#')
    case 'other_site':
      return said('This is a URL of another site. A URL of channels begins with https://meshtastic.org/e/#')
    case 'other_kind':
      return said('This URL of Meshtastic is not one of channels, which begins with https://meshtastic.org/e/#')
    case 'no_content':
      return said('Nothing follows the # in this URL: it was cut off')
    case 'unreadable':
      return said('The channels in this URL cannot be read: it was cut off or altered')
    case 'no_channels':
      return said('There are no channels in this URL')
    case 'too_many_channels':
      return said('There are {count} channels in this URL, and a radio takes eight', { count: problem.count })
    case 'key_size': {
      const { channel, bytes } = problem
      return said('Channel {channel} in this URL has a key of {bytes} bytes. Keys have 0, 1, 16 or 32', {
        channel,
        bytes,
      })
    }
    case 'long_name':
      return said('The name of channel {channel} in this URL does not fit into 11 bytes', { channel: problem.channel })
    default:
      return problem satisfies never
  }
}

/** What a plan would change, for whoever decides about it. */
export async function tell(ctx: Ctx, device: RadioDevice, plan: ImportPlan) {
  const words = await wordsFor(ctx)
  const revisions = new Map(device.sections().map(({ section, revision }) => [section, revision]))
  const sections = device.plan(plan.inputs)
  return {
    sections: sections
      .filter(({ fields, issues }) => fields.length > 0 || issues.length > 0)
      .map(({ section, fields, secretsChanged, before, after, risks, issues }) => ({
        section,
        revision: revisions.get(section) ?? '',
        fields: fields.map((path) => {
          const secret = secretsChanged.includes(path)
          const values = secret ? {} : { before: before[path] ?? null, after: after[path] ?? null }
          return { path, ...values, secret, risk: risks[path] ?? null }
        }),
        issues: issues.map(({ path, message }) => ({ path, message: words.translate(message) })),
      })),
    slots: [...plan.slots],
    confirm: [...confirmationsOf(plan, sections).keys()],
  }
}

/** By what a client confirms: the section and the paths that this covers. */
function confirmationsOf(
  { slots }: ImportPlan,
  sections: ReturnType<RadioDevice['plan']>,
): Map<string, { readonly section: string; readonly paths: readonly string[] }> {
  const all = new Map<string, { readonly section: string; readonly paths: readonly string[] }>()
  const roles = sections.find(({ section }) => section === 'channels')?.risks ?? {}
  const isLossy = slots.some(
    ({ change, index }) =>
      change === 'replaced' ||
      change === 'removed' ||
      (change === 'changed' && roles[`channels.${index}.role`] !== undefined),
  )
  if (isLossy) all.set('channels', { section: 'channels', paths: [] })
  if (slots.some(({ isAdmin, change }) => isAdmin && (change === 'added' || change === 'replaced'))) {
    all.set('admin', { section: 'channels', paths: [] })
  }
  for (const { section, risks } of sections) {
    if (section === 'channels') continue
    for (const path of Object.keys(risks)) all.set(`${section}.${path}`, { section, paths: [path] })
  }
  return all
}

type Agreed = { readonly confirm: readonly string[]; readonly revisions: Readonly<Record<string, string>> }

/** Begins an import as one edit. Throws as `changeSections`, and `confirmation_required`. */
export async function apply(
  ctx: SignedInCtx,
  device: RadioDevice,
  plan: ImportPlan,
  { confirm, revisions }: Agreed,
): Promise<Change[]> {
  const sections = device.plan(plan.inputs)
  const needed = [...confirmationsOf(plan, sections).keys()]
  const missing = needed.filter((each) => !confirm.includes(each))
  if (missing.length > 0) {
    throw new AppError(
      'confirmation_required',
      said('Confirmation required: {missing}', { missing: missing.join(', ') }),
      { confirm: missing },
    )
  }
  const changes = [...plan.inputs].map(([section, input]) => {
    const paths = Object.keys(sections.find((each) => each.section === section)?.risks ?? {})
    return [section, { ...input, confirm: paths, revision: revisions[section] ?? null }] as const
  })
  return changeSections(ctx, device, new Map(changes))
}
