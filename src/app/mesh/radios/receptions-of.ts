import { type Placeholder, sql } from 'drizzle-orm'

/** All receptions of a message as `x`, also the one that the message itself has. */
export const receptionsOf = (id: Placeholder) =>
  sql`(select source_id, gateway, t, rx_snr, rx_rssi, hops_away, differs from receptions where message_id = ${id}
    union all select first ->> 0, first ->> 1, first ->> 2, first ->> 3, first ->> 4, first ->> 5, null
    from (select first_reception as first from messages where id = ${id} and first_reception is not null)
    where not exists (select 1 from receptions where message_id = ${id}
      and source_id = first ->> 0 and gateway = first ->> 1)) x`
