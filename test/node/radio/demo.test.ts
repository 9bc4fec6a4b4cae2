import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import type { RadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { encodeText, encodeTraceroute } from '../../../src/meshtastic/link/to-radio.ts'
import { connectDemo } from '../../../src/node/radio/demo/demo.ts'
import { createLink } from '../../../src/node/radio/link.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const START = Date.UTC(2026, 5, 1, 12)
const MINUTE_MS = 60_000

function startDemo(seed = 1) {
  const clock = createManualClock(START)
  const events: RadioEvent[] = []
  const link = createLink({
    name: 'demo',
    kind: 'demo',
    connect: connectDemo({ seed, clock }),
    clock,
    random: () => 0.5,
    onFrames: (batch) => events.push(...batch.map(({ event }) => event)),
  })
  link.start()
  clock.advance(1)
  return { clock, link, events }
}

function packetsOf(events: readonly RadioEvent[]) {
  return events.flatMap((event) => (event.type === 'packet' ? [event] : []))
}

describe('the demo mesh', () => {
  it('connects like a radio and shows its nodes at once', () => {
    const { link, events } = startDemo()
    expect(link.info()).toMatchObject({ state: 'connected', kind: 'demo', radio: { hwModel: 'STATION_G2' } })
    const nodes = events.flatMap((event) => (event.type === 'node-info' ? [event.node] : []))
    expect(nodes).toHaveLength(25)
    expect(new Set(nodes.map(({ nodeNum }) => nodeNum)).size).toBe(25)
    for (const { user, fix, metrics, lastHeard } of nodes) {
      expect(user?.longName).toBeTruthy()
      expect(user?.publicKey).toHaveLength(44)
      expect(fix).not.toBeNull()
      expect(metrics).toHaveLength(5)
      expect(lastHeard).toBeLessThanOrEqual(START)
    }
    expect(events.filter(({ type }) => type === 'channel')).toHaveLength(2)
  })

  it('is active: positions, telemetry, names, neighbours and messages arrive', () => {
    const { clock, link, events } = startDemo()
    clock.advance(30 * MINUTE_MS)
    const packets = packetsOf(events)
    expect(packets.length).toBeGreaterThan(400)
    expect(packets.length).toBeLessThan(900)
    const kinds = new Set(packets.map(({ packet }) => packet.payload.kind))
    expect([...kinds].toSorted()).toStrictEqual(['neighborinfo', 'nodeinfo', 'position', 'telemetry', 'text'])
    expect(packets.filter(({ replayed }) => replayed)).toHaveLength(0)
    expect(new Set(packets.map(({ packet }) => packet.id)).size).toBe(packets.length)
    for (const { packet, receivedAt } of packets) {
      expect(packet.hopsAway ?? 0).toBeGreaterThanOrEqual(0)
      expect(receivedAt - (packet.rxTime ?? 0)).toBeLessThan(1000)
    }
    expect(packets.some(({ packet }) => packet.isEmoji && packet.replyId !== null)).toBe(true)
    expect(link.info()).toMatchObject({ state: 'connected', reconnects: 0 })
  })

  it('is the same for the same seed, and differs for another', () => {
    const tell = (seed: number) => {
      const { clock, events } = startDemo(seed)
      clock.advance(5 * MINUTE_MS)
      return events
    }
    expect(tell(7)).toStrictEqual(tell(7))
    expect(tell(7)).not.toStrictEqual(tell(8))
  })

  it('accepts messages and acknowledges them, relayed first, then by the destination', () => {
    const { clock, link, events } = startDemo()
    const own = link.info().radio?.nodeNum ?? 0
    const to = own + 0x0101
    expect(link.send(encodeText({ to, channel: 0, id: 5, hopLimit: 3, wantAck: true, text: 'hi' }))).toBe(true)
    clock.advance(5000)
    expect(events).toContainEqual({
      receivedAt: START + 1,
      type: 'queue-status',
      free: 16,
      maxlen: 16,
      result: 0,
      packetId: 5,
    })
    const acks = packetsOf(events).filter(({ packet }) => packet.requestId === 5)
    expect(acks.map(({ packet }) => [packet.from, packet.payload.kind])).toStrictEqual([
      [own, 'routing'],
      [to, 'routing'],
    ])
  })

  it('answers traceroutes', () => {
    const { clock, link, events } = startDemo()
    const own = link.info().radio?.nodeNum ?? 0
    const to = own + 24 * 0x0101
    link.send(encodeTraceroute({ to, channel: 0, id: 6, hopLimit: 3, wantAck: false }))
    clock.advance(5000)
    const answers = packetsOf(events).filter(({ packet }) => packet.requestId === 6)
    expect(answers.map(({ packet }) => packet.payload)).toMatchObject([{ kind: 'traceroute', isReply: true }])
    const [payload] = answers.map(({ packet }) => packet.payload)
    const route = payload?.kind === 'traceroute' ? payload.route : null
    expect(route?.route).toHaveLength(3)
    expect(route?.snrTowards).toHaveLength(4)
  })

  it('accepts changed settings, restarts and has them', async () => {
    const clock = createManualClock(START)
    const parsed = parseConfig({ DEMO: 'true' })
    if (!parsed.ok) throw new Error(parsed.problems.join())
    const store = openMemoryStore()
    const lines: string[] = []
    const log = createLog({ level: 'info', format: 'json', now: clock.now, write: (line) => lines.push(line) })
    const radio = openRadio({ config: parsed.config, store, log, clock, random: () => 0.5 })
    radio.start()
    try {
      clock.advance(1)
      const [device] = radio.devices()
      const names = device?.sections().map(({ section }) => section)
      expect(names).toEqual(expect.arrayContaining(['owner', 'channels', 'lora', 'network', 'security', 'mqtt']))
      const change = { values: { longName: 'Renamed Hall' }, secrets: {}, confirm: [], revision: null }
      device?.prepare(new Map([['owner', change]])).start(new Map([['owner', 'an id']]))
      clock.advance(60_000)
      expect(radio.links()).toMatchObject([{ state: 'connected', reconnects: 1 }])
      expect(device?.sections().find(({ section }) => section === 'owner')?.values).toMatchObject({
        longName: 'Renamed Hall',
      })
    } finally {
      await radio.close()
      store.close()
    }
    expect(lines.find((line) => line.includes('Configuration change'))).toContain('"state":"applied"')
  })

  it('ends with its link', () => {
    const { clock, link, events } = startDemo()
    link.stop()
    const before = events.length
    clock.advance(10 * MINUTE_MS)
    expect(events).toHaveLength(before)
  })
})
