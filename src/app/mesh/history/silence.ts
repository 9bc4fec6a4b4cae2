import * as z from 'zod'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { seenNode } from '../nodes/seen.ts'
import { listChanges } from './changes.ts'
import { listHours, usualPause } from './days.ts'
import type { Case } from './reasons/case.ts'
import { lookAtFilters } from './reasons/filtered.ts'
import { lookAtIdentity } from './reasons/identity.ts'
import { lookAtPower } from './reasons/power.ts'
import { reasonSchema } from './reasons/reason.ts'
import { lookAtService } from './reasons/service.ts'
import { lookAtChannels } from './reasons/unread.ts'
import { lookAtWay } from './reasons/way.ts'
import { listReceivers } from './receivers.ts'

/** A pause that is no silence, and how many usual pauses of a node are none. */
const SHORT_MS = 2 * HOUR_MS
const PAUSES = 6
/** How far back the usual pause is measured. */
const USUAL_MS = 14 * DAY_MS

/** What is looked at if it is not heard any more. */
const LOOKS = [lookAtService, lookAtFilters, lookAtIdentity, lookAtPower, lookAtWay]

export const silenceSchema = z
  .object({
    nodeNum: nodeNumField,
    nodeId: nodeIdField,
    lastHeard: timeField.nullable(),
    usualPause: z.number().nullable().describe('Milliseconds between its packets before; null: never heard'),
    isSilent: z
      .boolean()
      .describe('It has not been heard for much longer than usual, or nothing of it can be decrypted any more'),
    reasons: z
      .array(reasonSchema)
      .describe(
        'What may be the reason, the most likely first, each with what speaks for it. Empty: nothing speaks for any',
      ),
  })
  .meta({ id: 'NodeSilence', description: 'Why a node may be silent' })

/**
 * Why a node is not heard any more, from what is stored and the viewer may see. Nothing is sent. Throws
 * `node_not_found`.
 */
export async function explainSilence(ctx: SignedInCtx, asked: number): Promise<z.infer<typeof silenceSchema>> {
  const node = await seenNode(ctx, asked)
  const { nodeNum, lastHeard } = node
  const about = { nodeNum, nodeId: formatNodeId(nodeNum), lastHeard }
  if (lastHeard === null) return { ...about, usualPause: null, isSilent: true, reasons: [] }
  const nums = [nodeNum, ...node.formerNodeNums]
  const now = ctx.now()
  const hours = await listHours(ctx.store, nums, lastHeard - USUAL_MS)
  const pause = usualPause(hours)
  const isAhead = lastHeard > now
  const isLate = isAhead || now - lastHeard > Math.max(SHORT_MS, PAUSES * pause)
  const receivers = await listReceivers(ctx, nums)
  const changes = isLate ? await listChanges(ctx, nums) : []
  const silence: Case = { ctx, node, nums, lastHeard, now, pause, receivers, changes }
  const found = await lookAtChannels(silence, isLate)
  const isSilent = isLate || found.length > 0
  for (const look of isLate ? LOOKS : []) {
    found.push(...(await look(silence)))
    await nextTurn()
  }
  const reasons = found.toSorted((a, b) => b.weight - a.weight).map(({ reason }) => reason)
  return { ...about, usualPause: pause, isSilent, reasons }
}
