import { afterEach, describe, expect, it } from 'vitest'
import { hashChannel } from '../../../src/meshtastic/crypto/channel.ts'
import { Config_LoRaConfig_ModemPreset as Preset } from '../../../src/meshtastic/gen/config_pb.ts'
import { DEFAULT_CHANNEL_KEY } from '../../../src/meshtastic/link/mqtt-envelope.ts'
import { createTestApp } from '../../support/app.ts'
import { ACKNOWLEDGE } from '../../support/automation.ts'
import {
  CLUB,
  CLUB_PSK,
  DEFAULT_PSK,
  findOpenChannel,
  LONG_FAST,
  numberOf,
  startClub as openClub,
  type Told,
} from '../../support/mesh/club.ts'
import { startCollectorTarget } from '../../support/radio/collector-target.ts'
import { fromRadio, type RadioDevice } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

const startClub: typeof openClub = async (...options) => {
  const club = await openClub(...options)
  endings.push(() => club.stop())
  return club
}

const ONE_RADIO: Told = { channels: [{}, { name: 'Rescue', psk: CLUB_PSK }, { off: true }] }

describe('a channel of a radio and a broker', () => {
  it('is one channel, whichever copy comes first or is the only one', async () => {
    const club = await startClub([ONE_RADIO])
    await club.untilLinks('connected', 'connected')
    club.byRadio(1)
    await club.untilHeard(1)
    await club.byBroker(1)
    await club.byBroker(2)
    await club.untilHeard(3)
    club.byRadio(2)
    club.byRadio(3)
    await club.byBroker(4)
    club.byRadio(5, 1)
    await club.byBroker(6, CLUB)
    await club.untilHeard(8)
    expect(await club.numbers()).toStrictEqual({ m1: 0, m2: 0, m3: 0, m4: 0, m5: 1, m6: 1 })
    expect(await club.channels()).toStrictEqual([
      [0, ''],
      [1, 'Rescue'],
    ])
    const { messages } = await club.get('/api/messages?channel=0')
    expect(messages).toHaveLength(4)
    expect(await club.get('/api/nodes/5')).toMatchObject({ channel: expect.toSatisfy((channel) => channel < 2) })
    const { packets } = await club.get('/api/packets?from=5')
    expect(
      Object(packets)
        .map((packet: { channel: number }) => packet.channel)
        .toSorted(),
    ).toStrictEqual([0, 0, 0, 0, 1, 1])
  })

  it('stays separate from channels with its hash and another name, or with its channel index as hash', async () => {
    const club = await startClub([ONE_RADIO])
    await club.untilLinks('connected', 'connected')
    const same = findOpenChannel(hashChannel(LONG_FAST, DEFAULT_CHANNEL_KEY.key))
    const low = findOpenChannel(1)
    await club.byBroker(1, same)
    await club.byBroker(2, low)
    await club.byBroker(3)
    await club.byBroker(4, same)
    await club.untilHeard(4)
    expect(await club.numbers()).toStrictEqual({ m1: numberOf(same), m2: numberOf(low), m3: 0, m4: numberOf(same) })
    const others = [low, same].map((channel) => [numberOf(channel), channel.name] as const)
    expect(await club.channels()).toStrictEqual([[0, ''], [1, 'Rescue'], ...others.toSorted(([a], [b]) => a - b)])
    expect((await club.get(`/api/messages?channel=${numberOf(low)}`))['messages']).toHaveLength(1)
  })

  it('includes messages from before the radio reported it', async () => {
    const club = await startClub([ONE_RADIO], { refusing: true })
    const [device] = club.devices
    await club.untilLinks('waiting', 'connected')
    await club.byBroker(1, CLUB)
    await club.untilHeard(1)
    expect(await club.numbers()).toStrictEqual({ m1: numberOf(CLUB) })
    expect(await club.channels()).toStrictEqual([[numberOf(CLUB), 'Rescue']])
    device?.refuse(false)
    await until(() => {
      club.clock.advance(1000)
      expect(club.radio().links()[0]?.state).toBe('connected')
    })
    await until(async () => {
      club.clock.advance(100)
      expect(await club.numbers()).toStrictEqual({ m1: 1 })
    })
    expect(await club.channels()).toStrictEqual([
      [0, ''],
      [1, 'Rescue'],
    ])
  })
})

