import type { News } from './heard.ts'
import type { Ports } from '../../context.ts'
import type { Db } from '../../../db/store.ts'
import { addDetails } from '../live/details.ts'
import { newsEvents } from '../live/events.ts'
import type { Crowd } from './trust/newcomers.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'events' | 'meter'>

/** Numbers of ports that the log has named, for each database. */
const named = new WeakMap<Db, Set<number>>()

/** Tells what a stored batch brought: to those who watch, to the metrics, and to the log what nobody here understands. */
export async function announce({ store, log, events, meter }: Needs, news: readonly News[]): Promise<void> {
  if (news.length === 0) return
  log.debug('Packets stored', { packets: news.length })
  for (const { packet } of news) meter?.countPacket(packet.portName)
  nameUnknownPorts(store.db, log, news)
  if (events === null) return
  const plain = newsEvents(news)
  const detailed = await addDetails(store, plain).catch((error: unknown) => {
    log.error('Live events are sent without their details', { error })
    return plain
  })
  events.publish(detailed)
}

/** Once in an hour for each source: how many there are is in the metrics. */
export function logCrowd(log: Needs['log'], { source, newNodes }: Crowd): void {
  log.warn('A source delivers too many new nodes: no more are stored until the next hour', { source, newNodes })
}

/** Each port once: what a mesh carries is in the metrics, and the packets are in the packet log. */
function nameUnknownPorts(db: Db, log: Needs['log'], news: readonly News[]): void {
  const known = named.get(db) ?? new Set()
  named.set(db, known)
  for (const { packet } of news) {
    const { port, portName, payload, from } = packet
    // Routing has parts that are of no use here, and is known.
    if (
      payload.kind !== 'unknown' ||
      portName === 'ROUTING_APP' ||
      port === null ||
      known.has(port) ||
      known.size >= MOST_NAMED
    )
      continue
    known.add(port)
    log.info('Packets of an unknown port', { port, portName, from })
  }
}

/** The protocol has 512 ports; numbers beyond it are made up by somebody. */
const MOST_NAMED = 512
