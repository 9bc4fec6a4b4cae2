import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { createFrameDecoder, encodeFrame } from '../../../src/meshtastic/link/framing.ts'
import { type ToRadio, ToRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import type { ConnectionEvents } from '../../../src/node/radio/connection.ts'
import { createLink } from '../../../src/node/radio/link.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { fromRadio, queueStatus, smallHandshake } from '../../support/radio/device.ts'

const START = Date.UTC(2026, 5, 1)

/** A radio in memory: the test decides when it opens, talks and hangs up. */
function createRadio(random = () => 0.5) {
  const clock = createManualClock(START)
  const opened: number[] = []
  const sent: { readonly at: number; readonly variant: ToRadio['payloadVariant']['case'] }[] = []
  let nonce = 0
  let destroyed = 0
  let events: ConnectionEvents | null = null
  const link = createLink({
    name: 'test',
    kind: 'tcp',
    clock,
    random,
    onFrames: () => undefined,
    connect(toLink) {
      events = toLink
      opened.push(clock.now() - START)
      const decoder = createFrameDecoder((payload) => fromBinary(ToRadioSchema, payload))
      return {
        write(bytes) {
          for (const { message } of decoder.push(bytes, clock.now())) {
            sent.push({ at: clock.now() - START, variant: message.payloadVariant.case })
            if (message.payloadVariant.case === 'wantConfigId') nonce = message.payloadVariant.value
          }
        },
        destroy() {
          destroyed += 1
        },
      }
    },
  })
  const say = (...payloads: readonly Uint8Array[]) => {
    for (const payload of payloads) events?.onData(encodeFrame(payload))
  }
  return {
    clock,
    link,
    opened,
    sent,
    say,
    destroyed: () => destroyed,
    open: () => events?.onOpen(),
    close: (reason: string) => events?.onClose(reason),
    completeHandshake: () => say(...smallHandshake(nonce)),
  }
}

function timesOf(radio: ReturnType<typeof createRadio>, variant: ToRadio['payloadVariant']['case']): number[] {
  return radio.sent.filter((each) => each.variant === variant).map(({ at }) => at / 1000)
}

describe('the timing of a link', () => {
  it('backs off from 1 s, doubled up to 60 s', () => {
    const radio = createRadio()
    radio.link.start()
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      const before = radio.opened.length
      radio.close('the radio refuses connections')
      radio.clock.advance(seconds * 1000 - 1)
      expect(radio.opened).toHaveLength(before)
      radio.clock.advance(1)
      expect(radio.opened).toHaveLength(before + 1)
    }
  })

  it('varies that by up to a quarter either way', () => {
    const delayWith = (random: number) => {
      const radio = createRadio(() => random)
      radio.link.start()
      radio.close('')
      radio.clock.advance(2000)
      return radio.opened[1]
    }
    expect([delayWith(0), delayWith(0.5), delayWith(0.999)]).toStrictEqual([750, 1000, 1249.5])
  })

  it('gives the stream ten seconds to open and destroys it before the next try', () => {
    const radio = createRadio()
    radio.link.start()
    radio.clock.advance(9999)
    expect(radio.link.info().state).toBe('connecting')
    radio.clock.advance(1)
    expect(radio.link.info()).toMatchObject({ state: 'waiting', reason: 'the radio does not answer' })
    expect(radio.destroyed()).toBe(1)
    radio.clock.advance(1000)
    expect(radio.opened).toHaveLength(2)
  })

  it('asks for the configuration again after 30 s and reconnects after 60 s', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    radio.clock.advance(59_999)
    expect(timesOf(radio, 'wantConfigId')).toStrictEqual([0, 30])
    expect(radio.link.info().state).toBe('handshake')
    radio.clock.advance(1)
    expect(radio.link.info()).toMatchObject({ state: 'waiting', reason: 'the handshake has stalled' })
  })

  it('waits as long as a big node database needs, but not for live traffic', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    const [, , , node = new Uint8Array(0)] = smallHandshake(1)
    for (let count = 0; count < 20; count += 1) {
      radio.clock.advance(29_000)
      radio.say(node)
    }
    expect(timesOf(radio, 'wantConfigId')).toStrictEqual([0])
    for (let count = 0; count < 6; count += 1) {
      radio.clock.advance(10_000)
      radio.say(queueStatus())
    }
    expect(radio.link.info()).toMatchObject({ state: 'waiting', reason: 'the handshake has stalled' })
  })

  it('reconnects when the radio begins each handshake and ends none', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    const [begin = new Uint8Array(0)] = smallHandshake(1)
    radio.say(begin)
    radio.clock.advance(30_000)
    radio.say(begin)
    radio.clock.advance(29_999)
    expect(radio.link.info().state).toBe('handshake')
    radio.clock.advance(1)
    expect(radio.link.info()).toMatchObject({ state: 'waiting', reason: 'the handshake has stalled' })
    expect(timesOf(radio, 'wantConfigId')).toStrictEqual([0, 30])
    radio.clock.advance(1000)
    expect(radio.opened).toHaveLength(2)
  })

  it('never takes other frames for progress of a handshake', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    for (let count = 0; count < 6; count += 1) {
      radio.clock.advance(10_000)
      radio.say(fromRadio({ case: 'clientNotification', value: { message: 'Duty cycle' } }))
    }
    expect(radio.link.info().state).toBe('waiting')
  })

  it('backs off further from a radio that is lost within a minute each time', () => {
    const radio = createRadio()
    radio.link.start()
    for (const pauseMs of [1000, 2000, 4000]) {
      radio.open()
      radio.completeHandshake()
      radio.clock.advance(59_999)
      radio.close('the radio closed the connection')
      const { length } = radio.opened
      radio.clock.advance(pauseMs - 1)
      expect(radio.opened).toHaveLength(length)
      radio.clock.advance(1)
      expect(radio.opened).toHaveLength(length + 1)
    }
  })

  it('sends a heartbeat at once and every 60 s', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    radio.clock.advance(5000)
    radio.completeHandshake()
    for (let count = 0; count < 6; count += 1) {
      radio.clock.advance(30_000)
      radio.say(queueStatus())
    }
    expect(timesOf(radio, 'heartbeat')).toStrictEqual([5, 65, 125, 185])
    expect(radio.link.info()).toMatchObject({ state: 'connected', since: START + 5000, lastFrameAt: START + 185_000 })
  })

  it('calls a link dead after 150 s without a frame', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    radio.completeHandshake()
    radio.clock.advance(149_999)
    expect(radio.link.info().state).toBe('connected')
    radio.clock.advance(1)
    expect(radio.link.info()).toMatchObject({ state: 'waiting', reason: 'the radio has gone silent' })
  })

  it('does not take two losses far apart for another client, and starts at 1 s again', () => {
    const radio = createRadio()
    radio.link.start()
    for (let count = 0; count < 4; count += 1) {
      radio.open()
      radio.completeHandshake()
      radio.clock.advance(60_000)
      radio.close('the radio closed the connection')
      expect(radio.link.info().state).toBe('waiting')
      radio.clock.advance(1000)
    }
    expect(radio.opened).toStrictEqual([0, 61_000, 122_000, 183_000, 244_000])
  })

  it('tries again 15, 30 and 60 s after two disconnections, and is patient again once it holds the radio', () => {
    const radio = createRadio()
    radio.link.start()
    const loseAfter = (ms: number) => {
      radio.open()
      radio.completeHandshake()
      radio.clock.advance(ms)
      radio.close('the radio closed the connection')
      return radio.link.info().state
    }
    expect(loseAfter(5000)).toBe('waiting')
    radio.clock.advance(1000)
    expect(loseAfter(5000)).toBe('busy')
    for (const [losses, seconds] of [15, 30, 60, 60].entries()) {
      radio.clock.advance(seconds * 1000 - 1)
      expect(radio.opened).toHaveLength(losses + 2)
      radio.clock.advance(1)
      expect(loseAfter(5000)).toBe('busy')
    }
    radio.clock.advance(60_000)
    expect(loseAfter(40_000)).toBe('waiting')
  })

  it('shows a radio that is away after saved settings as restarting, for three minutes', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    radio.completeHandshake()
    radio.link.expectRestart()
    radio.close('the radio closed the connection')
    const states: string[] = []
    for (let count = 0; count < 30; count += 1) {
      radio.clock.advance(10_000)
      radio.close('the radio refuses connections')
      states.push(radio.link.info().state)
    }
    expect(new Set(states.slice(0, 18))).toStrictEqual(new Set(['restarting']))
    expect(states.at(-1)).toBe('waiting')
  })

  it('starts at 1 s again after each restart that was requested', () => {
    const radio = createRadio()
    radio.link.start()
    for (let count = 0; count < 4; count += 1) {
      radio.open()
      radio.completeHandshake()
      radio.clock.advance(1000)
      radio.link.expectRestart()
      radio.close('the radio closed the connection')
      radio.clock.advance(1000)
      radio.close('the radio refuses connections')
      radio.clock.advance(2000)
    }
    expect(radio.opened.map((at) => at / 1000)).toStrictEqual([0, 2, 4, 6, 8, 10, 12, 14, 16])
  })

  it('does nothing more once it is stopped', () => {
    const radio = createRadio()
    radio.link.start()
    radio.open()
    radio.completeHandshake()
    radio.link.stop()
    const before = radio.sent.length
    radio.clock.advance(1_000_000)
    expect(radio.sent).toHaveLength(before)
    expect(radio.opened).toHaveLength(1)
    expect(radio.destroyed()).toBe(1)
  })
})
