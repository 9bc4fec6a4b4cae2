import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { numberChannel } from '../../../src/meshtastic/channel-identity.ts'
import { applyChannelKey, expandPsk, hashChannel } from '../../../src/meshtastic/crypto/channel.ts'
import { DataSchema, type MeshPacket, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { type ChannelKey, DEFAULT_CHANNEL_KEY } from '../../../src/meshtastic/link/mqtt-envelope.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { createUdpLink, MULTICAST, type UdpLinkOptions } from '../../../src/node/radio/udp/udp.ts'
import { textPacket } from '../../support/mesh/mesh.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { type WatchedLink, watchLink } from '../../support/radio/watched-link.ts'

const LONG_FAST: ChannelKey = { ...DEFAULT_CHANNEL_KEY, name: 'LongFast' }
const CLUB: ChannelKey = { name: 'club', key: expandPsk(Uint8Array.from({ length: 32 }, (_, index) => index + 1)) }

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** A network within this machine, with radios that send to it. */
async function openNetwork() {
  const port = await freePort()
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  socket.setMulticastInterface('127.0.0.1')
  endings.push(() => socket.close())
  const send = (bytes: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      socket.send(bytes, port, MULTICAST.group, (error) => (error === null ? resolve() : reject(error)))
    })
  const listen = async (options: Partial<UdpLinkOptions> = {}): Promise<WatchedLink> => {
    const timings = { backoffFirstMs: 2, backoffMaxMs: 4 }
    const link = watchLink((events) =>
      createUdpLink({ name: 'udp', keys: [], port, localAddress: '127.0.0.1', timings, ...events, ...options }),
    )
    endings.push(() => link.stop())
    link.start()
    await link.until('connected')
    return link
  }
  return { send, listen, sendPacket: async (packet: MeshPacket, key = LONG_FAST) => send(await close(packet, key)) }
}

/** The packet as a radio sends it: encrypted. */
async function close(packet: MeshPacket, { name, key }: ChannelKey): Promise<Uint8Array> {
  const { case: variant, value } = packet.payloadVariant
  if (variant !== 'decoded') throw new TypeError('not a decoded packet')
  const encrypted = await applyChannelKey(key, packet, toBinary(DataSchema, value))
  const closed = {
    ...packet,
    channel: hashChannel(name, key),
    payloadVariant: { case: 'encrypted', value: encrypted },
  } as const
  return toBinary(MeshPacketSchema, create(MeshPacketSchema, closed))
}

const untilPacket = (link: WatchedLink, id: number) =>
  link.untilEvent((event) => event.type === 'packet' && event.packet.id === id)

