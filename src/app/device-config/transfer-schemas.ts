import * as z from 'zod'
import { RISKS } from '../../meshtastic/config/kinds.ts'
import { SLOT_CHANGES } from '../../meshtastic/exchange/channel-plan.ts'
import { LEFT_OUT_REASONS } from '../../meshtastic/exchange/cli-file.ts'
import { MAX_CHANNEL_URL, MAX_CONFIGURATION_FILE } from '../../shared/limits.ts'
import { changeSchema } from './schemas.ts'

const slot = z.int().min(0).max(7)

export const shareSchema = z.strictObject({
  channels: z.array(slot).min(1).max(8).describe('Slots of the channels to share, with their keys'),
  lora: z
    .boolean()
    .default(false)
    .describe('With the LoRa settings, without which other radios may not hear this mesh'),
  add: z.boolean().default(false).describe('Whoever opens the URL adds the channels to theirs; without LoRa settings'),
})

export const sharedSchema = z.object({
  url: z.string().describe('Whoever has it can read these channels, and write in them'),
  channels: z.array(z.object({ index: slot, name: z.string().describe('Empty: that of the modem preset') })),
  lora: z.boolean(),
})

const url = z.string().min(1).max(MAX_CHANNEL_URL).describe('As Meshtastic apps share channels: meshtastic.org/e/#…')
const mode = z
  .enum(['add', 'replace'])
  .optional()
  .describe('add: into free slots; replace: all slots. Without it, what the URL says')
const takeLora = z.boolean().default(false).describe('Also take over the LoRa settings of the URL')
const yaml = z.string().min(1).max(MAX_CONFIGURATION_FILE).describe('As `meshtastic --export-config` writes it')
const sections = z.array(z.string().min(1).max(60)).max(60)

const agreed = {
  confirm: z.array(z.string().min(1).max(160)).max(300).default([]).describe('`confirm` of the preview'),
  revisions: z
    .record(z.string().max(60), z.string().max(100))
    .default({})
    .describe('`revision` of each section in the preview: 409 if one has changed since'),
}

export const channelPreviewSchema = z.strictObject({ url, mode, lora: takeLora })
export const channelImportSchema = z.strictObject({ url, mode, lora: takeLora, ...agreed })

export const fileExportSchema = z.strictObject({
  secrets: z
    .array(z.string().min(1).max(100))
    .max(60)
    .default([])
    .describe('The secrets to include, as in `leftOut`: `channels` is the URL of the channels with their keys'),
})
export const fileSchema = z.object({
  yaml: z.string(),
  leftOut: z.array(z.string()).describe('Secrets of the radio that are not in the file, and that you may export'),
})

export const filePreviewSchema = z.strictObject({ yaml })
export const fileImportSchema = z.strictObject({
  yaml,
  sections: sections.min(1).describe('The sections to apply'),
  ...agreed,
})

const plannedSchema = z.object({
  section: z.string(),
  revision: z.string(),
  fields: z.array(
    z.object({
      path: z.string(),
      before: z.unknown().optional().describe('Absent for a secret'),
      after: z.unknown().optional(),
      secret: z.boolean(),
      risk: z.enum(RISKS).nullable(),
    }),
  ),
  issues: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .describe('Why the section cannot be applied as it is'),
})

const slotSchema = z.object({
  index: slot.nullable().describe('Null: the radio has this channel already'),
  change: z.enum(SLOT_CHANGES),
  name: z.string(),
  former: z.string().nullable().describe('The channel that the slot has now'),
  isAdmin: z.boolean().describe('Named admin: its key may administer radios'),
  positionPrecision: z.int(),
})

const planned = {
  sections: z.array(plannedSchema).describe('Those that change, or cannot'),
  slots: z.array(slotSchema).describe('What becomes of the channels'),
  confirm: z.array(z.string()).describe('What must be confirmed: `channels`, `admin`, or section and path'),
}

export const channelPlanSchema = z
  .object({
    mode: z.enum(['add', 'replace']),
    hasLora: z.boolean().describe('The URL has LoRa settings'),
    keepsRegion: z.boolean().describe('The URL names no region: the radio keeps its own'),
    ...planned,
  })
  .meta({ id: 'ChannelImport', description: 'What importing channels would change' })

export const filePlanSchema = z
  .object({
    ...planned,
    leftOut: z
      .array(z.object({ key: z.string(), why: z.enum(LEFT_OUT_REASONS) }))
      .describe('Keys of the file that are not applied, and why'),
  })
  .meta({ id: 'FileImport', description: 'What importing a configuration file would change' })

export const begunSchema = z.object({ changes: z.array(changeSchema).describe('One for each section; empty: nothing') })
