import { afterEach, describe, expect, it } from 'vitest'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { START } from '../../support/app.ts'
import { ACKNOWLEDGE, ANNOUNCE, MINUTE, TRACEROUTE } from '../../support/automation.ts'
import { CLUB_PSK, startClub, type Told } from '../../support/mesh/club.ts'
import { seconds, telemetry, text } from '../../support/mesh/mesh.ts'
import { fromRadio, type FromRadioVariant } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'

type Club = Awaited<ReturnType<typeof startClub>>
type PacketValue = Extract<FromRadioVariant, { case: 'packet' }>['value']

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

const RESCUE = { name: 'Rescue', psk: CLUB_PSK }
const [FIRST, SECOND] = [0xa0cb0001, 0xa0cb0002]
const NODE = 5
const named = (num: number, longName: string) => ({ num, user: { longName, shortName: longName.slice(0, 4) } })

/** Two radios of one mesh: both have the first channel, the second one has another one as well. */
async function startTwo(first: Partial<Told> = {}, second: Partial<Told> = {}): Promise<Club> {
  const club = await startClub([
    { channels: [{}], nodes: [named(FIRST, 'Hill')], ...first },
    { channels: [{}, RESCUE], nodes: [named(SECOND, 'Lake')], ...second },
  ])
  endings.push(() => club.stop())
  await club.untilLinks('connected', 'connected', 'connected')
  await until(async () => {
    club.clock.advance(100)
    expect(await club.channels()).toStrictEqual(CHANNELS)
  })
  return club
}

const CHANNELS = [
  [0, ''],
  [1, 'Rescue'],
]

const nameOf = ({ devices }: Club, index: number) => `127.0.0.1:${devices[index]?.port}`

async function post(club: Club, path: string, body: object, headers: Record<string, string> = {}) {
  const answer = await club.admin.send('POST', path, body, headers)
  return { status: answer.status, body: Object(await answer.json()) }
}

