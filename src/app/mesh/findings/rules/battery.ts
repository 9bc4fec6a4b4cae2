import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { hasRuns } from '../../../../db/runs.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import { oldestMeasured } from '../oldest.ts'
import { packedDays } from '../packed.ts'
import { aboutHeard, defineRule } from '../rule.ts'

const DAYS = 10
const FEW_DAYS = 5
/** Percent a day. */
const FALL = 2
/** A battery that is fuller has time. */
const FULL = 80
const POWERED = 101
const METRIC = 'deviceMetrics.batteryLevel'

const isAsked = (nums: string) => sql`m.name = ${METRIC} and n.node_num in (select value from json_each(${nums}))`

/** The lowest level of each day falls: the sun, or the battery, is not enough. */
export const battery = defineRule({
  name: 'battery',
  evidence: z.object({
    level: z.number().describe('Percent, the lowest of the last day'),
    perDay: z.number().describe('Percent that it lost a day'),
    days: z.int().describe('Days until it is empty at this rate'),
  }),
  past: { everyMs: DAY_MS, oldest: oldestMeasured('telemetry_daily', METRIC) },
  async look(looking) {
    const { store, now } = looking
    const isPacked = await hasRuns(store)
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; day: number; least: number; channel: number | null }>(
        sql`select nodeNum, t / ${DAY_MS} as day, min as least, channel from (
            select n.node_num as nodeNum, d.t as t, d.min as min, d.max as max, d.channel as channel
            from metrics m cross join nodes n cross join telemetry_daily d on d.node_id = n.id and d.metric = m.id
            where ${isAsked(nums)} and d.t between ${now - DAYS * DAY_MS} and ${now}
            ${isPacked ? sql`union all ${packedDays({ isAsked: isAsked(nums), from: now - DAYS * DAY_MS, to: now })}` : sql``})
          where max < ${POWERED} order by nodeNum, t`,
      ),
    )
    return Array.from(Map.groupBy(rows, ({ nodeNum }) => nodeNum)).flatMap(([nodeNum, days]) => {
      const [first, last] = [days.at(0), days.at(-1)]
      if (first === undefined || last === undefined || days.length < FEW_DAYS) return []
      const isFresh = last.day >= Math.floor(now / DAY_MS) - 1
      const perDay = (first.least - last.least) / (last.day - first.day)
      // A single bad day is weather.
      const rises = days.filter(({ least }, index) => least > (days[index - 1]?.least ?? Infinity) + 1).length
      if (!isFresh || perDay < FALL || last.least > FULL || rises > days.length / 4) return []
      const evidence = {
        level: Math.round(last.least),
        perDay: Math.round(perDay * 10) / 10,
        days: Math.floor(last.least / perDay),
      }
      const channels = [...new Set(days.map(({ channel }) => channel))]
      return [{ nodes: [nodeNum], channels, isLikely: evidence.days <= DAYS, evidence }]
    })
  },
})
