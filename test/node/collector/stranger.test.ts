import { createServer } from 'node:http'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { text as readText } from 'node:stream/consumers'
import { auditRows } from '../../support/app.ts'
import { type Commanded, startCommanded } from '../../support/radio/commanding.ts'
import { FAR, packetsSent, until } from '../../support/radio/service.ts'

/** A service that says whatever it likes. */
let answers: string[]
let reports: Record<string, unknown>[]
let taken: string[]
let remainingMs: number
let stop: () => Promise<void>
let hill: Commanded
let source: string

beforeEach(async () => {
  answers = []
  reports = []
  taken = []
  remainingMs = 60_000
  const server = createServer((request, response) => {
    const answer = async () => {
      const body = await readText(request)
      if (request.url === '/api/ingest') {
        const { packets } = JSON.parse(body)
        return JSON.stringify({ accepted: packets.length, duplicates: 0, rejected: [] })
      }
      if (request.method === 'GET') return answers.shift() ?? '{"commands":[]}'
      if (request.url?.endsWith('/take')) {
        taken.push(JSON.parse(body).id)
        return JSON.stringify({ remainingMs })
      }
      reports.push(...JSON.parse(body).reports)
      response.statusCode = 204
      return ''
    }
    void answer().then((json) => response.end(json))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  const url = `http://127.0.0.1:${Object(server.address()).port}`
  const env = { COLLECTOR_DOWNLINK: 'texts', COLLECTOR_DOWNLINK_PER_HOUR: '5' }
  hill = await startCommanded({ url, token: `mm_${'t'.repeat(43)}` }, env)
  source = `hill/${hill.radio.links()[0]?.name}`
})
afterEach(async () => {
  await hill.stop()
  await stop()
})

const word = (n: number) => n.toString(16).padStart(32, '0')
const content = {
  text: 'hello',
  to: FAR,
  slot: 0,
  channel: null,
  replyId: null,
  emoji: false,
  wantAck: true,
  hopLimit: null,
}
const command = (n: number, more: object = {}) => ({
  id: word(n),
  radio: source,
  kind: 'text',
  content,
  packetId: 1000 + n,
  askedBy: 'mallory',
  expiresInMs: 60_000,
  ...more,
})

/** Gives these, and waits until all of it was handled. */
async function give(...commands: unknown[]): Promise<void> {
  answers.push(JSON.stringify({ commands }), '{"commands":[]}')
  await untilAsked()
}
async function untilAsked(): Promise<void> {
  await until(() => {
    hill.clock.advance(500)
    expect(answers).toStrictEqual([])
  })
}
const sentIds = () =>
  hill.device.received.flatMap(({ payloadVariant }) =>
    payloadVariant.case === 'packet' ? [payloadVariant.value.id] : [],
  )

it('gets nothing that the configuration of the collector does not allow', async () => {
  await give(
    command(1, { kind: 'traceroute', content: { to: FAR } }),
    command(2, { kind: 'settings', content: { section: 'security' } }),
    command(3, { kind: 'admin', content: { reboot: 1 } }),
    command(4, { content: { ...content, text: 'x'.repeat(201) } }),
    command(5, { content: { ...content, slot: 8 } }),
    command(6, { content: { ...content, from: 1 } }),
    command(7, { content: { ...content, wantAck: true, hopLimit: 0 } }),
    command(8, { radio: 'another' }),
    command(9, { packetId: 0 }),
    command(10, { id: 'x' }),
    command(11, { expiresInMs: 0 }),
    command(12, { expiresInMs: -1e15 }),
    command(13, { content: null }),
    command(14, { askedBy: 'admin\n' }),
    command(15, { askedBy: '\u202enimda' }),
    'no command',
  )
  answers.push(JSON.stringify({ commands: [], more: 'x'.repeat(300_000) }), 'no JSON', '{"commands":{}}', '[]')
  await until(() => {
    hill.clock.advance(60_000)
    expect(answers).toStrictEqual([])
  })
  expect([taken, packetsSent(hill)]).toStrictEqual([[], 0])
  expect(reports.every(({ state, error }) => state === 'failed' && error === 'REFUSED')).toBe(true)
  const refused = auditRows(hill.app).filter(({ action }) => action === 'downlink_refused')
  expect(refused).toHaveLength(1)
  expect(refused[0]).toMatchObject({ username: 'system', details: { askedBy: 'mallory', kind: 'traceroute' } })
  expect(hill.logged.join('\n')).toContain('was refused')
  await give(command(20))
  await until(() => expect(sentIds()).toStrictEqual([1020]))
})

it('cannot have anything sent twice, late, or more often than the collector allows', async () => {
  await give(command(1), command(1), command(2, { packetId: 1001 }))
  await give(command(1), command(1, { packetId: 7 }))
  await until(() => expect(sentIds()).toStrictEqual([1001]))
  // However long the service says that there is time, there is a minute.
  remainingMs = 1e15
  await give(command(3, { expiresInMs: 1e15 }))
  remainingMs = 0
  await give(command(4))
  remainingMs = -5
  await give(command(5))
  remainingMs = 60_000
  await give(...Array.from({ length: 15 }, (_, n) => command(30 + n)))
  await until(() => {
    hill.clock.advance(2200)
    expect(sentIds()).toStrictEqual([1001, 1003, 1030])
  })
  await give(...Array.from({ length: 15 }, (_, n) => command(60 + n)))
  expect(sentIds()).toHaveLength(3)
  // What came to nothing counts as well: none of these was written down.
  expect(reports.filter(({ notice }) => notice === 'the collector sends at most 5 an hour for others')).toHaveLength(29)
  expect(hill.store.sqlite.prepare('select count(*) from taken_commands').pluck().get()).toBe(5)
})

it('is not heard again at once because of what was refused', async () => {
  await give(command(1))
  answers = Array.from({ length: 20 }, (_, n) => JSON.stringify({ commands: [command(100 + n, { kind: 'admin' })] }))
  let seconds = 0
  await until(() => {
    hill.clock.advance(1000)
    seconds += 1
    expect(answers).toStrictEqual([])
  })
  expect(seconds).toBeGreaterThanOrEqual(19)
})

it('cannot have a text sent on another channel than it meant', async () => {
  await give(
    command(1, { content: { ...content, channel: '8:Team' } }),
    command(2, { content: { ...content, channel: '2:LongFast', slot: 1 } }),
  )
  await until(() => {
    hill.clock.advance(100)
    expect(reports.map(({ error, notice }) => [error, notice])).toStrictEqual(
      Array.from({ length: 2 }, () => ['REFUSED', 'The radio has another channel in its place']),
    )
  })
  const own = hill.store.sqlite.prepare('select identity from channels where channel_index = 0').pluck().get()
  expect(own).toMatch(/^\d+:/)
  await give(command(3, { content: { ...content, channel: own } }))
  await until(() => expect(sentIds()).toStrictEqual([1003]))
})

it('has 8 places in the queue of a radio, also for requests for positions', () => {
  const reserve = (packetId: number) =>
    hill.radio.reserve('position', {
      command: { packetId, service: 'x', askedBy: 'mallory', isOver: () => false, onDelivery() {} },
    })
  for (let n = 1; n <= 8; n++) reserve(n)
  expect(hill.radio.sending()).toBe(8)
  expect(() => reserve(9)).toThrow('Too many packets are waiting to be sent')
})

it('is not asked at all while the downlink is off', async () => {
  await hill.downlink.stop()
  await hill.stop()
  hill = await startCommanded({ url: 'http://127.0.0.1:9', token: `mm_${'t'.repeat(43)}` }, { COLLECTOR_DOWNLINK: '' })
  answers.push('{"commands":[]}')
  hill.clock.advance(120_000)
  expect([answers, hill.logged]).toStrictEqual([['{"commands":[]}'], []])
})
