import { afterEach, expect, it } from 'vitest'
import type { MeshPacket } from '../../../../src/meshtastic/gen/packet_pb.ts'
import { Routing_Error as Error_ } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { type AppPeer, type AppPort, startAppPort } from '../../../support/radio/app-port.ts'
import { FAR, until } from '../../../support/radio/service.ts'

let port: AppPort
afterEach(() => port.stop())

const MINUTES = 10
const portOf = ({ payloadVariant: { value } }: MeshPacket) => Number(Object(value).portnum)
/** The ids of packets that were answered to this app. */
const answered = ({ received }: AppPeer) =>
  received.flatMap(({ payloadVariant: { case: variant, value } }) =>
    variant === 'packet' && Object(value).payloadVariant.value.portnum === PortNum.ROUTING_APP
      ? [Number(Object(value).payloadVariant.value.requestId)]
      : [],
  )

it('two apps and the page send through one radio for ten minutes, beside an app that stalls', async () => {
  port = await startAppPort()
  const [first, second, stalled] = [await port.app1(), await port.app1(), await port.app1()]
  const page = await port.app.admin()
  stalled.stall()
  const start = port.clock.now()
  const at: { readonly ms: number; readonly port: number; readonly id: number }[] = []
  // A radio with its own limits: what comes too early is refused.
  const last = new Map<number, number>()
  const early: number[] = []
  port.onPacket((packet) => {
    const ms = port.clock.now() - start
    const least = portOf(packet) === PortNum.TRACEROUTE_APP ? 30_000 : 2000
    if (ms - (last.get(portOf(packet)) ?? -1e9) <= least) early.push(packet.id)
    last.set(portOf(packet), ms)
    at.push({ ms, port: portOf(packet), id: packet.id })
    port.answers(packet.id, Error_.NONE, FAR)
  })
  const sent = { first: [] as number[], second: [] as number[], page: [] as number[] }
  for (let second10 = 0; second10 < MINUTES * 6; second10 += 1) {
    sent.first.push(first.text(`first ${second10}`, { to: FAR }))
    sent.second.push(second.text(`second ${second10}`, { to: FAR }))
    const answer = await page.send('POST', '/api/messages', { text: `page ${second10}`, to: FAR })
    sent.page.push(Number(Object(await answer.json()).message.packetId))
    if (second10 % 8 === 0) {
      const value = { portnum: PortNum.TRACEROUTE_APP, wantResponse: true }
      for (const [app, ids] of [
        [first, sent.first],
        [second, sent.second],
      ] as const) {
        ids.push(app.packet({ to: FAR, wantAck: true, payloadVariant: { case: 'decoded', value } }))
      }
    }
    await Promise.all([first.settled(), second.settled()])
    for (let step = 0; step < 10; step += 1) {
      port.clock.advance(1000)
      await first.settled()
    }
  }
  for (let step = 0; step < 120; step += 1) {
    port.clock.advance(1000)
    await first.settled()
  }
  const all = [...sent.first, ...sent.second, ...sent.page]
  await until(() => expect(at).toHaveLength(all.length))
  expect(new Set(at.map(({ id }) => id))).toStrictEqual(new Set(all))
  expect(early).toStrictEqual([])
  const gaps = (kind: number) =>
    at.filter((each) => each.port === kind).map(({ ms }, index, each) => ms - (each[index - 1]?.ms ?? -1e9))
  expect(Math.min(...gaps(PortNum.TEXT_MESSAGE_APP))).toBeGreaterThanOrEqual(2200)
  expect(Math.min(...gaps(PortNum.TRACEROUTE_APP))).toBeGreaterThan(30_000)
  await until(() =>
    expect([answered(first).length, answered(second).length]).toStrictEqual([sent.first.length, sent.second.length]),
  )
  expect([new Set(answered(first)), new Set(answered(second))]).toStrictEqual([
    new Set(sent.first),
    new Set(sent.second),
  ])
  const states = 'select delivery_state s, count(*) n from messages group by 1'
  await until(() =>
    expect(port.store.sqlite.prepare(states).all()).toStrictEqual([{ s: 'delivered', n: 3 * MINUTES * 6 }]),
  )
})
