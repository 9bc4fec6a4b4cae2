import { create } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { type MeshPacket, MeshPacketSchema } from '../../src/meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { encodeHeartbeat } from '../../src/meshtastic/link/to-radio.ts'
import type { Link } from '../../src/node/radio/link.ts'
import type { LinkKind } from '../../src/shared/mesh/link-kinds.ts'
import { type LinkEvents, type WatchedLink, watchLink } from '../support/radio/watched-link.ts'

/** The peer that a link listens to. */
export type LinkPeer = {
  /** Sends a packet to the connected link. */
  send(packet: MeshPacket): void | Promise<void>
  /** Sends it bytes that are not a packet. */
  sendNoise(bytes: Uint8Array): void | Promise<void>
  hangUp(): void
  stop(): Promise<void>
}

export type LinkMaker = {
  /** What it says after the peer hung up, and where there is no peer. */
  readonly lost?: RegExp
  readonly lonely?: RegExp
  readonly startPeer: () => Promise<{ readonly peer: LinkPeer; readonly makeLink: (events: LinkEvents) => Link }>
  /** A link to a port where nothing listens. */
  readonly makeLonelyLink: (events: LinkEvents) => Link
}

const TEXT_COUNT = 300

function textPacket(id: number, text: string): MeshPacket {
  const payload = new TextEncoder().encode(text)
  return create(MeshPacketSchema, {
    from: 0xa0cb0777,
    to: BROADCAST,
    id,
    rxTime: 1_780_000_000,
    rxSnr: 5.25,
    rxRssi: -91,
    hopStart: 5,
    hopLimit: 3,
    payloadVariant: { case: 'decoded', value: { portnum: PortNum.TEXT_MESSAGE_APP, payload } },
  })
}

function textsOf(link: WatchedLink): string[] {
  return link.received.flatMap(({ event }) =>
    event.type === 'packet' && event.packet.payload.kind === 'text' ? [event.packet.payload.text] : [],
  )
}

function untilText(link: WatchedLink, text: string) {
  return link.untilEvent(
    (event) => event.type === 'packet' && event.packet.payload.kind === 'text' && event.packet.payload.text === text,
  )
}

/** What each kind of link must do. Its back-off is a few milliseconds. */
export function radioLinkContract(
  name: string,
  kind: LinkKind,
  {
    startPeer,
    makeLonelyLink,
    lost = /^the (radio|broker) (closed|reset) the connection$/,
    lonely = /^the (radio|broker) refuses connections$/,
  }: LinkMaker,
): void {
  describe(`radio link: ${name}`, () => {
    const endings: (() => void | Promise<void>)[] = []
    afterEach(async () => {
      for (const end of endings.splice(0).toReversed()) await end()
    })
    const watch = (make: (events: LinkEvents) => Link) => {
      const link = watchLink(make)
      endings.push(() => link.stop())
      return link
    }
    const connect = async () => {
      const { peer, makeLink } = await startPeer()
      endings.push(() => peer.stop())
      const link = watch(makeLink)
      link.start()
      await link.until('connected')
      return { peer, link }
    }

    it('does nothing until it is started, then connects and reports it', async () => {
      const { peer, makeLink } = await startPeer()
      endings.push(() => peer.stop())
      const link = watch(makeLink)
      expect(link.info()).toMatchObject({ kind, state: 'stopped', lastFrameAt: null, reconnects: 0, reason: null })
      link.start()
      link.start()
      const connected = await link.until('connected')
      expect(connected).toMatchObject({ kind, state: 'connected', reconnects: 0, reason: null })
      expect(link.states.filter(({ state }) => state === 'connecting')).toHaveLength(1)
    })

    it('passes on the content of a packet, and the time of the last one', async () => {
      const { peer, link } = await connect()
      await peer.send(textPacket(77, 'Grüße 🦉'))
      const { event, raw } = await untilText(link, 'Grüße 🦉')
      expect(event).toMatchObject({
        type: 'packet',
        replayed: false,
        packet: {
          from: 0xa0cb0777,
          to: BROADCAST,
          id: 77,
          snr: 5.25,
          rssi: -91,
          hopsAway: 2,
          viaMqtt: kind === 'mqtt',
        },
      })
      expect(raw).not.toBeNull()
      expect(link.info().lastFrameAt).toBeGreaterThan(0)
    })

    it('loses none of a burst and keeps its order', async () => {
      const { peer, link } = await connect()
      const texts = Array.from({ length: TEXT_COUNT }, (_, index) => `burst ${index}`)
      for (const [index, text] of texts.entries()) await peer.send(textPacket(1000 + index, text))
      await untilText(link, `burst ${TEXT_COUNT - 1}`)
      expect(textsOf(link)).toStrictEqual(texts)
    })

    it('continues after noise', async () => {
      const { peer, link } = await connect()
      await peer.sendNoise(Uint8Array.from([0x94, 0xc3, 0x00, 0x02, 0xff, 0xff, 0x0a, 0x05]))
      await peer.sendNoise(new TextEncoder().encode('{"text": "no packet"} — \u001b[0m'))
      await peer.send(textPacket(5, 'after the noise'))
      await untilText(link, 'after the noise')
      expect(textsOf(link)).toStrictEqual(['after the noise'])
      expect(link.info().state).toBe('connected')
    })

    it('reports why it lost its peer, and reconnects', async () => {
      const { peer, link } = await connect()
      peer.hangUp()
      const waiting = await link.until('waiting')
      expect(waiting.reason).toMatch(lost)
      const again = await link.until('connected')
      expect(again).toMatchObject({ reconnects: 1, reason: null })
      await peer.send(textPacket(6, 'back again'))
      expect((await untilText(link, 'back again')).event.type).toBe('packet')
    })

    it('keeps trying while nothing listens', async () => {
      const link = watch(makeLonelyLink)
      link.start()
      for (let tries = 0; tries < 3; tries += 1) {
        expect((await link.until('waiting')).reason).toMatch(lonely)
      }
      expect(link.info().reconnects).toBe(0)
    })

    it('is silent once it is stopped, also while it connects', async () => {
      const { peer, link } = await connect()
      link.stop()
      expect(link.info()).toMatchObject({ state: 'stopped', reason: null })
      const told = link.states.length
      const { makeLink } = await startPeer().then((other) => {
        endings.push(() => other.peer.stop())
        return other
      })
      const early = watch(makeLink)
      early.start()
      early.stop()
      await peer.send(textPacket(8, 'into the void'))
      const witness = watch(makeLink)
      witness.start()
      await witness.until('connected')
      expect(textsOf(link)).toStrictEqual([])
      expect(link.states).toHaveLength(told)
      expect(early.states.map(({ state }) => state)).toStrictEqual(['connecting', 'stopped'])
    })

    it('refuses to send while it is not connected', async () => {
      const { link } = await connect()
      link.stop()
      expect(link.send(encodeHeartbeat())).toBe(false)
    })
  })
}
