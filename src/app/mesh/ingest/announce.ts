import { ownedBy } from '../../base/owned.ts'
import type { News } from '../heard/heard.ts'
import type { Ports } from '../../base/context.ts'
import type { Db } from '../../../db/store.ts'
import { announceHeard } from '../live/details.ts'
import { newsEvents } from '../live/events.ts'
import type { StoredBatch } from './ingest.ts'
import type { NewNodeExcess } from './trust/newcomers.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'events' | 'meter'>

/** Port numbers that were already logged. */
const loggedPorts = ownedBy((_db: Db) => new Set<number>())

/** Reports a stored batch to live readers and to the metrics, and logs what the service does not understand. */
export async function announce(
  { store, log, events, meter }: Needs,
  { news }: Pick<StoredBatch, 'news'>,
): Promise<void> {
  if (news.length === 0) return
  log.debug('Packets stored', { packets: news.length })
  for (const { packet } of news) meter?.countPacket(packet.portName)
  nameUnknownPorts(store.db, log, news)
  if (events !== null) await announceHeard({ store, log, events }, newsEvents(news))
}

/** Logged at most hourly for each source; the metrics have the number. */
export function logExcess(log: Needs['log'], { source, newNodes }: NewNodeExcess): void {
  log.warn('A source delivers too many new nodes: no more are stored until the next hour', { source, newNodes })
}

/** Each port is logged once; the metrics have the kinds of traffic, and the packet log has the packets. */
function nameUnknownPorts(db: Db, log: Needs['log'], news: readonly News[]): void {
  const known = loggedPorts(db)
  for (const { packet } of news) {
    const { port, portName, payload, from } = packet
    // Routing is a known port, although some of its parts are not used here.
    if (
      payload.kind !== 'unknown' ||
      portName === 'ROUTING_APP' ||
      port === null ||
      known.has(port) ||
      known.size >= MAX_NAMED
    )
      continue
    known.add(port)
    log.info('Packets of an unknown port', { port, portName, from })
  }
}

/** The protocol has 512 ports; higher numbers are made up. */
const MAX_NAMED = 512
