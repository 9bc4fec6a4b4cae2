import { sql, type SQL } from 'drizzle-orm'
import {
  DAILY_RUNS,
  entriesOf,
  HOURLY_RUNS,
  isSummarised,
  type RunForm,
  summarisedUntil,
  summaryOf,
  timeOf,
} from '../../../db/runs.ts'
import { oneChannel } from '../telemetry/one-channel.ts'

/** `isAsked`: the condition on node `n` and metric `m`; times in milliseconds. */
type Asked = { readonly isAsked: SQL; readonly from: number; readonly to: number }

function packed(form: RunForm, { isAsked, from, to }: Asked, columns: SQL): SQL {
  const asked = { node: sql`n.id`, metric: sql`m.id`, from: sql`${from}`, to: sql`${to}` }
  const entries = entriesOf(form, asked)
  return sql`select n.node_num, ${columns} from metrics m cross join nodes n cross join ${entries.from}
    where ${isAsked} and ${entries.where}`
}

const { n, min, max, sum, channel } = summaryOf()

/** Packed hours as a select of nodeNum, n, sum and channel. */
export const packedHours = (asked: Asked): SQL => packed(HOURLY_RUNS, asked, sql`${n}, ${sum}, ${channel}`)

/** Packed days as selects of nodeNum, t, min, max and channel; those not summarised yet from their hours. */
export function packedDays(asked: Asked): SQL {
  const begun = packed(HOURLY_RUNS, asked, sql`r.t, min(${min}), max(${max}), ${oneChannel(sql`${channel}`)}`)
  return sql`${packed(DAILY_RUNS, asked, sql`${timeOf(DAILY_RUNS)}, ${min}, ${max}, ${channel}`)} union all ${begun}
    and r.t >= ${asked.from} and r.t >= ${summarisedUntil('days')} and not ${isSummarised('days')} group by n.id, r.t`
}