/** The radio that sends it, 0 or 1, according to the answer; the packet is also from that radio. */
async function sentBy(club: Club, path: string, body: object): Promise<number> {
  const answer = await post(club, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  const { radio, fromNodeNum } = answer.body.message ?? answer.body.traceroute
  const index = [nameOf(club, 0), nameOf(club, 1)].indexOf(radio)
  expect(fromNodeNum).toBe([FIRST, SECOND][index])
  return index
}

const sendText = (club: Club, more: object = {}) => sentBy(club, '/api/messages', { text: 'hi', ...more })
const requestTraceroute = (club: Club, more: object = {}) => sentBy(club, '/api/traceroutes', { to: NODE, ...more })

/** A radio hears a text of the node, over that many hops. */
function hear({ devices }: Club, device: number, id: number, hops: number, more: PacketValue = {}): void {
  const value = {
    from: NODE,
    to: BROADCAST,
    id,
    hopStart: 7,
    hopLimit: 7 - hops,
    rxSnr: 1,
    rxRssi: -90,
    payloadVariant: { case: 'decoded', value: text(`m${id}`) } as const,
    ...more,
  }
  devices[device]?.send(fromRadio({ case: 'packet', value }))
}

/** Until these radios have heard the node, and the packets are stored. */
async function untilHeard(club: Club, ...hops: (number | null)[]): Promise<void> {
  await until(() => {
    club.clock.advance(100)
    const found = [0, 1].flatMap((index) =>
      club
        .radio()
        .hearings(NODE)
        .filter(({ source }) => source === nameOf(club, index)),
    )
    expect(found.map(({ hopsAway }) => hopsAway)).toStrictEqual(hops)
  })
}

/** Advances time; the radios answer each heartbeat. */
async function pass({ clock, radio }: Club, minutes: number): Promise<void> {
  const answered = () =>
    radio()
      .links()
      .flatMap(({ kind, lastFrameAt }) => (kind === 'mqtt' ? [] : [lastFrameAt]))
  for (let minute = 0; minute < minutes; minute += 1) {
    clock.advance(MINUTE)
    await until(() => expect(answered()).toStrictEqual([clock.now(), clock.now()]))
  }
}

const readPacket = async (club: Club, device: number) => {
  const message = await club.devices[device]?.next('packet')
  if (message?.payloadVariant.case !== 'packet') throw new Error('no packet')
  return message.payloadVariant.value
}

describe('the radio named in a request', () => {
  it('sends, and no other one does', async () => {
    const club = await startTwo()
    for (const index of [1, 0]) {
      expect(await sendText(club, { radio: nameOf(club, index), text: `by ${index}` })).toBe(index)
      const { payloadVariant } = await readPacket(club, index)
      expect(payloadVariant.value).toMatchObject({ payload: new TextEncoder().encode(`by ${index}`) })
      expect(await requestTraceroute(club, { radio: nameOf(club, index) })).toBe(index)
      expect((await readPacket(club, index)).payloadVariant.value).toMatchObject({ portnum: PortNum.TRACEROUTE_APP })
    }
    const { messages } = await club.get('/api/messages')
    expect(Object(messages).map(({ radio }: { radio: string }) => radio)).toStrictEqual([
      nameOf(club, 0),
      nameOf(club, 1),
    ])
    const { traceroutes } = await club.get('/api/traceroutes')
    expect(Object(traceroutes)[0]).toMatchObject({ radio: nameOf(club, 0), fromNodeNum: FIRST })
  })

  it('is refused if no radio has this name, or it is a broker', async () => {
    const club = await startTwo()
    const { links } = await club.get('/api/info')
    const broker = Object(links).find(({ kind }: { kind: string }) => kind === 'mqtt').name
    for (const radio of [broker, 'hill', '', 7, null]) {
      for (const [path, body] of [
        ['/api/messages', { text: 'hi', radio }],
        ['/api/traceroutes', { to: NODE, radio }],
      ] as const) {
        const refused = await post(club, path, body)
        expect(refused, `${path} ${radio}`).toMatchObject({
          status: 400,
          body: { code: 'invalid_request', issues: [{ path: 'radio' }] },
        })
      }
    }
    expect(Object(await club.get('/api/messages'))['messages']).toStrictEqual([])
  })

  it('is not replaced by another one if it cannot send', async () => {
    const club = await startTwo({ txEnabled: false })
    expect(await sendText(club)).toBe(1)
    const refused = await post(club, '/api/messages', { text: 'hi', radio: nameOf(club, 0) })
    expect(refused).toMatchObject({ status: 503, body: { code: 'radio_unavailable' } })
    const elsewhere = await post(club, '/api/messages', { text: 'hi', channel: 1, radio: nameOf(club, 1) })
    expect(elsewhere.status).toBe(202)
  })

  it('is part of the request that an Idempotency-Key identifies', async () => {
    const club = await startTwo()
    const key = { 'Idempotency-Key': 'once' }
    const [here, there] = [0, 1].map((index) => ({ text: 'hi', radio: nameOf(club, index) }))
    const first = await post(club, '/api/messages', { ...there }, key)
    expect((await post(club, '/api/messages', { ...there }, key)).body.message.id).toBe(first.body.message.id)
    for (const other of [{ ...here }, { text: 'hi' }]) {
      expect(await post(club, '/api/messages', other, key)).toMatchObject({ status: 422 })
    }
    expect(Object(await club.get('/api/messages'))['messages']).toHaveLength(1)
  })
})

describe('without a name', () => {
  it('a broadcast is sent by the first radio that has the channel and can send', async () => {
    const club = await startTwo()
    expect(await sendText(club)).toBe(0)
    expect(await sendText(club, { channel: 1 })).toBe(1)
    club.devices[0]?.refuse(true)
    club.devices[0]?.kick()
    await until(() => expect(club.radio().links()[0]?.state).not.toBe('connected'))
    expect(await sendText(club)).toBe(1)
  })

  it('a packet for a node is sent by the radio that hears the node over the fewest hops', async () => {
    const club = await startTwo()
    expect([await sendText(club, { to: NODE }), await requestTraceroute(club)]).toStrictEqual([0, 0])
    hear(club, 0, 1, 3)
    await untilHeard(club, 3)
    hear(club, 1, 2, 1)
    await untilHeard(club, 3, 1)
    expect([await sendText(club, { to: NODE }), await requestTraceroute(club)]).toStrictEqual([1, 1])
    // The internet is the last resort.
    hear(club, 1, 3, 0, { viaMqtt: true })
    await untilHeard(club, 3, null)
    expect([await sendText(club, { to: NODE }), await requestTraceroute(club)]).toStrictEqual([0, 0])
  })

  it('with equal hops the latest packet decides, and old packets do not count', async () => {
    const club = await startTwo()
    hear(club, 1, 1, 0)
    await untilHeard(club, 0)
    hear(club, 0, 2, 0)
    await untilHeard(club, 0, 0)
    expect(await sendText(club, { to: NODE })).toBe(0)
    // A node a kilometre away has driven to the other hill.
    await pass(club, 62)
    hear(club, 1, 3, 4)
    await untilHeard(club, 0, 4)
    expect([await sendText(club, { to: NODE }), await requestTraceroute(club)]).toStrictEqual([1, 1])
  })

  it('after a start the nodes reported by the radios decide', async () => {
    const lastHeard = seconds(START) - 600
    const club = await startTwo(
      { nodes: [{ num: NODE, lastHeard, hopsAway: 4 }] },
      { nodes: [{ num: NODE, lastHeard: lastHeard - 60, hopsAway: 2 }] },
    )
    await untilHeard(club, 4, 2)
    expect(await sendText(club, { to: NODE })).toBe(1)
    // To a node in a channel, the radio must have the channel; to one of our radios, it must be another one.
    expect(await sendText(club, { to: NODE, channel: 1 })).toBe(1)
    expect([await requestTraceroute(club, { to: FIRST }), await requestTraceroute(club, { to: SECOND })]).toStrictEqual(
      [1, 0],
    )
  })

  it("a reply is sent by the radio that received the original, also a reply to one's own message", async () => {
    const club = await startTwo()
    hear(club, 1, 77, 2)
    hear(club, 0, 78, 2)
    hear(club, 1, 79, 0, { to: SECOND })
    await club.untilHeard(3)
    expect(await sendText(club, { replyId: 77 })).toBe(1)
    expect(await sendText(club, { text: '👍', replyId: 77, emoji: true })).toBe(1)
    expect(await sendText(club, { replyId: 78 })).toBe(0)
    expect(await sendText(club, { to: NODE, replyId: 79 })).toBe(1)
    // A reply to a message that both received takes the shorter route.
    hear(club, 0, 80, 3)
    hear(club, 1, 80, 1)
    await club.untilHeard(5)
    expect(await sendText(club, { replyId: 80 })).toBe(1)
    const own = await post(club, '/api/messages', { text: 'mine', radio: nameOf(club, 1) })
    expect(await sendText(club, { replyId: own.body.message.packetId })).toBe(1)
    expect(await sendText(club, { replyId: 12_345 })).toBe(0)
    expect(await sendText(club, { replyId: 78, channel: 1 })).toBe(1)
    expect(await sendText(club, { replyId: 77, radio: nameOf(club, 0) })).toBe(0)
  })
})

describe('rules', () => {
  const add = async (club: Club, rule: object) => {
    const made = await post(club, '/api/automation', rule)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    return Number(made.body.automation.id)
  }
  const radiosOf = async (club: Club, table: 'messages' | 'traceroutes', sender: string) => {
    const rows: { radio: string; text?: string; sentBy?: string; requestedBy?: string }[] = Object(
      (await club.get(`/api/${table}`))[table],
    )
    return rows
      .filter((row) => (row.sentBy ?? row.requestedBy) === `automation:${sender}`)
      .map(({ radio, text = '' }) => `${[nameOf(club, 0), nameOf(club, 1)].indexOf(radio)} ${text}`.trim())
      .toReversed()
  }
  const answersOf = async (club: Club, id: number) => {
    const { runs } = await club.get(`/api/automation/${id}/runs`)
    const found: { outcome: string; reason: string | null; count: number }[] = Object(runs)
    return found.map(({ outcome, reason, count }) => `${count} ${reason ?? outcome}`).toReversed()
  }

  it('answer by the radio that heard the message, in its name, and only once if both heard it', async () => {
    const club = await startTwo()
    const rule = {
      ...ACKNOWLEDGE,
      match: { words: ['m1', 'm2', 'm3'] },
      answer: { kind: 'text', text: 'at {longName}' },
    }
    const id = await add(club, { ...rule, channels: [0, 1] })
    hear(club, 1, 1, 0)
    await club.untilHeard(1)
    await until(async () => expect(await radiosOf(club, 'messages', 'Ping')).toStrictEqual(['1 at Lake']))
    hear(club, 0, 1, 0)
    await club.untilHeard(2)
    club.clock.advance(MINUTE)
    hear(club, 0, 2, 0)
    await club.untilHeard(3)
    await until(async () => expect(await radiosOf(club, 'messages', 'Ping')).toStrictEqual(['1 at Lake', '0 at Hill']))
    club.clock.advance(MINUTE)
    // The second slot of the second radio.
    hear(club, 1, 3, 0, { channel: 1 })
    await club.untilHeard(4)
    const all = ['1 at Lake', '0 at Hill', '1 at Lake']
    await until(async () => expect(await radiosOf(club, 'messages', 'Ping')).toStrictEqual(all))
    expect(await answersOf(club, id)).toStrictEqual(['1 sent', '1 sent', '1 sent'])
  })

  it('choose the radio for each packet as for users, and a text names that radio', async () => {
    const club = await startTwo()
    await add(club, { ...ANNOUNCE, when: { kind: 'interval', hours: 3 }, channels: [0, 1], text: 'From {longName}' })
    await add(club, { ...TRACEROUTE, everyMinutes: 60, targets: { kind: 'list', nodes: [NODE, 6] } })
    hear(club, 1, 1, 0)
    await untilHeard(club, 0)
    await pass(club, 180)
    const all = ['0 From Hill', '1 From Lake']
    await until(async () => expect(await radiosOf(club, 'messages', 'Hello')).toStrictEqual(all))
    // Node 5, node 6, and node 5 again: the request by the second radio counts as well.
    await until(async () => expect(await radiosOf(club, 'traceroutes', 'Ways')).toStrictEqual(['1', '0', '1']))
  })

  it('hold packets for a radio with a busy channel, and send the others', async () => {
    const club = await startTwo()
    const id = await add(club, { ...ANNOUNCE, when: { kind: 'interval', hours: 3 }, channels: [0, 1] })
    await pass(club, 170)
    const variant = { case: 'deviceMetrics', value: { channelUtilization: 30 } } as const
    const payloadVariant = { case: 'decoded', value: telemetry({ time: seconds(club.clock.now()), variant }) } as const
    const measured = { from: FIRST, to: BROADCAST, id: 9000, payloadVariant }
    club.devices[0]?.send(fromRadio({ case: 'packet', value: measured }))
    await until(async () => {
      club.clock.advance(100)
      expect(await club.get(`/api/nodes/${FIRST}`)).toMatchObject({ deviceMetrics: { channelUtilization: 30 } })
    })
    await pass(club, 10)
    await until(async () => expect(await answersOf(club, id)).toStrictEqual(['1 channel_busy']))
    expect(await radiosOf(club, 'messages', 'Hello')).toStrictEqual(['1 Hello from Lake'])
    expect(await club.get(`/api/automation/${id}`)).toMatchObject({ automation: { state: 'ready' } })
  })
})
