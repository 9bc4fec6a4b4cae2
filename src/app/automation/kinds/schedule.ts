import * as z from 'zod'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { TOKEN_NAMES } from '../../../shared/automation/tokens.ts'
import { channel, common, cronSchema, MIN_RUN_MINUTES, targetNode, templateSchema } from './fields.ts'
import { GRACE_MS, timedKind } from './kind.ts'
import { planText, planTraceroute } from './planned.ts'

const actionSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('text'),
    text: templateSchema,
    channel: channel.default(0),
    to: targetNode.nullable().default(null).describe('Node number or !hex; null: broadcast'),
  }),
  z.strictObject({ kind: z.literal('traceroute'), to: targetNode }),
])

const scheduleSchema = z
  .strictObject({
    kind: z.literal('schedule'),
    ...common,
    cron: cronSchema,
    action: actionSchema,
  })
  .meta({ id: 'ScheduleRule', description: 'Sends a text or a traceroute at certain times' })

const MIN_GAP_MS = MIN_RUN_MINUTES * MINUTE_MS

/** Sends a text or traces a route at certain times. */
export const schedule = timedKind(scheduleSchema, {
  tokens: TOKEN_NAMES,
  textOf: ({ action }) => (action.kind === 'text' ? { path: ['action', 'text'], text: action.text } : null),
  problemsOf: () => [],
  timingOf: ({ cron }) => ({ cron, path: ['cron'], minGapMs: MIN_GAP_MS, leastGapMs: MIN_GAP_MS - GRACE_MS }),
  async plan(needs, rule, now) {
    const { action } = rule
    if (action.kind === 'traceroute') return [await planTraceroute(needs, action.to)]
    const { text, to, channel } = action
    return [await planText(needs, rule, text, { to: to ?? BROADCAST, channel }, now)]
  },
})
