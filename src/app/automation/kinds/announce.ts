import * as z from 'zod'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { TOKEN_NAMES } from '../../../shared/automation/tokens.ts'
import { channelsSchema, common, cronSchema, templateSchema } from './fields.ts'
import { timedKind } from './kind.ts'
import { planText, type Planned } from './planned.ts'

/** The minimum time between two announcements, in hours. */
const MIN_HOURS = 3

const timingSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('interval'), hours: z.int().min(MIN_HOURS).max(720) }),
  z.strictObject({ kind: z.literal('cron'), cron: cronSchema }),
])

const announceSchema = z
  .strictObject({
    kind: z.literal('announce'),
    ...common,
    when: timingSchema.describe(`At least ${MIN_HOURS} hours apart`),
    channels: channelsSchema.min(1),
    text: templateSchema,
  })
  .meta({ id: 'AnnounceRule', description: 'Sends a text to channels at intervals' })

/** Sends a text to channels again and again. */
export const announce = timedKind(announceSchema, {
  tokens: TOKEN_NAMES,
  textOf: ({ text }) => ({ path: ['text'], text }),
  problemsOf: () => [],
  timingOf({ when }) {
    if (when.kind === 'interval') return { everyMs: when.hours * HOUR_MS }
    const { cron } = when
    return { cron, path: ['when', 'cron'], minGapMs: MIN_HOURS * HOUR_MS, leastGapMs: (MIN_HOURS - 1) * HOUR_MS }
  },
  async plan(needs, rule, now) {
    const planned: Planned[] = []
    for (const channel of rule.channels)
      planned.push(await planText(needs, rule, rule.text, { to: BROADCAST, channel }, now))
    return planned
  },
})