describe('the channels that a radio reported', () => {
  it('are known after a restart, before the radio answers', async () => {
    const club = await startClub([ONE_RADIO])
    await club.untilLinks('connected', 'connected')
    club.byRadio(1)
    await club.untilHeard(1)
    club.devices[0]?.refuse(true)
    await club.restart()
    await club.untilLinks('waiting', 'connected')
    await club.byBroker(2)
    await club.byBroker(3, CLUB)
    await club.untilHeard(3)
    expect(await club.numbers()).toStrictEqual({ m1: 0, m2: 0, m3: 1 })
  })

  it('change with its preset and its channels', async () => {
    const told: Told = { channels: ONE_RADIO.channels }
    const club = await startClub([told])
    const again = async () => {
      club.devices[0]?.send(fromRadio({ case: 'rebooted', value: true }))
      await until(async () => {
        club.clock.advance(100)
        expect(await club.channels()).toContainEqual([1, told.channels[1]?.name])
        expect(club.radio().links()[0]?.state).toBe('connected')
      })
    }
    const mediumFast = { ...DEFAULT_CHANNEL_KEY, name: 'MediumFast' }
    const longFast = { ...DEFAULT_CHANNEL_KEY, name: LONG_FAST }
    await club.untilLinks('connected', 'connected')
    await club.byBroker(1)
    await club.byBroker(2, mediumFast)
    await club.untilHeard(2)
    expect(await club.numbers()).toStrictEqual({ m1: 0, m2: numberOf(mediumFast) })
    told.preset = Preset.MEDIUM_FAST
    // Without its own key it has that of the first.
    told.channels = [{}, { name: 'Cabin', psk: new Uint8Array(0) }]
    await again()
    const cabin = { ...DEFAULT_CHANNEL_KEY, name: 'Cabin' }
    await club.byBroker(3)
    await club.byBroker(4, mediumFast)
    await club.byBroker(5, cabin)
    await club.byBroker(6, CLUB)
    await club.untilHeard(6)
    // Messages on a channel are included from before the radio had it; messages in a slot stay there.
    const others = { m3: numberOf(longFast), m6: numberOf(CLUB) }
    await until(async () => {
      club.clock.advance(100)
      expect(await club.numbers()).toStrictEqual({ m1: 0, m2: 0, m4: 0, m5: 1, ...others })
    })
  })
})

describe('channels of two radios', () => {
  const HUT = { name: 'Hut', psk: DEFAULT_PSK }
  const BARN = { name: 'Barn', psk: DEFAULT_PSK }
  const TWO: readonly Told[] = [
    { channels: [{}, { name: 'Rescue', psk: CLUB_PSK }, HUT] },
    { channels: [{ name: 'Rescue', psk: CLUB_PSK }, {}, BARN, HUT] },
  ]
  const barn = { ...DEFAULT_CHANNEL_KEY, name: 'Barn' }

  it('get the number that the first one has for them, each once', async () => {
    const club = await startClub(TWO)
    await club.untilLinks('connected', 'connected', 'connected')
    club.byRadio(1, 0, 0)
    club.byRadio(2, 1, 1)
    club.byRadio(3, 1, 0)
    club.byRadio(4, 0, 1)
    club.byRadio(5, 2, 0)
    club.byRadio(6, 3, 1)
    club.byRadio(7, 2, 1)
    await club.byBroker(8)
    await club.byBroker(9, barn)
    await club.untilHeard(9)
    const inSlots = { m1: 0, m2: 0, m3: 1, m4: 1, m5: 2, m6: 2, m8: 0 }
    expect(await club.numbers()).toStrictEqual({ ...inSlots, m7: numberOf(barn), m9: numberOf(barn) })
    expect(await club.channels()).toStrictEqual([
      [0, ''],
      [1, 'Rescue'],
      [2, 'Hut'],
      [numberOf(barn), 'Barn'],
    ])
  })

  it('have the same number for whichever radio sends, or none', async () => {
    const club = await startClub(TWO)
    const [first, second] = club.devices
    await club.untilLinks('connected', 'connected', 'connected')
    const send = async (body: object) =>
      (await club.admin.send('POST', '/api/messages', { text: 'hi', ...body })).status
    const slot = async (device: RadioDevice | undefined) => {
      club.clock.advance(5000)
      const message = await device?.next('packet')
      return message?.payloadVariant.case === 'packet' ? message.payloadVariant.value.channel : null
    }
    expect(await send({ channel: 1 })).toBe(202)
    expect(await slot(first)).toBe(1)
    first?.refuse(true)
    first?.kick()
    await until(() => expect(club.radio().links()[0]?.state).toBe('waiting'))
    expect(await send({ channel: 1 })).toBe(202)
    expect(await slot(second)).toBe(0)
    expect(await send({ channel: 2 })).toBe(202)
    expect(await slot(second)).toBe(3)
    const { messages } = await club.get('/api/messages')
    expect(Object(messages).map((message: { channel: number }) => message.channel)).toStrictEqual([2, 1, 1])
    club.devices[1]?.send(fromRadio({ case: 'channel', value: { index: 3, role: 0 } }))
    await until(async () => {
      club.clock.advance(100)
      expect(await send({ channel: 2 })).toBe(400)
    })
    expect(await send({ channel: 0, to: '!00000005' })).toBe(202)
  })
})

