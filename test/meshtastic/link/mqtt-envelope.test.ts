import { createCipheriv } from 'node:crypto'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { applyChannelKey, expandPsk, hashChannel } from '../../../src/meshtastic/crypto/channel.ts'
import { numberChannel } from '../../../src/meshtastic/channel-identity.ts'
import { parseChannelKey, parsePrivateKey } from '../../../src/meshtastic/config/configured-keys.ts'
import { decodeDecrypted } from '../../../src/meshtastic/crypto/decrypted-data.ts'
import { ServiceEnvelopeSchema } from '../../../src/meshtastic/gen/mqtt_pb.ts'
import { DataSchema, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import {
  type ChannelKey,
  decodeEnvelope,
  DEFAULT_CHANNEL_KEY,
  openEnvelope,
  parseMqttTopic,
} from '../../../src/meshtastic/link/mqtt-envelope.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { createDirectOpener } from '../../../src/node/radio/sending/direct-messages.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'

const DEFAULT_KEY = Buffer.from('1PG7OiApB1nwvP+rz05pAQ==', 'base64')
const NONCE = { id: 0xfedcba98, from: 0xa0cb0001 }

const bytes = (text: string) => new TextEncoder().encode(text)
const data = (init: MessageInitShape<typeof DataSchema>) => toBinary(DataSchema, create(DataSchema, init))
const textData = (text: string) => data({ portnum: PortNum.TEXT_MESSAGE_APP, payload: bytes(text) })

/** The encryption of `plain` by another implementation of the cipher. */
function encrypt(key: Uint8Array, plain: Uint8Array, { id, from } = NONCE): Uint8Array {
  const counter = Buffer.alloc(16)
  counter.writeUInt32LE(id, 0)
  counter.writeUInt32LE(from, 8)
  return Uint8Array.from(createCipheriv(key.length === 16 ? 'aes-128-ctr' : 'aes-256-ctr', key, counter).update(plain))
}

describe('expandPsk', () => {
  it.each([
    ['', ''],
    ['00', ''],
    ['01', 'd4f1bb3a20290759f0bcffabcf4e6901'],
    ['02', 'd4f1bb3a20290759f0bcffabcf4e6902'],
    ['ff', 'd4f1bb3a20290759f0bcffabcf4e69ff'],
    ['aabb', 'aabb0000000000000000000000000000'],
    ['11'.repeat(16), '11'.repeat(16)],
    ['22'.repeat(17), `${'22'.repeat(17)}${'00'.repeat(15)}`],
    ['33'.repeat(32), '33'.repeat(32)],
  ])('%s becomes %s', (psk, key) => {
    expect(Buffer.from(expandPsk(Buffer.from(psk, 'hex'))).toString('hex')).toBe(key)
  })

  it('refuses more than 32 bytes', () => {
    expect(() => expandPsk(new Uint8Array(33))).toThrow(RangeError)
  })
})

describe('hashChannel', () => {
  it.each([
    ['LongFast', DEFAULT_KEY, 8],
    ['', Buffer.alloc(0), 0],
    ['admin', Buffer.alloc(0), 0x61 ^ 0x64 ^ 0x6d ^ 0x69 ^ 0x6e],
    ['ä', Buffer.from([1, 2]), 0xc3 ^ 0xa4 ^ 3],
  ])('the channel %j has the hash of its name and key', (name, key, hash) => {
    expect(hashChannel(name, key)).toBe(hash)
  })
})

describe('applyChannelKey', () => {
  it.each([DEFAULT_KEY, Buffer.alloc(32, 7)])('decrypts what another implementation encrypted', async (key) => {
    const plain = bytes('longer than one block of the cipher, so that the counter counts')
    const opened = await applyChannelKey(Uint8Array.from(key), NONCE, encrypt(key, plain))
    expect(opened).toStrictEqual(plain)
  })

  it('leaves the bytes of a channel without a key unchanged', async () => {
    expect(await applyChannelKey(new Uint8Array(0), NONCE, Uint8Array.of(1, 2))).toStrictEqual(Uint8Array.of(1, 2))
  })
})

describe('decodeDecrypted', () => {
  const user = toBinary(UserSchema, create(UserSchema, { longName: 'Far Hill', shortName: 'FH' }))

  it.each([
    ['a text', textData('hi')],
    ['a node info', data({ portnum: PortNum.NODEINFO_APP, payload: user })],
    ['an empty position, a request', data({ portnum: PortNum.POSITION_APP, wantResponse: true })],
    ['a port unknown to us', data({ portnum: PortNum.PRIVATE_APP, payload: Uint8Array.of(255) })],
    ['a field that a newer firmware added', Uint8Array.from([...textData('hi'), 0x58, 1])],
  ])('accepts %s', (_what, plain) => {
    expect(decodeDecrypted(plain)).not.toBeNull()
  })

  it.each([
    ['nothing', new Uint8Array(0)],
    ['an unknown port', Uint8Array.of(0x08, 0xc8, 0x01, 0x12, 2, 0x68, 0x69)],
    ['port 0', data({ payload: bytes('hi') })],
    ['a text that is not UTF-8', data({ portnum: 1, payload: Uint8Array.of(0x68, 0xff) })],
    ['an empty text', data({ portnum: 1 })],
    ['a port of the wrong wire type', Uint8Array.of(0x0d, 1, 0, 0, 0)],
    ['a request id of the wrong wire type', Uint8Array.from([...textData('hi'), 0x30, 1])],
    ['a repeated field', Uint8Array.from([...textData('hi'), 0x08, 1])],
    ['a field far above ours', Uint8Array.from([...textData('hi'), 0xf8, 0x07, 1])],
    ['a group', Uint8Array.from([...textData('hi'), 0x5b, 0x5c])],
    ['a cut payload', textData('hello').slice(0, -1)],
    ['a payload of the wrong wire type', data({ portnum: PortNum.NODEINFO_APP, payload: Uint8Array.of(0x10, 1) })],
    ['a payload that does not decode', data({ portnum: PortNum.TELEMETRY_APP, payload: Uint8Array.of(0x12, 9) })],
  ])('rejects %s', (_what, plain) => {
    expect(decodeDecrypted(plain)).toBeNull()
  })

  it('rejects all of 20,000 packets decrypted with a wrong key', async () => {
    const random = createSeededRandom(5)
    const noise = () => Uint8Array.from({ length: 8 + Math.floor(random() * 60) }, () => Math.floor(random() * 256))
    expect(Array.from({ length: 20_000 }, noise).filter((each) => decodeDecrypted(each) !== null)).toStrictEqual([])
  })
})

describe('parseMqttTopic', () => {
  it.each([
    ['msh/EU_868/2/e/LongFast/!a0cb0001', { kind: 'packet', channelName: 'LongFast', gateway: 0xa0cb0001 }],
    ['msh/2/c/LongFast/!a0cb0001', { kind: 'packet', channelName: 'LongFast', gateway: 0xa0cb0001 }],
    ['2/e/PKI/!00000001', { kind: 'packet', channelName: 'PKI', gateway: 1 }],
    ['msh/2/e/LongFast/!ffffffff', { kind: 'packet', channelName: 'LongFast', gateway: null }],
    ['msh/2/e/LongFast/!00000000', { kind: 'packet', channelName: 'LongFast', gateway: null }],
    ['my/own/root/2/e/a/b/^all', { kind: 'packet', channelName: 'a/b', gateway: null }],
    ['msh/EU_868/2/map/', { kind: 'map', channelName: '', gateway: null }],
    ['msh/EU_868/2/map', { kind: 'map', channelName: '', gateway: null }],
    ['msh/EU_868/2/json/LongFast/!a0cb0001', null],
    ['msh/EU_868/2/stat/!a0cb0001', null],
    ['msh/EU_868/12/e/LongFast/!a0cb0001', null],
    ['msh/EU_868/2/e/!a0cb0001', null],
    ['', null],
  ])('reads the topic %j', (topic, parsed) => {
    expect(parseMqttTopic(topic)).toStrictEqual(parsed)
  })
})

const TOPIC = { kind: 'packet', channelName: 'LongFast', gateway: 0xb } as const

describe('decodeEnvelope', () => {
  const packet = { from: 5, to: BROADCAST, id: 9, payloadVariant: { case: 'encrypted', value: bytes('x') } } as const
  const envelope = (init: MessageInitShape<typeof ServiceEnvelopeSchema>) =>
    decodeEnvelope(TOPIC, toBinary(ServiceEnvelopeSchema, create(ServiceEnvelopeSchema, init)))

  it('takes channel and gateway from the envelope', () => {
    expect(envelope({ packet, channelId: 'Club', gatewayId: '!0000000c' })).toMatchObject({
      packet: { from: 5, id: 9 },
      channelName: 'Club',
      gateway: 0xc,
    })
  })

  it('takes them from the topic when the envelope has none', () => {
    expect(envelope({ packet })).toMatchObject({ channelName: 'LongFast', gateway: 0xb })
  })

  it.each([
    ['without packet', {}],
    ['without sender', { packet: { ...packet, from: 0 } }],
    ['with an empty packet', { packet: { from: 5 } }],
    ['longer than any packet', { packet, channelId: 'x'.repeat(1025) }],
  ])('refuses one %s', (_what, init) => {
    expect(envelope(init)).toBeNull()
  })

  it('refuses JSON and noise', () => {
    expect(decodeEnvelope(TOPIC, bytes('{"from":5,"payload":{"text":"hi"}}'))).toBeNull()
    expect(decodeEnvelope(TOPIC, Uint8Array.of(0x0a, 200, 1))).toBeNull()
  })
})

describe('openEnvelope', () => {
  const CLUB: ChannelKey = { name: 'Club', key: Uint8Array.from(Buffer.alloc(32, 9)) }
  const closed = async () => null
  const send = (key: Uint8Array, channelName: string, plain: Uint8Array) => ({
    packet: create(MeshPacketSchema, {
      ...NONCE,
      to: BROADCAST,
      channel: hashChannel(channelName, key),
      payloadVariant: { case: 'encrypted', value: encrypt(key, plain) },
    }),
    channelName,
    gateway: 1,
  })

  it('decrypts packets of a channel with a configured key, and of any channel with the default key', async () => {
    for (const envelope of [send(CLUB.key, 'Club', textData('hi')), send(DEFAULT_KEY, 'Anything', textData('hi'))]) {
      const packet = await openEnvelope(envelope, [CLUB, DEFAULT_CHANNEL_KEY], closed)
      expect(packet.payloadVariant).toMatchObject({ case: 'decoded', value: { portnum: 1, payload: bytes('hi') } })
      expect(packet.channel).toBe(numberChannel(`${envelope.packet.channel}:${envelope.channelName}`))
    }
  })

  it('tries all keys of the same hash', async () => {
    // The same bytes in another order have the same xor.
    const twisted = { name: 'Club', key: Uint8Array.from([...Buffer.alloc(30, 9), 8, 8]) }
    expect(hashChannel('Club', twisted.key)).toBe(hashChannel('Club', CLUB.key))
    const packet = await openEnvelope(send(CLUB.key, 'Club', textData('hi')), [twisted, CLUB], closed)
    expect(packet.payloadVariant.case).toBe('decoded')
  })

  it('leaves packets encrypted if no key fits', async () => {
    const other = Buffer.alloc(16, 3)
    const envelope = send(other, 'Secret', textData('hi'))
    expect(await openEnvelope(envelope, [CLUB, DEFAULT_CHANNEL_KEY], closed)).toBe(envelope.packet)
  })

  it('does not believe a publisher that a readable packet was encrypted for one node', async () => {
    const value = create(DataSchema, { portnum: PortNum.TEXT_MESSAGE_APP })
    const packet = create(MeshPacketSchema, { pkiEncrypted: true, payloadVariant: { case: 'decoded', value } })
    const opened = await openEnvelope({ packet, channelName: 'LongFast', gateway: 1 }, [DEFAULT_CHANNEL_KEY], closed)
    expect(opened.pkiEncrypted).toBe(false)
  })

  it('accepts packets that the gateway published unencrypted, with the hash as channel number', async () => {
    const value = { portnum: PortNum.TEXT_MESSAGE_APP, payload: bytes('open') }
    const packet = create(MeshPacketSchema, { ...NONCE, channel: 3, payloadVariant: { case: 'decoded', value } })
    const opened = await openEnvelope({ packet, channelName: 'LongFast', gateway: 1 }, [DEFAULT_CHANNEL_KEY], closed)
    expect(opened).toMatchObject({ channel: numberChannel('8:LongFast'), payloadVariant: { case: 'decoded', value } })
  })

  // As real firmware sent it, with throw-away keys: the sender's public one, the receiver's private one.
  const DIRECT = {
    packet: create(MeshPacketSchema, {
      from: 3936675805,
      to: 2214646268,
      id: 2072529447,
      pkiEncrypted: true,
      payloadVariant: { case: 'encrypted', value: Buffer.from('VOo42wkZIDDPGIw2+VsDQyz9jg1S823OiA==', 'base64') },
    }),
    channelName: 'PKI',
    gateway: 1,
  }
  const SENDER = 'Bbbq6n+H8bs8PtRFDx3ew7otEPOvYR0IhLGhKkq54Uw='
  const RECEIVER = Buffer.from('gIDWC3oH3JCyd5r0ATL94Sl16CPeXAceGoIOHW/Sjmw=', 'base64')
  const openWith = (privateKey: Uint8Array, keys: readonly string[], envelope = DIRECT) =>
    openEnvelope(
      envelope,
      [DEFAULT_CHANNEL_KEY],
      createDirectOpener({
        privateKeys: new Map([[2214646268, privateKey]]),
        publicKeysOf: async (nodeNum) => (nodeNum === 3936675805 ? keys : []),
      }),
    )

  const OTHER = Buffer.alloc(32, 9).toString('base64')

  it.each([
    ['the key', [SENDER]],
    ['the key that another one replaced, or that was refused', [OTHER, 'not a key', SENDER]],
  ])('decrypts a direct message with the private key of its receiver and %s of its sender', async (_, keys) => {
    const packet = await openWith(RECEIVER, keys)
    expect(packet).toMatchObject({ pkiEncrypted: true, payloadVariant: { case: 'decoded', value: { portnum: 1 } } })
    expect(packet.payloadVariant.value).toMatchObject({ payload: bytes('dm to C') })
  })

  it.each([
    ['without a key of ours', RECEIVER, [], { ...DIRECT.packet, to: 7 }],
    ["without the sender's key", RECEIVER, [OTHER], DIRECT.packet],
    ['with a wrong private key', Buffer.alloc(32, 1), [SENDER], DIRECT.packet],
    ['when it was forged', RECEIVER, [SENDER], { ...DIRECT.packet, id: 1 }],
    ['to everybody', RECEIVER, [SENDER], { ...DIRECT.packet, to: BROADCAST }],
  ])('leaves it encrypted %s', async (_why, privateKey, keys, packet) => {
    const left = await openWith(privateKey, keys, { ...DIRECT, packet })
    expect(left.payloadVariant.case).toBe('encrypted')
  })
})

describe('configured keys', () => {
  it.each([
    ['LongFast=AQ==', { name: 'LongFast', key: expandPsk(Uint8Array.of(1)) }],
    ['Open=', { name: 'Open', key: new Uint8Array(0) }],
    ['=AQ==', { name: '', key: expandPsk(Uint8Array.of(1)) }],
    [`Club=${Buffer.alloc(32, 4).toString('base64')}`, { name: 'Club', key: new Uint8Array(32).fill(4) }],
    ['Club', null],
    ['Club=not base64!', null],
    ['Club=AQID', null],
    [`Club=${Buffer.alloc(33).toString('base64')}`, null],
    [`${'x'.repeat(65)}=AQ==`, null],
  ])('the channel key %j is read or refused', (text, parsed) => {
    expect(parseChannelKey(text)).toStrictEqual(parsed)
  })

  it.each([
    [`!a0cb0001=${Buffer.alloc(32, 4).toString('base64')}`, { nodeNum: 0xa0cb0001, key: new Uint8Array(32).fill(4) }],
    [`a0cb0001=${Buffer.alloc(32, 4).toString('base64')}`, null],
    ['!a0cb0001=AQ==', null],
    ['!a0cb0001', null],
  ])('the private key %j is read or refused', (text, parsed) => {
    expect(parsePrivateKey(text)).toStrictEqual(parsed)
  })
})
