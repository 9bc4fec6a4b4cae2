import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { auditRows } from '../../support/app.ts'
import { type Commanded, type Commander, startCommanded, startCommander } from '../../support/radio/commanding.ts'
import { FAR, OWN, packetsSent, until } from '../../support/radio/service.ts'

let commander: Commander
let hill: Commanded

beforeEach(async () => {
  commander = await startCommander()
  hill = await startCommanded(commander)
})
afterEach(async () => {
  await hill.stop()
  await commander.stop()
})

/** Lets the time of the collector pass until this holds. */
function untilLater(check: () => void | Promise<void>, on = hill): Promise<void> {
  return until(async () => {
    on.clock.advance(50)
    await check()
  })
}

const listeners = () => commander.app.store.sqlite.prepare('select count(*) from radio_listeners').pluck().get()
/** Until the collector has delivered its radio, and asks what to send. */
const untilListening = (radios = 1) =>
  untilLater(() => {
    commander.clock.advance(50)
    expect(listeners()).toBe(radios)
  })
const untilState = (state: string, error: string | null = null, on = hill) =>
  untilLater(async () => expect(await commander.state()).toStrictEqual([state, error]), on)

async function send(body: object = { text: 'from afar' }): Promise<number> {
  const { status, message } = await commander.send(body)
  expect(status).toBe(202)
  return Number(message['packetId'])
}

const said = (data: unknown) => new TextDecoder().decode(Object(data).value.payload)

describe('a text that another service asks for', () => {
  it('is sent by the radio, and what becomes of it is told there', async () => {
    await untilListening()
    const id = await send({ text: 'to the hill', to: FAR })
    const packet = await hill.sent()
    expect([packet.id, packet.to, packet.wantAck, said(packet.payloadVariant)]).toStrictEqual([
      id,
      FAR,
      true,
      'to the hill',
    ])
    await untilState('sent')
    hill.answer(id, OWN)
    await untilState('relayed')
    hill.answer(id, FAR)
    await untilState('delivered')
    const [own] = Object(await (await hill.sender.send('GET', '/api/messages')).json()).messages
    expect(own).toMatchObject({ packetId: id, text: 'to the hill', sentBy: 'downlink:sender' })
    expect(auditRows(hill.app).at(-1)).toMatchObject({
      action: 'message_sent',
      username: 'system',
      details: { packetId: id, askedBy: 'sender', service: new URL(commander.url).host },
    })
    // The collector delivers what its radio sent: it is the same message.
    hill.clock.advance(1000)
    await untilLater(() => expect(hill.radio.collector()).toMatchObject({ waiting: 0 }))
    const texts = commander.app.store.sqlite.prepare('select text, delivery_state s from messages').all()
    expect(texts).toStrictEqual([{ text: 'to the hill', s: 'delivered' }])
  })

  it('of traceroutes and requests likewise, at the pace of the radio, and none after a minute', async () => {
    await untilListening()
    const ask = async () =>
      Object(await (await commander.sender.send('POST', '/api/traceroutes', { to: FAR })).json()).traceroute.id
    const ids = [await ask(), await ask(), await ask()]
    await hill.sent()
    const states = async () => {
      const { traceroutes } = Object(await (await commander.sender.send('GET', '/api/traceroutes')).json())
      return ids.map((id) => {
        const { state, routingError } = traceroutes.find((one: { id: number }) => one.id === id)
        return routingError === null ? state : routingError
      })
    }
    // Radios take a traceroute each 30.5 s: the third one would be late.
    await untilLater(async () => expect(await states()).toStrictEqual(['sent', 'taken', 'taken']))
    hill.clock.advance(30_500)
    await hill.sent()
    hill.clock.advance(29_000)
    await untilLater(async () => expect(await states()).toStrictEqual(['sent', 'sent', 'EXPIRED']))
    hill.clock.advance(31_000)
    const asked = await commander.sender.send('POST', `/api/nodes/${FAR}/requests`, { kind: 'position' })
    expect(asked.status).toBe(202)
    await untilLater(() => expect(packetsSent(hill)).toBe(3))
    const packet = await hill.sent()
    expect(Object(packet.payloadVariant.value).portnum).toBe(3)
  })

  it('is sent once, although answers are lost and the other service restarts at each step', async () => {
    await untilListening()
    const lost = new Set<string>()
    commander.hook = async (step, path) => {
      const key = `${step} ${path}`
      if (step === 'asked' || !path.includes('/commands/') || lost.has(key)) return 'goes on'
      lost.add(key)
      await commander.restart()
      return 'lost'
    }
    const id = await send()
    await untilLater(() => expect(packetsSent(hill)).toBe(1))
    await untilState('sent')
    hill.answer(id, OWN)
    await untilState('relayed')
    expect([lost.size, packetsSent(hill)]).toStrictEqual([2, 1])
  })
})

describe('a collector that is killed', () => {
  it.each([
    ['when it asks for the command', 'asked', '/take', 'failed', 'NOT_SENT'],
    ['when the command is its own', 'answered', '/take', 'failed', 'NOT_SENT'],
    ['when the radio has the packet', 'asked', '/report', 'unknown', 'UNREPORTED'],
    ['when it was told that', 'answered', '/report', 'unknown', 'UNREPORTED'],
  ] as const)('%s sends it at most once, and says what it knows', async (_, at, path, state, error) => {
    await untilListening()
    let left: Buffer | null = null
    commander.hook = (step, asked) => {
      if (left === null && step === at && asked.endsWith(path)) left = hill.store.sqlite.serialize()
      return left === null ? 'goes on' : 'lost'
    }
    await send()
    await untilLater(() => expect(left).not.toBeNull())
    await hill.stop()
    commander.hook = () => 'goes on'
    hill = await startCommanded(commander, {}, left ?? undefined)
    await untilState(state, error)
    // Nothing was sent again: the next one is the first that its radio gets. The device has another port, and so name.
    await untilListening(2)
    const id = await send({ text: 'the next one', radio: `hill/${hill.radio.links()[0]?.name}` })
    await untilLater(() => expect(packetsSent(hill)).toBe(1))
    const packet = await hill.sent()
    expect([packet.id, said(packet.payloadVariant)]).toStrictEqual([id, 'the next one'])
    await untilState('sent')
  })
})
