import { WHOLE_SCOPE } from '../../../src/shared/access/scope.ts'
import type { HearBatch } from '../../../src/app/mesh/heard/heard.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, vi } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { type Routing_Error, RoutingSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { type SqliteStore } from '../../../src/node/database.ts'
import { startAutomation } from '../../../src/node/automation.ts'
import { type NodeRadio, openRadio } from '../../../src/node/radio/radio.ts'
import { type Client, createTestApp, START, type TestApp } from '../app.ts'
import { createManualClock } from '../manual-clock.ts'
import { fromRadio, type RadioDevice, smallHandshake, startRadioDevice } from './device.ts'
import { openMemoryStore } from '../memory-store.ts'

/** The radio on loopback, and a node that it hears. */
export const OWN = 0xa0cb0001
export const FAR = 0xa0cb0002
/** The permissions of a user who sends. */
export const MAY_SEND = { messages: { read: true, write: true }, info: { read: true, write: true } }

/** The service with a radio; the test controls the time of both. */
export type RadioService = {
  readonly app: TestApp
  readonly device: RadioDevice
  readonly radio: NodeRadio
  readonly clock: ReturnType<typeof createManualClock>
  readonly sender: Client
  readonly store: SqliteStore
  send(body: object, headers?: Record<string, string>): Promise<{ status: number; body: Record<string, unknown> }>
  /** The packet that the radio received next. */
  sent(): Promise<MeshPacket>
  /** The routing answer to a packet. */
  answer(requestId: number, from: number, error?: Routing_Error, heard?: boolean): void
  /** Until the latest message is in this state. */
  untilState(state: string, error?: string | null): Promise<void>
  /** Runs the rules of automation, in this process or another one. */
  automate(on?: NodeRadio): void
  /** Another process on the same database and radio. */
  restart(): Promise<NodeRadio>
  stop(): Promise<void>
}

export const LORA = fromRadio({
  case: 'config',
  value: { payloadVariant: { case: 'lora', value: { hopLimit: 2, txEnabled: true } } },
})

/**
 * The service with a radio on loopback, connected, and a user who may send. `content`: the database that an earlier one
 * left.
 */
export async function startRadioService(
  extra: readonly Uint8Array[] = [LORA],
  env: Readonly<Record<string, string>> = {},
  content?: Buffer,
): Promise<RadioService> {
  const store = openMemoryStore(content)
  const endings: (() => unknown)[] = []
  const handshake = (nonce: number) => {
    const all = smallHandshake(nonce)
    return [...all.slice(0, -1), ...extra, ...all.slice(-1)]
  }
  const device = await startRadioDevice({ handshake })
  endings.push(() => device.stop())
  const clock = createManualClock(START)
  endings.push(() => store.close())
  const parsed = parseConfig({ MESHTASTIC_TCP: `127.0.0.1:${device.port}`, ...env })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const log = createLog({
    level: 'error',
    format: 'json',
    now: () => clock.now(),
    write: (line) => expect(line).toBe(''),
  })
  let hear: HearBatch = () => {}
  const open = () => {
    const opened = openRadio({ config: parsed.config, store, log, clock })
    opened.start((batch, suspected) => hear(batch, suspected))
    endings.push(() => opened.close())
    return opened
  }
  const radio = open()
  const app = await createTestApp({ store, ports: { radio, now: () => clock.now() } })
  const sender = content === undefined ? await app.user('sender', MAY_SEND, WHOLE_SCOPE) : await app.signIn('sender')
  await until(() => expect(radio.links()[0]?.state).toBe('connected'))
  clock.advance(100)
  await until(() => expect(store.sqlite.prepare('select count(*) n from channels').get()).toStrictEqual({ n: 1 }))
  return {
    app,
    device,
    radio,
    clock,
    sender,
    store,
    async send(body, headers) {
      const answer = await sender.send('POST', '/api/messages', body, headers)
      return { status: answer.status, body: Object(await answer.json()) }
    },
    async sent() {
      const { payloadVariant } = await device.next('packet')
      if (payloadVariant.case !== 'packet') throw new Error('no packet')
      return payloadVariant.value
    },
    answer(requestId, from, error = 0, heard = from !== OWN) {
      const payload = toBinary(RoutingSchema, create(RoutingSchema, { variant: { case: 'errorReason', value: error } }))
      const data = { portnum: PortNum.ROUTING_APP, payload, requestId }
      const signal = heard ? { rxRssi: -70 } : {}
      const value = {
        from,
        to: OWN,
        id: requestId === 1 ? 2 : requestId - 1,
        ...signal,
        payloadVariant: { case: 'decoded', value: data },
      } as const
      device.send(fromRadio({ case: 'packet', value }))
    },
    untilState: (state, error = null) =>
      until(() =>
        expect(
          store.sqlite.prepare('select delivery_state state, routing_error error from messages order by id desc').get(),
        ).toStrictEqual({ state, error }),
      ),
    automate(on = radio) {
      const automation = startAutomation({ store, radio: on, events: null, log, now: () => clock.now() }, clock)
      hear = automation.hear
      endings.push(automation.stop)
    },
    async restart() {
      await radio.close()
      return open()
    },
    async stop() {
      for (const end of endings.splice(0).toReversed()) await end()
    },
  }
}

/** Until everything under way on loopback has arrived. */
export function until(check: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(check, { interval: 2, timeout: 60_000 })
}

/** How many packets the radio was given to send. */
export function packetsSent({ device }: Pick<RadioService, 'device'>): number {
  return device.received.filter(({ payloadVariant }) => payloadVariant.case === 'packet').length
}
