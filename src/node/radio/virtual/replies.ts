import { encodeFromRadio, encodeReply, encodeRoutingReply } from '../../../meshtastic/link/app-messages.ts'
import { LogRecord_Level } from '../../../meshtastic/gen/stream_pb.ts'
import { Routing_Error } from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import type { Clock } from '../../clock.ts'
import type { Link } from '../link.ts'
import type { AppClient } from './app-client.ts'

/** A radio's queue, for one that has not reported its own. */
const USUAL_QUEUE = { free: 16, maxlen: 16 }

/** What the radio would answer to an app. */
export type Replies = {
  /** The state of the queue, and what became of the packet `id` there: 0 is success. */
  status(app: AppClient, id: number, result?: number): void
  /** The acknowledgement or refusal of a packet. */
  routing(app: AppClient, requestId: number, error: Routing_Error): void
  /** A refusal: both of the above. */
  refuse(app: AppClient, requestId: number, error: Routing_Error): void
  /** The answer to an admin message. */
  admin(app: AppClient, requestId: number, payload: Uint8Array): void
  /** A notification for the people in front of the app. */
  notice(message: string): Uint8Array
}

export function createReplies(needs: {
  readonly link: Pick<Link, 'info'>
  readonly clock: Clock
  readonly nextId: () => number
  /** The radio's own number. */
  readonly own: () => number
}): Replies {
  const { link, clock, nextId, own } = needs
  const about = (requestId: number) => ({ own: own(), id: nextId(), requestId, now: clock.now() })
  const status: Replies['status'] = (app, meshPacketId, res = 0) => {
    const { free, maxlen } = link.info().queue ?? USUAL_QUEUE
    app.push(encodeFromRadio({ case: 'queueStatus', value: { res, free, maxlen, meshPacketId } }), 'reply')
  }
  const routing: Replies['routing'] = (app, requestId, error) =>
    app.push(encodeRoutingReply(about(requestId), error), 'reply')
  return {
    status,
    routing,
    refuse(app, requestId, error) {
      status(app, requestId, error)
      routing(app, requestId, error)
    },
    admin(app, requestId, payload) {
      status(app, requestId)
      app.push(encodeReply(about(requestId), PortNum.ADMIN_APP, payload), 'reply')
    },
    notice: (message) =>
      encodeFromRadio({
        case: 'clientNotification',
        value: { level: LogRecord_Level.WARNING, time: Math.floor(clock.now() / 1000), message },
      }),
  }
}
