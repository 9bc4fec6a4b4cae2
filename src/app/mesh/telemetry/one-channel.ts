import { sql, type SQL } from 'drizzle-orm'
import { FIRST_DIRECT, MIXED_WITH_DIRECT, UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'

const DIRECT = sql.raw(String(FIRST_DIRECT))
const MIXED = sql.raw(String(MIXED_WITH_DIRECT))

/** The channel of all measurements in a summary, or a marker if there are several. `channel`: that of one of its rows. */
export function oneChannel(channel: SQL): SQL {
  return sql`case when count(${channel}) = 0 then null
    when count(${channel}) = count(*) and min(${channel}) = max(${channel}) then min(${channel})
    when max(${channel} >= ${DIRECT} or ${channel} = ${MIXED}) then ${MIXED}
    else ${sql.raw(String(UNKNOWN_CHANNEL))} end`
}
