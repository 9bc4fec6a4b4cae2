import * as z from 'zod'
import { FIELD_TYPES, KEY_KINDS, RISKS, SECTION_KINDS } from '../../meshtastic/config/kinds.ts'
import { CHANGE_STATES } from '../../shared/mesh/change-states.ts'
import { nodeNumField, timeField } from '../http/fields.ts'

const paths = z.array(z.string())

export const changeSchema = z
  .object({
    id: z.string(),
    section: z.string(),
    state: z
      .enum(CHANGE_STATES)
      .describe(
        "differs: the radio came back with other values than requested; waiting: no collector has taken it, for a collector's radio",
      ),
    at: timeField,
    settledAt: timeField.nullable().describe('Null: the change is not finished, and its state may still change'),
    by: z.string().nullable().describe('Username at that time'),
    fields: paths.describe('The requested changes; secrets are shown by path only'),
    differing: paths.describe('The requested values that the radio did not apply'),
    reason: z.string().nullable(),
    notice: z.string().optional().describe("Text of the radio's notifications during the change"),
  })
  .meta({ id: 'ConfigurationChange', description: 'A change of a radio’s settings, and its result' })
export type Change = z.infer<typeof changeSchema>

const sectionEntry = {
  section: z.string(),
  kind: z.enum(SECTION_KINDS),
  readAt: timeField.describe('When the radio reported it'),
  lastChange: changeSchema.nullable(),
}

export const overviewSchema = z.object({
  source: z.string().nullable().describe('Null: no radio is known'),
  sources: z.array(z.string()).describe('All radios with settings'),
  nodeNum: nodeNumField.nullable(),
  editable: z
    .boolean()
    .describe('The radio is connected and has reported its settings on this connection, or its collector changes them'),
  byCollector: z.boolean().describe("A collector's radio: it has only sections without secrets, as last delivered"),
  sections: z.array(z.object(sectionEntry)),
  lastChange: changeSchema.nullable(),
})

const fieldSchema = z
  .object({
    path: z.string().describe('Path in the values, with dots; in channels * stands for the index'),
    type: z
      .enum(FIELD_TYPES)
      .describe(
        'bytes: base64; ipv4: four numbers with dots; flags: a list of options, and e.g. UNKNOWN_10 for an unnamed bit',
      ),
    list: z.boolean(),
    options: z.array(z.string()).nullable().describe('For enum and flags; flags that are not options stay as they are'),
    min: z.number().nullable(),
    max: z.number().nullable(),
    maxBytes: z.int().nullable().describe('Bytes of UTF-8'),
    sizes: z.array(z.int()).nullable().describe('Maximum number of bytes'),
    maxItems: z.int().nullable(),
    secret: z.boolean().describe('Written and never shown'),
    readOnly: z.boolean(),
    risk: z.enum(RISKS).nullable().describe('Not null: a change must be confirmed'),
  })
  .meta({ id: 'ConfigurationField', description: 'The properties of a field, for an editor' })

export const secretStateSchema = z.object({ isSet: z.boolean(), kind: z.enum(KEY_KINDS).nullable() })

export const sectionSchema = z
  .object({
    source: z.string(),
    nodeNum: nodeNumField.nullable(),
    ...sectionEntry,
    editable: z.boolean(),
    revision: z
      .string()
      .nullable()
      .describe('Changes whenever a value changes, secrets included; null: it cannot be changed'),
    values: z.record(z.string(), z.unknown()).describe('By protobuf JSON names'),
    secrets: z.record(z.string(), secretStateSchema).describe('By path: whether they are set, never their values'),
    fields: z.array(fieldSchema),
    regionPresets: z
      .array(z.object({ region: z.string(), presets: z.array(z.string()), licensedOnly: z.boolean() }))
      .describe(
        'In `lora`: the presets that the radio allows in each region, none meaning all; empty: it does not say (before firmware 2.8), or is not connected',
      ),
    renewals: z
      .array(z.object({ path: z.string(), value: z.boolean().nullable(), secret: z.string() }))
      .describe(
        'While the secret is set, a change of `path` to this value (null: to any value) must also set or clear the secret',
      ),
  })
  .meta({ id: 'ConfigurationSection', description: 'A section of a radio’s settings, without its secrets' })

const path = z.string().min(1).max(100)

export const sectionChangeSchema = z.strictObject({
  values: z.record(z.string().max(100), z.unknown()).default({}).describe('Nested; contains only the fields to change'),
  secrets: z.record(path, z.string().max(500).nullable()).default({}).describe('By path; null clears'),
  confirm: z.array(path).max(100).default([]).describe('Paths of the risky fields that are confirmed'),
  revision: z
    .string()
    .max(100)
    .nullable()
    .default(null)
    .describe('The revision that was read: 409 if the section has changed since'),
})

export const sourceQuery = z.object({
  source: z.string().min(1).max(300).optional().describe('Name of the radio; without it the first one'),
})
export const sectionParam = z.object({
  section: z.string().min(1).max(60).describe('Name as in GET /api/configuration'),
})
