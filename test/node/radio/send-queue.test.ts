import type { OutgoingKind, RuleMark } from '../../../src/app/mesh/radios/radio.ts'
import { describe, expect, it } from 'vitest'
import { createSendQueue } from '../../../src/node/radio/sending/queue.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const RULE: RuleMark = { automationId: 1, revision: 1 }

function startQueue({ connected = true, isSlow = false } = {}) {
  const clock = createManualClock(1_000_000)
  const start = clock.now()
  const sent: [packetId: number, atMs: number][] = []
  const told: [packetId: number, type: string, atMs: number][] = []
  let isUp = connected
  const recording: (() => void)[] = []
  const queue = createSendQueue({
    clock,
    handOver(packetId, then) {
      told.push([packetId, 'written', clock.now() - start])
      if (isSlow) recording.push(then)
      else then()
    },
    send([packetId = 0]) {
      if (isUp) sent.push([packetId, clock.now() - start])
      return isUp
    },
    onDelivery: (packetId, event) => told.push([packetId, event.type, clock.now() - start]),
  })
  queue.setConnected(connected)
  return {
    clock,
    queue,
    sent,
    told,
    recorded: () => recording.shift()?.(),
    push: (packetId: number, kind: OutgoingKind = 'text', rule: RuleMark | null = null) => {
      if (!queue.reserve(rule)) return false
      queue.push({ packetId, kind, message: Uint8Array.of(packetId), rule })
      return true
    },
    free: (free: number, packetId: number | null = null, result = 0) =>
      queue.observe({ receivedAt: clock.now(), type: 'queue-status', free, maxlen: 16, result, packetId }),
    link: (value: boolean) => {
      isUp = value
      queue.setConnected(value)
    },
  }
}

