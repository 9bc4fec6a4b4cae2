/** All measurements, plain and packed, as a table in SQL with the columns of `telemetry`. */
export const MEASUREMENTS = `(select node_id, metric, t, v, channel from telemetry union all
  select r.node_id, m.key + 0, r.t + e.key, e.value ->> 0, e.value ->> 1
  from telemetry_runs r, json_each(r.body) m, json_each(m.value) e)`