describe('the mesh by UDP', () => {
  it('is read with the default key and the known ones, and names their channels', async () => {
    const { listen, sendPacket } = await openNetwork()
    const link = await listen({ keys: [CLUB] })
    await sendPacket(textPacket(1, 'to all'))
    await sendPacket(textPacket(2, 'to the club'), CLUB)
    await sendPacket(textPacket(3, 'to others'), { name: 'secret', key: expandPsk(new Uint8Array(16).fill(9)) })
    await untilPacket(link, 3)
    const texts = link.received.map(({ event }) =>
      event.type === 'packet' ? [event.packet.channel, event.packet.payload.kind] : event.type,
    )
    const channelOf = ({ name, key }: ChannelKey) => numberChannel(`${hashChannel(name, key)}:${name}`)
    expect(texts).toStrictEqual([
      'channel',
      [channelOf(LONG_FAST), 'text'],
      'channel',
      [channelOf(CLUB), 'text'],
      [expect.any(Number), 'encrypted'],
    ])
    expect(link.info()).toMatchObject({ kind: 'udp', state: 'connected', radio: null })
    expect(link.info().lastFrameAt).toBeGreaterThan(0)
  })

  it('says nothing of signal, hops and time, whatever the sender claims', async () => {
    const { listen, sendPacket } = await openNetwork()
    const link = await listen()
    const claims = { rxRssi: -20, rxSnr: 12, rxTime: 1_700_000_000, hopStart: 3, hopLimit: 3, xeddsaSigned: true }
    await sendPacket({ ...textPacket(1, 'I am your radio'), ...claims, publicKey: new Uint8Array(32).fill(1) })
    const { event } = await untilPacket(link, 1)
    expect(event).toMatchObject({
      replayed: false,
      packet: {
        snr: null,
        rssi: null,
        rxTime: null,
        hopsAway: null,
        pkiEncrypted: false,
        publicKey: null,
        isVerifiedByRadio: false,
        viaMqtt: false,
        transport: 'TRANSPORT_MULTICAST_UDP',
      },
    })
    expect(event).not.toHaveProperty('gateway')
  })

  it('opens direct messages to a radio whose key is known', async () => {
    const { listen, send } = await openNetwork()
    const { payloadVariant } = textPacket(1, 'only for you')
    if (payloadVariant.case !== 'decoded') throw new Error('not decoded')
    const data = toBinary(DataSchema, payloadVariant.value)
    const publicKey = new Uint8Array(32).fill(7)
    const sealed = Uint8Array.of(9, 9, 9)
    const link = await listen({
      openDirect: async ({ to }, bytes) => (to === 0x77 && bytes.length === 3 ? { data, publicKey } : null),
    })
    const packet = { from: 5, to: 0x77, id: 8, payloadVariant: { case: 'encrypted', value: sealed } } as const
    await send(toBinary(MeshPacketSchema, create(MeshPacketSchema, packet)))
    expect((await untilPacket(link, 8)).event).toMatchObject({
      packet: { pkiEncrypted: true, payload: { kind: 'text', text: 'only for you' } },
    })
  })

  it.each([
    ['noise', Uint8Array.of(0x94, 0xc3, 0xff, 1, 2)],
    ['nothing', new Uint8Array(0)],
    ['more than a packet', new Uint8Array(2000).fill(0x0a)],
    ['a packet that is not encrypted', toBinary(MeshPacketSchema, textPacket(7, 'in clear'))],
    [
      'a packet of nobody',
      toBinary(
        MeshPacketSchema,
        create(MeshPacketSchema, {
          from: 0,
          to: 1,
          id: 7,
          payloadVariant: { case: 'encrypted', value: Uint8Array.of(1) },
        }),
      ),
    ],
    [
      'a packet of all',
      toBinary(
        MeshPacketSchema,
        create(MeshPacketSchema, {
          from: BROADCAST,
          to: 1,
          id: 7,
          payloadVariant: { case: 'encrypted', value: Uint8Array.of(1) },
        }),
      ),
    ],
  ])('does not take %s', async (_name, bytes) => {
    const { listen, send, sendPacket } = await openNetwork()
    const link = await listen()
    await send(bytes)
    await sendPacket(textPacket(99, 'the end'))
    await untilPacket(link, 99)
    expect(link.received.flatMap(({ event }) => (event.type === 'packet' ? event.packet.id : []))).toStrictEqual([99])
  })

  it('keeps a flood out of memory while its events wait', async () => {
    const { listen, sendPacket } = await openNetwork()
    const { promise: blocked, resolve: goOn } = Promise.withResolvers<void>()
    const taken: number[] = []
    const link = await listen({
      async onFrames(batch) {
        taken.push(...batch.flatMap(({ event }) => (event.type === 'packet' ? event.packet.id : [])))
        await blocked
      },
    })
    for (let id = 1; id <= 2000; id += 1) await sendPacket(textPacket(id, 'flood'))
    await expect.poll(() => link.info().lastFrameAt).not.toBeNull()
    goOn()
    await sendPacket(textPacket(5000, 'after the flood'))
    await expect.poll(() => sendPacket(textPacket(5000, 'after the flood')).then(() => taken.includes(5000))).toBe(true)
    expect(taken.length).toBeLessThan(600)
    expect(taken.slice(0, 3)).toStrictEqual([1, 2, 3])
  })

  it('is silent once it is stopped', async () => {
    const { listen, sendPacket } = await openNetwork()
    const link = await listen()
    link.stop()
    const witness = await listen()
    await sendPacket(textPacket(1, 'into the void'))
    await untilPacket(witness, 1)
    expect(link.received).toStrictEqual([])
    expect(link.info()).toMatchObject({ state: 'stopped', reason: null })
    expect(link.send(new Uint8Array(0))).toBe(false)
  })

  it('says why it cannot listen, and tries again', async () => {
    const { listen } = await openNetwork()
    void listen
    const link = watchLink((events) =>
      createUdpLink({
        name: 'udp',
        keys: [],
        localAddress: '192.0.2.1',
        timings: { backoffFirstMs: 2, backoffMaxMs: 4 },
        ...events,
      }),
    )
    endings.push(() => link.stop())
    link.start()
    expect((await link.until('waiting')).reason).toMatch(/^no network accepts multicast/)
    await link.until('waiting')
  })
})
