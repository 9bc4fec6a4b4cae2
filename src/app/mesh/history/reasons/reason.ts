import * as z from 'zod'
import { CHANGED_FIELDS } from '../../../../shared/mesh/node-changes.ts'
import { nodeIdField, nodeNumField, timeField } from '../../../http/fields.ts'

const otherNode = { nodeNum: nodeNumField, nodeId: nodeIdField, name: z.string().nullable() }
const ofLink = {
  source: z.string(),
  since: timeField.nullable().describe('Nothing was received after this time; null: not known'),
  state: z.string().nullable().describe('The state of the connection; null: there is none here'),
}

/** A reason for which something speaks, with its evidence. `likely`: most of what is known fits; never a fact. */
export const reasonSchema = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('battery'),
      isLikely: z.boolean(),
      at: timeField,
      level: z.number().nullable().describe('Percent, the last that it reported'),
      voltage: z.number().nullable(),
      perDay: z.number().nullable().describe('Percent that it lost each day before; null: it did not fall'),
    }),
    z.object({
      kind: z.literal('repeater'),
      isLikely: z.boolean(),
      gone: z
        .array(z.object({ ...otherNode, lastHeard: timeField }))
        .describe('They carried its packets, and fell silent too'),
      others: z.int().describe('Nodes that carried its packets and are still heard'),
    }),
    z.object({ kind: z.literal('moved'), isLikely: z.boolean(), at: timeField, metres: z.number() }),
    z.object({
      kind: z.literal('changed'),
      isLikely: z.boolean(),
      at: timeField,
      field: z.enum(CHANGED_FIELDS),
      before: z.string(),
      after: z.string().nullable(),
    }),
    z.object({
      kind: z.literal('renumbered'),
      isLikely: z.boolean(),
      ...otherNode,
      firstHeard: timeField,
      sameKey: z.boolean().describe('It has the same public key; otherwise the same name'),
    }),
    z.object({ kind: z.literal('radio'), isLikely: z.boolean(), ...ofLink }),
    z.object({ kind: z.literal('broker'), isLikely: z.boolean(), ...ofLink }),
    z.object({
      kind: z.literal('gateway'),
      isLikely: z.boolean(),
      ...otherNode,
      source: z.string(),
      since: timeField.describe('It published nothing after this time'),
    }),
    z.object({ kind: z.literal('ignored'), isLikely: z.boolean() }),
    z.object({
      kind: z.literal('filtered'),
      isLikely: z.boolean(),
      by: z
        .enum(['suspicion', 'removed', 'collector', 'newcomers'])
        .describe(
          'suspicion: packets in its name are set aside. removed: what heard it is no connection any more. collector: that delivers from nobody what it mostly sent. newcomers: new numbers were refused, perhaps its own',
        ),
      source: z.string().nullable(),
      packets: z.int().nullable().describe('Packets set aside, or numbers refused'),
      since: timeField,
    }),
    z.object({
      kind: z.literal('unread'),
      isLikely: z.boolean(),
      packets: z.int().describe('Its packets that came since then and that nobody here could decrypt; 0: none came'),
      since: timeField,
      change: z
        .object({
          at: timeField,
          by: z.string().nullable().describe('Username at that time; null: the service itself'),
          source: z.string().describe('The radio'),
        })
        .nullable()
        .describe('Who changed the channels of a radio that heard it; only for administrators. Null: nobody'),
    }),
    z.object({
      kind: z.literal('clock'),
      isLikely: z.boolean(),
      whose: z.enum(['service', 'node']),
      ahead: z.number().nullable().describe('Milliseconds; negative: behind. Null: not known'),
    }),
    z.object({
      kind: z.literal('retention'),
      isLikely: z.boolean(),
      since: timeField.describe('Packets from before this time are no longer kept'),
    }),
  ])
  .meta({ id: 'SilenceReason', description: 'What may be the reason why a node is silent, with what speaks for it' })

export type Reason = z.infer<typeof reasonSchema>