describe('rules', () => {
  it('answer messages on their channel, whichever index the radio has for it', async () => {
    const club = await startClub([
      { channels: [{}, { name: 'Rescue', psk: CLUB_PSK }] },
      { channels: [{ name: 'Rescue', psk: CLUB_PSK }, {}] },
    ])
    const [first, second] = club.devices
    const rule = { ...ACKNOWLEDGE, enabled: true, channels: [1], match: { mode: 'contains', words: ['m1', 'm2'] } }
    expect((await club.admin.send('POST', '/api/automation', rule)).status).toBe(201)
    await club.untilLinks('connected', 'connected', 'connected')
    first?.refuse(true)
    first?.kick()
    await until(() => expect(club.radio().links()[0]?.state).toBe('waiting'))
    club.byRadio(1, 1, 1)
    club.byRadio(2, 0, 1)
    await club.untilHeard(2)
    const answer = await second?.next('packet')
    expect(answer?.payloadVariant.value).toMatchObject({ channel: 0, payloadVariant: { value: { replyId: 2 } } })
    const { messages } = await club.get('/api/messages')
    expect(Object(messages)[0]).toMatchObject({ replyId: 2, channel: 1, direction: 'out' })
  })
})

describe('at the target of a collector', () => {
  it('channels of its radio and its broker are also one', async () => {
    const target = await startCollectorTarget()
    endings.push(() => target.stop())
    const env = { COLLECTOR_TARGET_URL: target.url, COLLECTOR_TOKEN: `mm_${'t'.repeat(43)}`, COLLECTOR_NAME: 'hill' }
    const club = await startClub([ONE_RADIO], { env })
    await club.untilLinks('connected', 'connected')
    club.byRadio(1)
    await club.byBroker(2)
    await club.byBroker(3, CLUB)
    const hut = findOpenChannel(1)
    await club.byBroker(4, hut)
    await club.untilHeard(4)
    await until(() => {
      club.clock.advance(1000)
      expect(club.radio().collector()).toMatchObject({ state: 'idle', waiting: 0 })
    })
    const hub = await createTestApp({ ports: { now: () => club.clock.now() } })
    endings.push(() => hub.close())
    const admin = await hub.admin()
    const made = await admin.send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })
    const headers = { authorization: `Bearer ${Object(await made.json()).token}` }
    const { deliveries } = target
    // The broker's first: the target learns the radio's channels later.
    const ordered = deliveries.toSorted((a, b) => Number(b.source.includes('://')) - Number(a.source.includes('://')))
    for (const delivery of ordered) {
      const answer = await hub.client().send('POST', '/api/ingest', delivery, headers)
      expect(await answer.json()).toMatchObject({ rejected: [] })
    }
    const { messages } = Object(await (await admin.send('GET', '/api/messages')).json())
    const found: { text: string; channel: number }[] = messages
    expect(Object.fromEntries(found.map((message) => [message.text, message.channel]))).toStrictEqual({
      m1: 0,
      m2: 0,
      m3: 1,
      m4: numberOf(hut),
    })
    const { channels } = Object(await (await admin.send('GET', '/api/channels')).json())
    expect(Object(channels).map(({ index }: { index: number }) => index)).toStrictEqual([0, 1, 2, numberOf(hut)])
    const bytes = deliveries.flatMap(({ packets }) => packets.map(({ data }) => Buffer.from(data, 'base64')))
    expect(bytes.filter((each) => each.includes(Buffer.from(CLUB_PSK)))).toStrictEqual([])
  })
})
