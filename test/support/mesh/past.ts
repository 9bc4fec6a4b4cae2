import type { openDatabase } from '../../../src/node/database.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const CENTRE = { latitude: 50.8, longitude: 8.7 }

/** The first of the nodes; the first twentieth of them are gateways, and a quarter moves. */
export const FIRST = 0x31000001

/**
 * A day of a mesh of this many nodes, until now: where they were, 80 packets of each, of which some are heard directly,
 * traceroutes, reports of neighbours and texts. The second node is silent since eight hours.
 */
export function fillPast({ sqlite }: ReturnType<typeof openDatabase>, count: number, now: number): void {
  const begin = now - DAY
  const gateways = Math.ceil(count / 20)
  const each = (rows: number) => `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${rows - 1})`
  const spread = (factor: number) => `((i * ${factor}) % 1000) / 500.0 - 1`
  const [lat, lon] = [`${CENTRE.latitude} + (${spread(389)})`, `${CENTRE.longitude} + (${spread(617)})`]
  sqlite.exec(`
    insert into sources (id, kind, name, local_node_num, created_at) values (900, 'mqtt', 'past', null, ${begin});
    insert into nodes (id, node_num, long_name, short_name, role, hw_model, latitude, longitude, position_time,
      position_channel, first_heard, last_heard, channel)
    ${each(count)} select 10000 + i, ${FIRST} + i, 'Node ' || i, 'N' || i, iif(i < ${gateways}, 2, 0), 43, ${lat}, ${lon},
      ${now}, 0, ${begin - DAY}, iif(i = 1, ${now - (8 * DAY) / 24}, ${now} - i * 1000), 0 from n;
    insert into positions (node_id, t, latitude, longitude, channel)
    ${each(count * 96)} select 10000 + i / 96, ${begin} + (i % 96) * ${15 * MINUTE},
      (select latitude from nodes where id = 10000 + i / 96) + iif(i / 96 % 4 = 0, (i % 96) * 0.002, 0),
      (select longitude from nodes where id = 10000 + i / 96) + iif(i / 96 % 4 = 0, (i % 96) * 0.003, 0), 0 from n;
    insert into packets (source_id, t, packet_id, from_node_num, to_node_num, gateway, channel, port, rx_snr, hops_away,
      hop_limit, via_mqtt, pki_encrypted, replayed, payload)
    ${each(count * 80)} select 900, ${begin} + cast(i * ${DAY / 80}.0 / ${count} as integer), i,
      ${FIRST} + (i * 7) % ${count}, 4294967295, ${FIRST} + (i * 13) % ${gateways}, 0, 67, (i % 30) - 20, i % 3, 3, 0, 0, 0,
      '{"kind":"telemetry"}' from n
      where not ((i * 7) % ${count} = 1 and i > ${count * 53});
    insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
    ${each(count)} select 900, i, ${FIRST} + i, ${FIRST} + (i * 11) % ${count}, ${begin} + i * ${Math.floor(DAY / count)},
      ${begin} + i * ${Math.floor(DAY / count)}, 'delivered',
      json_object('route', json_array(${FIRST} + (i * 17) % ${count}), 'snrTowards', json_array(5, -10), 'routeBack', json_array(),
        'snrBack', json_array()), 0 from n;
    insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, via_mqtt, pki_encrypted, direction)
    ${each(200)} select 900, 500000 + i, ${FIRST} + (i * 3) % ${count}, 4294967295, 0, 'text ' || i, ${begin} + i * ${DAY / 200}, 0, 0, 'in' from n;
  `)
}
