import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { createFrameDecoder, encodeFrame } from '../../src/meshtastic/link/framing.ts'
import { ToRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import { encodeText } from '../../src/meshtastic/link/to-radio.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { systemClock } from '../../src/node/clock.ts'
import type { Connect } from '../../src/node/radio/connection.ts'
import { createLink } from '../../src/node/radio/link.ts'
import { fromRadio, queueStatus, type RadioDevice, startRadioDevice } from '../support/radio/device.ts'
import { FILLER } from '../support/radio/hostile.ts'
import { readRadio } from '../support/radio/recorded.ts'
import { type WatchedLink, watchLink } from '../support/radio/watched-link.ts'

/** The way to a radio on loopback. */
export type RadioWay = {
  readonly connect: Connect
  /** The radio is gone, and back. */
  unplug(): Promise<void>
  plug(): Promise<void>
  /** Resolves when nothing of the service has it open any more. */
  untilClosed(): Promise<void>
  stop(): Promise<void>
}

/** A moment after the recordings. */
const clock = { ...systemClock, now: () => Date.UTC(2026, 10, 21, 13) }

const QUICK = { backoffFirstMs: 2, backoffMaxMs: 4 }

/** A text that says that everything before has arrived. */
function textPayload(text: string): Uint8Array {
  const decoded = { portnum: 1, payload: new TextEncoder().encode(text) } as const
  const value = {
    from: 5,
    to: BROADCAST,
    id: 9,
    rxRssi: -80,
    payloadVariant: { case: 'decoded', value: decoded },
  } as const
  return fromRadio({ case: 'packet', value })
}

const untilText = (link: WatchedLink, text: string) =>
  link.untilEvent(
    (event) => event.type === 'packet' && event.packet.payload.kind === 'text' && event.packet.payload.text === text,
  )

/** What the radio said, without its answers to what the link sends by itself, and the nonce, which is random. */
const saidBy = (link: WatchedLink) =>
  link.received
    .filter(({ event }) => event.type !== 'queue-status')
    .map((each) => (each.event.type === 'config-complete' ? 'complete' : each))

/** A radio in this process that says the same. */
function connectInMemory(handshake: (nonce: number) => readonly Uint8Array[], more: readonly Uint8Array[]): Connect {
  return (events) => {
    const decoder = createFrameDecoder((payload) => fromBinary(ToRadioSchema, payload))
    queueMicrotask(() => events.onOpen())
    return {
      write(bytes) {
        for (const { message } of decoder.push(bytes, 0)) {
          if (message.payloadVariant.case !== 'wantConfigId') continue
          const said = [...handshake(message.payloadVariant.value), ...more]
          queueMicrotask(() => said.forEach((payload) => events.onData(encodeFrame(payload))))
        }
      },
      destroy() {},
    }
  }
}

/** What every way to a radio must do. */
export function radioTransportContract(
  name: string,
  { open, gone }: { open(device: RadioDevice): Promise<RadioWay>; readonly gone: RegExp },
): void {
  describe(`a radio by ${name}`, () => {
    const endings: (() => unknown)[] = []
    afterEach(async () => {
      for (const end of endings.splice(0).toReversed()) await end()
    })
    const start = (connect: Connect): WatchedLink => {
      const link = watchLink((events) =>
        createLink({ name: 'radio', kind: 'tcp', connect, clock, timings: QUICK, ...events }),
      )
      endings.push(() => link.stop())
      link.start()
      return link
    }
    const begin = async (handshake?: (nonce: number) => readonly Uint8Array[]) => {
      const device = await startRadioDevice(handshake === undefined ? {} : { handshake })
      endings.push(() => device.stop())
      const way = await open(device)
      endings.push(() => way.stop())
      return { device, way, link: start(way.connect) }
    }

    it.each(['node-B', 'node-C'])('says of the recording of %s what is in it', async (source) => {
      const { handshake, packets } = readRadio(source)
      const end = textPayload('the end')
      const { device, link } = await begin(handshake)
      await link.until('connected')
      device.send(...packets, end)
      await untilText(link, 'the end')
      const expected = start(connectInMemory(handshake, [...packets, end]))
      await untilText(expected, 'the end')
      expect(saidBy(link)).toStrictEqual(saidBy(expected))
      expect(saidBy(link).length).toBeGreaterThan(packets.length)
    })

    it('brings a text to the radio as it was sent', async () => {
      const { device, link } = await begin()
      await link.until('connected')
      const text = encodeText({
        to: BROADCAST,
        channel: 0,
        id: 77,
        hopLimit: 3,
        wantAck: true,
        text: 'Grüße Ã\u0094 🦉',
      })
      expect(link.send(text)).toBe(true)
      expect(toBinary(ToRadioSchema, await device.next('packet'))).toStrictEqual(text)
    })

    it('is back after the radio was away', async () => {
      const { device, way, link } = await begin()
      await link.until('connected')
      await way.unplug()
      expect((await link.until('waiting')).reason).toMatch(gone)
      await way.plug()
      const again = await link.until('connected')
      expect(again.reason).toBeNull()
      device.send(textPayload('back again'))
      await untilText(link, 'back again')
    })

    it('leaves nothing open when it is closed', async () => {
      const { way, link } = await begin()
      await link.until('connected')
      const closed = way.untilClosed()
      link.stop()
      await closed
      expect(link.info()).toMatchObject({ state: 'stopped', reason: null })
    })

    it('may be closed at once', async () => {
      const { way, link } = await begin()
      link.stop()
      expect(link.info().state).toBe('stopped')
      const next = start(way.connect)
      await next.until('connected')
      expect(link.states.map(({ state }) => state)).toStrictEqual(['connecting', 'stopped'])
    })

    it('hears everything in a flood, between debug text and half frames', async () => {
      const { device, link } = await begin()
      await link.until('connected')
      const count = 2000
      for (let index = 0; index < count; index += 1) {
        if (index % 100 === 0) device.sendRaw(encodeFrame(textPayload('half')).subarray(0, 9))
        if (index % 100 === 0) device.sendRaw(FILLER)
        device.send(queueStatus(index))
      }
      device.send(textPayload('after the flood'))
      await untilText(link, 'after the flood')
      const heard = link.received.filter(({ event }) => event.type === 'queue-status' && event.packetId !== null)
      expect(heard).toHaveLength(count - 1)
      expect(link.info()).toMatchObject({ state: 'connected', reconnects: 0 })
    })

    it('hears a frame that comes byte by byte', async () => {
      const { device, link } = await begin()
      await link.until('connected')
      for (const byte of encodeFrame(textPayload('slowly'))) device.sendRaw(Uint8Array.of(byte))
      await untilText(link, 'slowly')
    })
  })
}
