import * as z from 'zod'
import { SECTION_KINDS } from '../../../meshtastic/config/kinds.ts'
import { LOSSES } from '../../../shared/mesh/losses.ts'
import { REMOTE_ACTIONS, REMOTE_REASONS, REMOTE_STATES } from '../../../shared/mesh/remote-states.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { nodeNumSchema } from '../../mesh/nodes/nodes.ts'
import { sectionChangeSchema, sectionParam, sectionSchema } from '../schemas.ts'

const paths = z.array(z.string())

export const remoteActionSchema = z
  .object({
    id: z.string(),
    kind: z.enum(REMOTE_ACTIONS),
    section: z.string().nullable().describe('Null: a restart'),
    state: z
      .enum(REMOTE_STATES)
      .describe(
        'queued, waiting_for_key, sent and restarting are steps, the others outcomes. refused: by the node; timed_out: it did not answer; lost: it did not answer after it was told to save and restart; differs: it came back with other values; unverified: what it has now is not known; failed: nothing was changed, because of this service or its radio',
      ),
    reason: z.enum(REMOTE_REASONS).nullable(),
    detail: z.string().nullable().describe('The error as the node or the radio named it'),
    fields: paths.describe('The requested changes; secrets are shown by path only'),
    differing: paths.describe('The requested values that the node does not have'),
    before: z
      .record(z.string(), z.unknown())
      .describe('The changed values as they were, without secrets: as `values` of a change they put the section back'),
    at: timeField,
    by: z.string().nullable().describe('Username at that time'),
    settledAt: timeField.nullable().describe('Null: not finished'),
  })
  .meta({ id: 'RemoteAction', description: 'What was done with a node over the mesh, and how it ended' })
export type RemoteAction = z.infer<typeof remoteActionSchema>

const airtimeSchema = z
  .object({
    packets: z.int().describe('Transmissions by all radios on the way'),
    ms: z.int().describe('Milliseconds on the air in all'),
  })
  .meta({ id: 'RemoteAirtime', description: 'About what an action costs on the air, without repetitions' })

export const remoteNodeSchema = z
  .object({
    nodeNum: nodeNumField,
    nodeId: nodeIdField,
    longName: z.string().nullable(),
    shortName: z.string().nullable(),
    keyState: z
      .enum(['trusted', 'changed', 'none'])
      .describe(
        'trusted: its public key is the one that it had when it was named; changed: name it again to trust the new one; none: it is reached on the admin channel',
      ),
    firmwareVersion: z.string().nullable().describe('As it reported over the mesh'),
    namedAt: timeField,
    namedBy: z.string().nullable(),
    lastAction: remoteActionSchema.nullable(),
  })
  .meta({ id: 'RemoteNode', description: 'A node that is administered over the mesh' })

export const remoteListSchema = z.object({ nodes: z.array(remoteNodeSchema) })

export const remoteOverviewSchema = remoteNodeSchema.extend({
  source: z.string().nullable().describe('Name of the radio that would reach it; null: none is there'),
  problem: z.string().nullable().describe('Why that radio cannot reach it now'),
  ownKey: z.string().nullable().describe('The public key of that radio, which must be an admin key of the node'),
  hops: z.object({ count: z.int(), isAssumed: z.boolean() }),
  modem: z.object({ preset: z.string(), isAssumed: z.boolean() }),
  rebootAirtime: airtimeSchema,
  sections: z.array(
    z.object({
      section: z.string(),
      kind: z.enum(SECTION_KINDS),
      readAt: timeField.nullable().describe('Null: never read'),
      readAirtime: airtimeSchema,
      lastAction: remoteActionSchema.nullable(),
    }),
  ),
})

export const remoteSectionSchema = sectionSchema
  .omit({ lastChange: true, regionPresets: true })
  .extend({
    lastAction: remoteActionSchema.nullable(),
    lastChange: remoteActionSchema.nullable().describe('The latest change, for putting it back'),
    changeAirtime: airtimeSchema,
    losses: z
      .record(z.string(), z.enum(LOSSES))
      .describe('By path: what any change can lose; some values of other fields can, too'),
  })
  .meta({ id: 'RemoteSection', description: 'A section of the settings of a node, as read over the mesh' })

export const remoteParam = z.object({ id: nodeNumSchema })
export const remoteSectionParam = remoteParam.extend(sectionParam.shape)

export const remoteNamingSchema = z.strictObject({
  own: z.boolean().describe('true: it belongs to us and may be administered; again: trust its present public key'),
})

export const remoteActionAskSchema = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('read'), section: sectionParam.shape.section }),
  z.strictObject({
    action: z.literal('reboot'),
    confirm: z.literal(true).describe('The node neither receives nor sends until it is back'),
  }),
])

export const remoteChangeSchema = sectionChangeSchema.extend({
  accept: z
    .array(z.string().min(1).max(100))
    .max(100)
    .default([])
    .describe('Paths of the fields that can lose the node: confirmed a second time, besides `confirm`'),
})
