import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { DeliveryState, DIRECTIONS } from '../../../shared/mesh/delivery-states.ts'
import { type Job, plausibleTime } from '../job.ts'
import { flagIn, integerIn, nodeNumIn, numberIn, type Row, textIn } from '../source/row.ts'
import type { Places } from './places.ts'

const COLUMNS = [
  'id',
  'sourceId',
  'fromNodeNum',
  'toNodeNum',
  'text',
  'channel',
  'portnum',
  'timestamp',
  'createdAt',
  'hopStart',
  'hopLimit',
  'replyId',
  'emoji',
  'viaMqtt',
  'rxSnr',
  'rxRssi',
  'ackFailed',
  'routingErrorReceived',
  'deliveryState',
]
/** TEXT_MESSAGE_APP and TEXT_MESSAGE_COMPRESSED_APP. */
const TEXT_PORTS: ReadonlySet<number> = new Set([1, 7])
const TRACEROUTE_PORT = 70
const PORT_NAMES: Readonly<Record<number, string>> = {
  3: 'POSITION_APP',
  4: 'NODEINFO_APP',
  10: 'DETECTION_SENSOR_APP',
  11: 'ALERT_APP',
  67: 'TELEMETRY_APP',
  72: 'ATAK_PLUGIN',
  78: 'ATAK_PLUGIN_V2',
}
const ROWS_AT_ONCE = 2000
const U32 = 2 ** 32

type Message = {
  readonly source: string | null
  readonly packetId: number
  readonly from: number
  readonly to: number
  readonly channel: number
  readonly text: string
  readonly replyId: number | null
  readonly emoji: number
  readonly timestamp: number
  readonly rxSnr: number | null
  readonly rxRssi: number | null
  readonly hopsAway: number | null
  readonly viaMqtt: number
  readonly direction: (typeof DIRECTIONS)[number]
  readonly state: DeliveryState | null
}

/**
 * Adds texts that are not here yet, the latest first: each gets an id below 0 and all others, because ids are the order
 * of the list, and what is imported is history. Also below those of the search index, or its trigger would add a piece
 * to it for each text; the schedule indexes them.
 */
export async function importMessages(job: Job, places: Places, { after }: { readonly after: number }): Promise<void> {
  const { source, tally, writer, ctx } = job
  const { sqlite } = ctx.store
  const insert = sqlite.prepare(
    `insert into messages (id, source_id, packet_id, from_node_num, to_node_num, channel, text, reply_id, emoji,
        timestamp, rx_snr, rx_rssi, hops_away, via_mqtt, pki_encrypted, signed, direction, delivery_state, conflicting,
        withheld, heard)
      values (?, (select id from sources where name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, 0, 1, 0)
      on conflict (from_node_num, packet_id) do nothing`,
  )
  const lowest = sqlite
    .prepare<[], number>(
      `select min(0, coalesce((select min(id) from messages), 0), indexed_from) from text_indexes
        where table_name = 'messages'`,
    )
    .pluck()
  const put = (m: Message) => {
    const id = (lowest.get() ?? 0) - 1
    const values = [m.channel, m.text, m.replyId, m.emoji, m.timestamp, m.rxSnr, m.rxRssi, m.hopsAway, m.viaMqtt]
    return insert.run(id, m.source, m.packetId, m.from, m.to, ...values, m.direction, m.state).changes > 0
  }
  let rows: Message[] = []
  const flush = async () => {
    tally.added('messages', await writer.each(rows, put))
    rows = []
  }
  for (const row of source.rows('messages', COLUMNS, 'order by timestamp desc, id desc')) {
    const message = readMessage(job, places, row, after)
    if (message === null) continue
    tally.found('messages')
    rows.push(message)
    if (rows.length >= ROWS_AT_ONCE) await flush()
  }
  await flush()
}

function readMessage(job: Job, places: Places, row: Row, after: number): Message | null {
  const { tally } = job
  const id = textIn(row, 'id') ?? ''
  const port = integerIn(row, 'portnum')
  if (port === TRACEROUTE_PORT || id.startsWith('traceroute_')) return leave('messages_traceroutes')
  if (port !== null && !TEXT_PORTS.has(port)) return leave('messages_not_texts', PORT_NAMES[port] ?? `port ${port}`)
  const from = nodeNumIn(row, 'fromNodeNum')
  const to = nodeNumIn(row, 'toNodeNum')
  const text = textIn(row, 'text')
  const tail = /(?:^|_)(\d{1,15})$/.exec(id)?.[1]
  if (from === null || to === null || text === null || tail === undefined)
    return leave('messages_not_texts', 'incomplete')
  const timestamp = readTime(job, row)
  if (timestamp === null) return leave('messages_future')
  if (timestamp < after) return leave('messages_old')
  const key = textIn(row, 'sourceId')
  const origin = places.originOf(key)
  const index = integerIn(row, 'channel')
  const isDirect = to !== BROADCAST
  const isOwn = origin !== null && origin.localNodeNum === from
  const hopStart = integerIn(row, 'hopStart') ?? 0
  const hopLimit = integerIn(row, 'hopLimit') ?? 0
  const replyId = integerIn(row, 'replyId')
  return {
    source: origin?.name ?? null,
    // Without an id of the packet, the program puts a time there.
    packetId: Number(tail) % U32,
    from,
    to,
    channel: isDirect && (index === null || index < 0) ? 0 : places.numberOf(key, index),
    text,
    replyId: replyId !== null && replyId > 0 && replyId < U32 ? replyId : null,
    emoji: (integerIn(row, 'emoji') ?? 0) > 0 ? 1 : 0,
    timestamp,
    rxSnr: isOwn ? null : numberIn(row, 'rxSnr'),
    rxRssi: isOwn ? null : numberIn(row, 'rxRssi'),
    hopsAway: !isOwn && hopStart > 0 && hopStart >= hopLimit ? hopStart - hopLimit : null,
    viaMqtt: flagIn(row, 'viaMqtt') ? 1 : 0,
    direction: isOwn ? 'out' : 'in',
    state: isOwn ? stateOf(row, isDirect) : null,
  }

  function leave(
    what: 'messages_traceroutes' | 'messages_not_texts' | 'messages_future' | 'messages_old',
    kind?: string,
  ) {
    tally.lost(what, kind)
    return null
  }
}

function readTime(job: Job, row: Row): number | null {
  return plausibleTime(job, integerIn(row, 'timestamp')) ?? plausibleTime(job, integerIn(row, 'createdAt'))
}

/** `delivered` says there that the radio passed it on, which is all that can happen to a text on a channel. */
function stateOf(row: Row, isDirect: boolean): DeliveryState {
  const state = textIn(row, 'deliveryState')
  if (state === 'failed' || flagIn(row, 'ackFailed') || flagIn(row, 'routingErrorReceived')) return 'failed'
  return state === 'confirmed' || (state === 'delivered' && !isDirect) ? 'delivered' : 'unknown'
}
