import { AppError } from '../../../../app/http/errors.ts'
import type { DeliveryEvent } from '../../../../app/mesh/messages/delivery.ts'
import type { Outgoing } from '../../../../app/mesh/radios/radio.ts'
import type { FromRadio } from '../../../../meshtastic/gen/stream_pb.ts'
import { PortNum } from '../../../../meshtastic/gen/ports_pb.ts'
import {
  encodeRemotePacket,
  readRemoteAnswer,
  type RemoteAnswer,
  type RemotePacket,
} from '../../../../meshtastic/remote/asks.ts'
import { type Clock, createTimer } from '../../../clock.ts'

/** How long a packet may wait until the radio gets it. */
const QUEUE_MS = 180_000

/** A message to a node, and how long its answer may take, in milliseconds. */
export type Asked = Pick<RemotePacket, 'to' | 'way' | 'payload' | 'wantResponse'> & {
  readonly patienceMs: number
  /** How often it is sent until the node answers. */
  readonly attempts: number
}

export type AskResult =
  | { readonly kind: 'answer'; readonly answer: RemoteAnswer }
  /** The node has it. */
  | { readonly kind: 'delivered' }
  /** By the node, or else by our radio. */
  | { readonly kind: 'refused'; readonly error: string; readonly byNode: boolean }
  | { readonly kind: 'silent' }
  /** Our radio never had it. */
  | { readonly kind: 'unsent'; readonly reason: string }
  | { readonly kind: 'stopped' }

/** Sends admin messages over one radio. Answers are matched by the id of the request. */
export type Asker = {
  ask(asked: Asked): Promise<AskResult>
  /** Whether a packet of the radio belongs to a request that is not answered. */
  owns(packetId: number): boolean
  note(packetId: number, event: DeliveryEvent): void
  /** Takes each complete message of the radio. */
  take(message: FromRadio): void
  stop(): void
}

/** With these our radio gives up, and it is worth another try. */
const GIVEN_UP: ReadonlySet<string> = new Set([
  'NO_ROUTE',
  'GOT_NAK',
  'TIMEOUT',
  'MAX_RETRANSMIT',
  'RATE_LIMIT_EXCEEDED',
])

type Open = {
  readonly asked: Asked
  note(packetId: number, event: DeliveryEvent): void
  settle(result: AskResult): void
}

/** `reserve` throws an AppError if the radio cannot send. */
export function createAsker({ reserve, clock }: { reserve: () => Outgoing; clock: Clock }): Asker {
  const open = new Map<number, Open>()
  let isStopped = false
  const ask = (asked: Asked) =>
    new Promise<AskResult>((resolve) => {
      if (isStopped) return resolve({ kind: 'stopped' })
      const ids = new Set<number>()
      const patience = createTimer(clock)
      let current = 0
      let wasWritten = false
      const settle = (result: AskResult) => {
        patience.stop()
        for (const id of ids) open.delete(id)
        resolve(result)
      }
      const giveUp = (reason: string) => settle(wasWritten ? { kind: 'silent' } : { kind: 'unsent', reason })
      const send = () => {
        if (ids.size >= asked.attempts) return settle({ kind: 'silent' })
        const outgoing = tryReserve(reserve)
        if (typeof outgoing === 'string') return giveUp(outgoing)
        const { packetId: id, hopLimit } = outgoing
        current = id
        ids.add(id)
        open.set(id, entry)
        patience.start(QUEUE_MS, send)
        outgoing.send(encodeRemotePacket({ ...asked, id, hopLimit }))
      }
      const noteRouting = (id: number, error: string, byNode: boolean) => {
        if (error !== 'NONE') {
          if (!GIVEN_UP.has(error)) settle({ kind: 'refused', error, byNode })
          else if (id === current) send()
        } else if (byNode && !asked.wantResponse) settle({ kind: 'delivered' })
      }
      const entry: Open = {
        asked,
        settle,
        note(id, event) {
          const isCurrent = id === current
          if (event.type === 'routing') return noteRouting(id, event.error, event.from === asked.to)
          if (event.type === 'refused') return noteRouting(id, event.error, false)
          if (event.type === 'not-sent') return giveUp('the connection to the radio was lost')
          if (!isCurrent) return
          if (event.type === 'written') {
            wasWritten = true
            patience.start(asked.patienceMs, send)
          }
          if (event.type === 'requeued') patience.start(QUEUE_MS, send)
          if (event.type === 'lost') send()
        },
      }
      send()
    })
  return {
    ask,
    owns: (packetId) => open.has(packetId),
    note: (packetId, event) => open.get(packetId)?.note(packetId, event),
    take({ payloadVariant: { case: variant, value: packet } }) {
      if (variant !== 'packet' || packet.payloadVariant.case !== 'decoded') return
      const { portnum, payload, requestId } = packet.payloadVariant.value
      const found = open.get(requestId)
      if (found === undefined || portnum !== PortNum.ADMIN_APP || packet.from !== found.asked.to) return
      const { way, wantResponse } = found.asked
      // Anybody can send in the node's name; only the node can encrypt with its key.
      const isAuthentic =
        way.kind === 'pkc'
          ? packet.pkiEncrypted && Buffer.compare(packet.publicKey, way.publicKey) === 0
          : !packet.pkiEncrypted && packet.channel === way.index
      const answer = wantResponse && isAuthentic ? readRemoteAnswer(payload) : null
      if (answer !== null) found.settle({ kind: 'answer', answer })
    },
    stop() {
      isStopped = true
      for (const { settle } of new Set(open.values())) settle({ kind: 'stopped' })
    },
  }
}

/** A place in the queue, or why there is none. */
function tryReserve(reserve: () => Outgoing): Outgoing | string {
  try {
    return reserve()
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}
