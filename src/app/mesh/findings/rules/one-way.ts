import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

/** A node that is heard worse than this may be heard by luck. */
const HEARD_DB = -10
/** Links of a slice. */
const SLICE = 5000

/** One node hears another well, and the other, which reports whom it hears, does not hear it. */
export const oneWay = defineRule({
  name: 'one_way',
  evidence: z.object({ snr: z.number().describe('dB with which the second node hears the first') }),
  async look({ links, now, pause }) {
    const reported = links.filter(({ isReported, t }) => isReported && t >= now - DAY_MS)
    const reporters = new Set(reported.map(({ to }) => to))
    if (!(await pause())) return []
    const heard = new Set<string>()
    for (const [index, { from, to }] of links.entries()) {
      if (index % SLICE === SLICE - 1 && !(await pause())) return []
      heard.add(`${from} ${to}`)
    }
    if (!(await pause())) return []
    return reported.flatMap(({ from, to, snr, channel }) => {
      if (snr === null || snr < HEARD_DB || !reporters.has(from) || heard.has(`${to} ${from}`)) return []
      return [{ nodes: [from, to], channels: [channel], isLikely: false, evidence: { snr } }]
    })
  },
})