describe('the sending queue', () => {
  it('sends a text at once and the next ones 2.2 s apart', () => {
    const { clock, push, sent } = startQueue()
    for (const id of [1, 2, 3]) push(id)
    clock.advance(10_000)
    push(4)
    clock.advance(10_000)
    expect(sent).toStrictEqual([
      [1, 0],
      [2, 2200],
      [3, 4400],
      [4, 10_000],
    ])
  })

  it('counts from when the radio took the last one, if that is a little later', () => {
    const { clock, push, sent, free } = startQueue()
    for (const id of [1, 2, 3]) push(id)
    clock.advance(150)
    free(15, 1)
    // A radio cannot hold the queue up by saying it again, or late.
    clock.advance(100)
    free(15, 1)
    clock.advance(2100)
    clock.advance(501)
    free(15, 2)
    clock.advance(10_000)
    expect(sent).toStrictEqual([
      [1, 0],
      [2, 2350],
      [3, 4550],
    ])
  })

  it('sends a packet only after it is recorded that the radio is given it', () => {
    const { clock, push, sent, told, recorded } = startQueue({ isSlow: true })
    for (const id of [1, 2]) push(id)
    clock.advance(5000)
    expect([sent, told.map(([id]) => id)]).toStrictEqual([[], [1]])
    recorded()
    expect(sent.map(([id]) => id)).toStrictEqual([1])
    clock.advance(2200)
    expect(told.map(([id]) => id)).toStrictEqual([1, 2])
  })

  it('says so if the link is lost, or the queue ends, before the radio has the packet', () => {
    const { queue, push, sent, told, recorded, link } = startQueue({ isSlow: true })
    push(1)
    link(false)
    recorded()
    expect([sent, told.map(([, type]) => type)]).toStrictEqual([[], ['written', 'requeued']])
    link(true)
    queue.stop()
    recorded()
    expect([sent, told.map(([, type]) => type)]).toStrictEqual([[], ['written', 'requeued', 'written', 'requeued']])
  })

  it('keeps its pace when the clock is set back', () => {
    const { clock, push, sent } = startQueue()
    push(1)
    clock.advance(-3_600_000)
    push(2)
    push(3)
    expect(sent).toHaveLength(1)
    clock.advance(2199)
    expect(sent).toHaveLength(1)
    clock.advance(1)
    expect(sent.map(([id]) => id)).toStrictEqual([1, 2])
    clock.advance(2200)
    expect(sent.map(([id]) => id)).toStrictEqual([1, 2, 3])
  })

  it('paces each kind by itself', () => {
    const { clock, push, sent } = startQueue()
    for (const [id, kind] of [
      [1, 'traceroute'],
      [2, 'traceroute'],
      [5, 'text'],
      [6, 'text'],
    ] as const) {
      push(id, kind)
    }
    clock.advance(60_000)
    expect(sent).toStrictEqual([
      [1, 0],
      [5, 0],
      [6, 2200],
      [2, 30_500],
    ])
  })

  it('holds 50 packets, including those in preparation', () => {
    const { queue, push, link, sent } = startQueue({ connected: false })
    for (let id = 1; id <= 49; id += 1) expect(push(id)).toBe(true)
    expect(queue.reserve(null)).toBe(true)
    expect(push(51)).toBe(false)
    expect(queue.waiting).toBe(50)
    queue.release(null)
    expect(push(50)).toBe(true)
    link(true)
    expect(sent).toHaveLength(1)
    expect(push(51)).toBe(true)
    expect(push(52)).toBe(false)
  })

  it('has 20 places for rules, also while users send, and 50 for users', () => {
    const { clock, queue, push, link, sent } = startQueue({ connected: false })
    for (let id = 1; id <= 19; id += 1) expect(push(id, 'text', RULE)).toBe(true)
    expect(queue.reserve(RULE)).toBe(true)
    expect(push(20, 'traceroute', { automationId: 2, revision: 1 })).toBe(false)
    for (let id = 101; id <= 130; id += 1) expect(push(id)).toBe(true)
    expect(push(131)).toBe(false)
    queue.release(RULE)
    expect(push(20, 'text', RULE)).toBe(true)
    expect(push(131)).toBe(false)
    link(true)
    clock.advance(2200)
    expect(sent.map(([id]) => id)).toStrictEqual([101, 102])
    expect([push(21, 'text', RULE), push(131), push(132), push(133)]).toStrictEqual([false, true, true, false])
  })

  it("sends users' packets before those of rules, as far as the pace of each kind allows", () => {
    const { clock, push, sent } = startQueue()
    for (const [id, kind, rule] of [
      [1, 'text', RULE],
      [2, 'text', RULE],
      [3, 'traceroute', RULE],
      [4, 'traceroute', RULE],
      [5, 'traceroute', null],
      [6, 'text', null],
      [7, 'text', null],
    ] as const) {
      push(id, kind, rule)
    }
    clock.advance(61_000)
    expect(sent).toStrictEqual([
      [1, 0],
      [3, 0],
      [6, 2200],
      [7, 4400],
      [2, 6600],
      [5, 30_500],
      [4, 61_000],
    ])
  })

  it('sends what users say before what they change at nodes, and that before rules, at a pace of its own', () => {
    const { clock, push, sent, link } = startQueue({ connected: false })
    push(1, 'text', RULE)
    push(2, 'remote')
    push(3, 'remote')
    push(4)
    link(true)
    clock.advance(10_000)
    expect(sent).toStrictEqual([
      [4, 0],
      [2, 0],
      [1, 2200],
      [3, 3000],
    ])
  })

  it('withdraws waiting packets of rules, but none that the radio has, and frees their places', () => {
    const { clock, queue, push, told, sent } = startQueue()
    push(1, 'text', RULE)
    push(2, 'text', RULE)
    push(3, 'text', { automationId: 1, revision: 2 })
    push(4)
    queue.withdraw(({ automationId, revision }) => automationId === 1 && revision < 2)
    expect(queue.waiting).toBe(2)
    clock.advance(10_000)
    expect(sent.map(([id]) => id)).toStrictEqual([1, 4, 3])
    expect(told.slice(0, 2)).toStrictEqual([
      [1, 'written', 0],
      [2, 'withdrawn', 0],
    ])
  })

  it('waits while the radio has no room', () => {
    const { clock, push, free, sent } = startQueue()
    free(0)
    push(1)
    clock.advance(60_000)
    expect(sent).toStrictEqual([])
    free(3)
    expect(sent).toStrictEqual([[1, 60_000]])
  })

  it('reports once that the radio did not accept a packet', () => {
    const { push, free, told } = startQueue()
    push(1)
    free(16, 1, 0)
    push(2)
    free(16, 7, 33)
    expect(told).toStrictEqual([[1, 'written', 0]])
    free(16, 1, 33)
    free(16, 1, 33)
    expect(told).toStrictEqual([
      [1, 'written', 0],
      [1, 'refused', 0],
    ])
  })

  it('gives up waiting for an answer after 120 s', () => {
    const { clock, push, told } = startQueue()
    push(1)
    clock.advance(119_999)
    expect(told).toStrictEqual([[1, 'written', 0]])
    clock.advance(1)
    expect(told).toStrictEqual([
      [1, 'written', 0],
      [1, 'lost', 120_000],
    ])
  })

  it('gives up at once when the link breaks, and sends the rest when it is back', () => {
    const { clock, push, link, told, sent } = startQueue()
    for (const id of [1, 2]) push(id)
    clock.advance(1000)
    link(false)
    expect(told).toStrictEqual([
      [1, 'written', 0],
      [1, 'lost', 1000],
    ])
    clock.advance(60_000)
    link(true)
    expect(sent).toStrictEqual([
      [1, 0],
      [2, 61_000],
    ])
  })

  it('drops packets that waited 120 s for a link', () => {
    const { clock, push, link, told, sent } = startQueue()
    push(1)
    push(2)
    link(false)
    clock.advance(120_000)
    link(true)
    clock.advance(60_000)
    expect(sent).toStrictEqual([[1, 0]])
    expect(told.slice(1)).toStrictEqual([
      [1, 'lost', 0],
      [2, 'not-sent', 120_000],
    ])
  })

  it('reports and sends nothing once it is stopped', () => {
    const { clock, push, queue, told, sent } = startQueue()
    push(1)
    push(2)
    queue.stop()
    queue.setConnected(false)
    clock.advance(200_000)
    expect(sent).toStrictEqual([[1, 0]])
    expect(told).toStrictEqual([[1, 'written', 0]])
  })
})
