import { and, gte, lte, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodeDays, nodes } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nodeNumField } from '../../http/fields.ts'
import { hoursOf } from '../history/hearings.ts'
import { differences } from './heard.ts'
import { spareTurns } from './spare-turns.ts'

/** Nodes that one query reads, each with at most 90 days; and those of a page. */
const SLICE = 20
const PAGE = 1000

export const hourPageSchema = z
  .object({
    heard: z.array(
      z.object({
        nodeNum: nodeNumField,
        hours: z
          .array(z.int())
          .describe(
            'Hours since 1970 in which it was heard, ascending, each as the difference from the one before; only complete ones',
          ),
      }),
    ),
    next: z.int().nullable().describe('`after` of the next page; null: this is the last one'),
  })
  .meta({ id: 'PlaybackHours', description: 'In which hours nodes were heard, also before the log of packets begins' })
export type HourPage = z.infer<typeof hourPageSchema>

const value = sql.placeholder
const queries = prepareOnce((db) => ({
  nodes: db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(sql`${nodes.nodeNum} > ${value('after')}`)
    .orderBy(nodes.nodeNum)
    .limit(PAGE)
    .prepare(),
  days: db
    .select({ nodeNum: nodeDays.nodeNum, day: nodeDays.day, hours: nodeDays.hours })
    .from(nodeDays)
    .where(
      and(
        sql`${nodeDays.nodeNum} in (select value from json_each(${value('nums')}))`,
        gte(nodeDays.day, value('first')),
        lte(nodeDays.day, value('last')),
      ),
    )
    .orderBy(nodeDays.nodeNum, nodeDays.day)
    .prepare(),
}))

type Asked = { readonly from: number; readonly to: number; readonly after: number }

/** The hours of a time (ms) in which the nodes after a number were heard, as far as the viewer may see them. */
export async function readHours(ctx: Reader, { from, to, after }: Asked): Promise<HourPage> {
  const {
    store,
    viewer: { view },
  } = ctx
  const turn = spareTurns()
  const rows = await queries(store).nodes.all({ after })
  const nums = rows.map(({ nodeNum }) => nodeNum).filter((nodeNum) => seesNodes(view, [nodeNum]))
  const last = rows.at(-1)?.nodeNum
  const isLast = rows.length < PAGE
  // Which number a hidden node has is told nowhere.
  if (nums.length === 0 && !isLast && last !== undefined) return readHours(ctx, { from, to, after: last })
  const hours = new Map<number, number[]>()
  for (let begin = 0; begin < nums.length; begin += SLICE) {
    const days = await queries(store).days.all({
      nums: JSON.stringify(nums.slice(begin, begin + SLICE)),
      first: Math.floor(from / DAY_MS),
      last: Math.floor(to / DAY_MS),
    })
    for (const { nodeNum, day, hours: counts } of days) {
      const list = hours.get(nodeNum) ?? []
      hours.set(nodeNum, list)
      for (const [hour, packets] of hoursOf(counts).entries()) {
        const at = day * 24 + hour
        if (packets > 0 && at * HOUR_MS >= from && (at + 1) * HOUR_MS <= to) list.push(at)
      }
    }
    await turn()
  }
  const heard = Array.from(hours, ([nodeNum, list]) => ({ nodeNum, hours: differences(list) }))
  return { heard: heard.filter((each) => each.hours.length > 0), next: isLast ? null : (nums.at(-1) ?? null) }
}
