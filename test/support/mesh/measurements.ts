/** All measurements, plain and packed, as a table in SQL with the columns of `telemetry`. */
export const MEASUREMENTS = `(select node_id, metric, t, v, channel from telemetry union all
  select r.node_id, m.key + 0, r.t + e.key, e.value ->> 0, e.value ->> 1
  from telemetry_runs r, json_each(r.body) m, json_each(m.value) e)`

/** All packets of the log, in rows and in pages, as a table in SQL with their ids. */
export const LOGGED = `(select id from packets union all
  select g.first_id + e.key from packet_pages g, json_each(g.body) e)`

/** All receptions, also those that a message has itself, as a table in SQL. */
export const RECEPTIONS = `(select message_id, source_id, gateway from receptions union
  select id, first_reception ->> 0, first_reception ->> 1 from messages where first_reception is not null)`

/** Statements that empty the pages of the log, and leave what tells where its ids go on. */
export const EMPTY_PAGES = [
  'delete from packet_pages where first_id < (select max(first_id) from packet_pages)',
  `update packet_pages set first_id = last_id + 1, packets = 0, replayed = 0, ports = '[]', receivers = '[]',
    signed = '[]', keys = '[]', body = '[]'`,
]
