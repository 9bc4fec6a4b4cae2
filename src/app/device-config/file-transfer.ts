import type * as z from 'zod'
import { parseDocument, stringify } from 'yaml'
import type { SectionInput } from '../../meshtastic/config/change.ts'
import { channelsOf, isUsed, type MayCompare } from '../../meshtastic/exchange/channel-plan.ts'
import { exportFile, type LeftOut, listSecretNames, readFile } from '../../meshtastic/exchange/cli-file.ts'
import { takenLora } from '../../meshtastic/exchange/mesh-settings.ts'
import { audit } from '../audit/audit.ts'
import type { SignedInCtx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { type Said, said } from '../words/words.ts'
import { findDevice } from './device-config.ts'
import type { RadioDevice } from './device.ts'
import { readSlots } from './readable-slots.ts'
import type { Change } from './schemas.ts'
import { apply, type ImportPlan, planSlots, readUrl, tell, urlOfAll } from './transfer.ts'
import type { fileImportSchema, filePlanSchema, filePreviewSchema, fileSchema } from './transfer-schemas.ts'

/** The first line that the CLI of Meshtastic writes. */
const HEAD = '# start of Meshtastic configure yaml\n'

/** The settings of a radio without any secret. Throws `source_not_found`, `radio_unavailable`. */
export async function readPlainFile(ctx: SignedInCtx, source: string | undefined): Promise<z.infer<typeof fileSchema>> {
  const device = await findDevice(ctx, source)
  return writeFile(device, [], await readBarred(ctx, device))
}

/**
 * The settings with the named secrets. Throws `source_not_found`, `radio_unavailable`, `invalid_request`, and
 * `forbidden` for secrets beyond what the viewer may read.
 */
export async function exportWithSecrets(
  ctx: SignedInCtx,
  source: string | undefined,
  secrets: readonly string[],
): Promise<z.infer<typeof fileSchema>> {
  const device = await findDevice(ctx, source)
  const barred = await readBarred(ctx, device)
  const why = secrets.map((name) => barred.get(name)).find((one) => one !== undefined)
  if (why !== undefined) throw new AppError('forbidden', why)
  const file = writeFile(device, secrets, barred)
  await ctx.store.atomic([audit(ctx, 'configuration_exported', { source: device.source, secrets: [...secrets] })])
  return file
}

/**
 * Secrets that the viewer may not export, and why: direct messages to the radio, and the keys of channels, are not for
 * everybody who may change settings.
 */
async function readBarred(ctx: SignedInCtx, device: RadioDevice): Promise<ReadonlyMap<string, Said>> {
  const barred = new Map<string, Said>()
  if (!ctx.viewer.user.isAdmin) {
    barred.set('security.privateKey', said('Only administrators may export the private key of a radio'))
  }
  const canRead = await readSlots(ctx, device)
  if (channelsOf(device.reveal().sections).some((channel) => isUsed(channel) && !canRead(channel.index))) {
    barred.set('channels', said('The radio has channels that you may not read, so you cannot export all channels'))
  }
  return barred
}

function writeFile(
  device: RadioDevice,
  secrets: readonly string[],
  barred: ReadonlyMap<string, unknown>,
): z.infer<typeof fileSchema> {
  const config = device.reveal()
  const present = listSecretNames(config.sections)
  const unknown = secrets.find((name) => !present.includes(name))
  if (unknown !== undefined) {
    throw new AppError('invalid_request', said('The radio has no secret {name}', { name: unknown }))
  }
  const named = new Set(secrets)
  const file = exportFile(config.sections, named, named.has('channels') ? urlOfAll(config) : null)
  // As the CLI's library: sorted by name, and no line is folded.
  const yaml = HEAD + stringify(file, { sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false })
  return { yaml, leftOut: present.filter((name) => !named.has(name) && !barred.has(name)) }
}

/** Throws `source_not_found`, `radio_unavailable`, `invalid_request`. */
export async function previewFile(
  ctx: SignedInCtx,
  source: string | undefined,
  { yaml }: z.infer<typeof filePreviewSchema>,
): Promise<z.infer<typeof filePlanSchema>> {
  const device = await findDevice(ctx, source)
  const { leftOut, ...plan } = planFile(device, yaml, await readSlots(ctx, device))
  return { ...(await tell(ctx, device, plan)), leftOut: [...leftOut] }
}

/** Begins to apply sections of a file as one edit. Throws as `changeSections`, and `confirmation_required`. */
export async function importFile(
  ctx: SignedInCtx,
  source: string | undefined,
  { yaml, sections, confirm, revisions }: z.infer<typeof fileImportSchema>,
): Promise<Change[]> {
  const device = await findDevice(ctx, source)
  const { inputs, slots } = planFile(device, yaml, await readSlots(ctx, device))
  const missing = sections.find((section) => !inputs.has(section))
  if (missing !== undefined) {
    throw new AppError(
      'invalid_request',
      said('The file changes nothing in the section {section}', { section: missing }),
    )
  }
  const chosen = {
    inputs: new Map([...inputs].filter(([section]) => sections.includes(section))),
    slots: sections.includes('channels') ? slots : [],
  }
  return apply(ctx, device, chosen, { confirm, revisions })
}

type PlannedFile = ImportPlan & { readonly leftOut: readonly LeftOut[] }

function planFile(device: RadioDevice, yaml: string, mayCompare: MayCompare): PlannedFile {
  const { sections } = device.reveal()
  const { inputs, hasLora, channelUrl, leftOut } = readFile(parseYaml(yaml), sections)
  if (channelUrl === null) return { inputs, slots: [], leftOut }
  const shared = readUrl(channelUrl)
  const { input, slots } = planSlots(sections, shared, 'replace', mayCompare)
  const all = new Map<string, SectionInput>([...inputs, ['channels', input]])
  if (shared.lora === null) return { inputs: all, slots, leftOut }
  const lora = { values: takenLora(shared.lora), secrets: {} }
  if (!hasLora) return { inputs: all.set('lora', lora), slots, leftOut }
  // As in the CLI, which writes the section after the URL.
  const [planned] = device.plan(new Map([['lora', lora]]))
  const isDifferent = planned !== undefined && planned.fields.length > 0
  return {
    inputs: all,
    slots,
    leftOut: isDifferent ? [...leftOut, { key: 'channel_url', why: 'lora_of_url' }] : leftOut,
  }
}

/** A message of the parser would repeat the text, secrets included. Throws `invalid_request`. */
function parseYaml(text: string): Readonly<Record<string, unknown>> {
  const document = parseDocument(text, { schema: 'core', logLevel: 'silent', stringKeys: true })
  const [error] = document.errors
  if (error !== undefined) {
    const line = error.linePos?.[0].line ?? 1
    throw new AppError('invalid_request', said('This is no YAML: line {line} cannot be read', { line }))
  }
  const content: unknown = toValue()
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new AppError('invalid_request', 'This is no configuration of a radio: it has no names with values')
  }
  return Object.fromEntries(Object.entries(content))

  function toValue(): unknown {
    try {
      return document.toJS({ maxAliasCount: 20 })
    } catch {
      throw new AppError('invalid_request', 'This YAML refers to its own parts too often')
    }
  }
}
