import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEvents } from '../../../../src/app/mesh/live/events.ts'
import { expireCommands } from '../../../../src/app/mesh/downlink/commands.ts'
import { deleteOld } from '../../../../src/app/upkeep/upkeep.ts'
import { WHOLE_SCOPE } from '../../../../src/shared/access/scope.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { item } from '../../../support/mesh/delivery.ts'
import { FAR, LOCAL } from '../../../support/mesh/mesh.ts'
import { until } from '../../../support/radio/service.ts'

const DAY = 86_400_000
const YEAR = 365 * DAY
const CLAIM = 'c'.repeat(32)
const MAY_SEND = { messages: { read: true, write: true }, info: { read: true, write: true } }

let app: TestApp
let admin: Client
let token: string
let sender: Client

beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
  token = await makeToken(['ingest', 'radio'])
  sender = await app.user('sender', MAY_SEND, WHOLE_SCOPE)
  await deliver('valley', LOCAL)
})
afterEach(() => app.close())

async function makeToken(scopes: string[]): Promise<string> {
  const made = await admin.send('POST', '/api/tokens', { name: scopes.join(), scopes, expiresInDays: null })
  return Object(await made.json()).token
}

/** A request of a collector: its status and body. */
async function asCollector(method: string, path: string, body?: object, by = token) {
  const answer = await app.client().send(method, `/api/ingest${path}`, body, { authorization: `Bearer ${by}` })
  return { status: answer.status, body: answer.status === 204 ? null : Object(await answer.json()) }
}

async function deliver(source: string, nodeNum: number, by = token): Promise<void> {
  const channel = {
    case: 'channel',
    value: { index: 2, role: 2, settings: { name: 'Team', psk: new Uint8Array(0) } },
  } as const
  const packets = [{ case: 'myInfo', value: { myNodeNum: nodeNum } } as const].map(item)
  const all = [...packets, { data: item(channel), identity: '9:Team' }]
  expect((await asCollector('POST', '', { source, packets: all }, by)).status).toBe(200)
}

const ALL = 'kind=texts&kind=traceroutes&kind=requests'
async function poll({ radio = 'valley', kinds = ALL, by = token, wait = 0 } = {}) {
  const { body } = await asCollector('GET', `/commands?radio=${radio}&${kinds}&wait=${wait}`, undefined, by)
  return body.commands
}
/** For how long a command is given; 0: it is not. A clock that jumps may exhaust the limit of requests. */
const take = async (id: string, claim = CLAIM, by = token) =>
  (await asCollector('POST', '/commands/take', { id, claim }, by)).body.remainingMs ?? 0
async function report(id: string, state: string, more: object = {}, by = token) {
  const one = { id, claim: CLAIM, state, error: null, notice: null, isAnswered: false, ...more }
  expect((await asCollector('POST', '/commands/report', { reports: [one] }, by)).status).toBe(204)
}

async function send(body: object = { text: 'over the hill' }, by = sender) {
  const answer = await by.send('POST', '/api/messages', body)
  return { status: answer.status, body: Object(await answer.json()) }
}

/** The newest message, as its sender sees it. */
async function message() {
  const { messages } = Object(await (await sender.send('GET', '/api/messages')).json())
  const { deliveryState, routingError, notice } = messages[0]
  return [deliveryState, routingError, ...(notice === undefined || notice === null ? [] : [notice])]
}

/** The id of the command for a text that was just sent. */
async function commanded(body?: object): Promise<string> {
  await poll()
  expect((await send(body)).status).toBe(202)
  return (await poll()).at(-1).id
}

describe('a text for the radio of a collector', () => {
  it('waits, is taken, and has the states that the collector reports', async () => {
    await poll()
    const sent = await send({ text: 'to the team', channel: 2, to: FAR, hopLimit: 1 })
    expect([sent.status, sent.body.message]).toMatchObject([
      202,
      { deliveryState: 'waiting', fromNodeNum: LOCAL, sentBy: 'sender', radio: 'valley' },
    ])
    const { packetId } = sent.body.message
    const commands = await poll()
    expect(commands).toStrictEqual([
      {
        id: expect.stringMatching(/^[\da-f]{32}$/),
        radio: 'valley',
        kind: 'text',
        content: {
          text: 'to the team',
          to: FAR,
          slot: 2,
          channel: '9:Team',
          replyId: null,
          emoji: false,
          wantAck: true,
          hopLimit: 1,
        },
        packetId,
        askedBy: 'sender',
        expiresInMs: 60_000,
      },
    ])
    const [{ id }] = commands
    app.clock.advance(10_000)
    expect([await take(id), await message(), await poll()]).toStrictEqual([50_000, ['taken', null], []])
    for (const state of ['sent', 'relayed', 'delivered']) {
      await report(id, state)
      expect(await message()).toStrictEqual([state, null])
    }
    await report(id, 'sent')
    await report(id, 'failed', { error: 'TIMEOUT' })
    expect(await message()).toStrictEqual(['delivered', null])
    expect(auditRows(app).at(-1)).toMatchObject({
      action: 'message_sent',
      username: 'sender',
      details: { packetId, to: FAR, radio: 'valley' },
    })
  })

  it('goes to the collector that takes it first, and to no other', async () => {
    const id = await commanded()
    const both = await Promise.all([take(id), take(id, 'd'.repeat(32))])
    expect(both.toSorted((a, b) => a - b)).toStrictEqual([0, 60_000])
    const winner = both[0] === 0 ? 'd'.repeat(32) : CLAIM
    expect(await take(id, winner)).toBe(60_000)
    await report(id, 'sent', { claim: winner === CLAIM ? 'd'.repeat(32) : CLAIM })
    expect(await message()).toStrictEqual(['taken', null])
  })

  it.each([
    ['a minute later', 60_000],
    ['after the clock was set forward', YEAR],
    ['after the clock was set back', -YEAR],
  ])('is told as not sent if nobody takes it: %s', async (_, ms) => {
    const id = await commanded()
    app.clock.advance(ms)
    expect([await take(id), await poll(), await take(id)]).toStrictEqual([0, [], 0])
    const [row] = app.store.sqlite.prepare('select delivery_state s, routing_error e from messages').all()
    expect(row).toStrictEqual({ s: 'failed', e: 'EXPIRED' })
    app.clock.advance(-ms)
    expect([await take(id), await poll()]).toStrictEqual([0, []])
  })

  it('is unknown if its collector took it and never spoke again, until it does', async () => {
    const id = await commanded()
    await take(id)
    app.clock.advance(600_000)
    await expireCommands({ ...app.ports, now: () => app.clock.now })
    expect(await message()).toStrictEqual(['unknown', 'UNREPORTED'])
    expect(await take(id)).toBe(0)
    await report(id, 'relayed')
    expect(await message()).toStrictEqual(['relayed', null])
    // A repetition was heard: only the destination itself knows better.
    await report(id, 'failed', { error: 'MAX_RETRANSMIT' })
    expect(await message()).toStrictEqual(['relayed', null])
    await report(id, 'failed', { error: 'NO_CHANNEL' })
    expect(await message()).toStrictEqual(['failed', 'NO_CHANNEL'])
    // A day after the last news it is forgotten, although no other one ends.
    app.clock.advance(2 * 86_400_000)
    await expireCommands({ ...app.ports, now: () => app.clock.now })
    expect(app.store.sqlite.prepare('select count(*) from radio_commands').pluck().get()).toBe(0)
  })

  it('that the collector refuses was not sent, and the page says why', async () => {
    const id = await commanded()
    await report(id, 'failed', { error: 'REFUSED', notice: 'Transmitting is switched off in the radio' })
    expect(await message()).toStrictEqual(['failed', 'REFUSED', 'Transmitting is switched off in the radio'])
    expect([await take(id), await poll()]).toStrictEqual([0, []])
    // Whoever did not take a command can only refuse it.
    const other = await commanded()
    await report(other, 'delivered')
    expect(await message()).toStrictEqual(['waiting', null])
  })

  it('is refused, and not stored, where no collector can send it', async () => {
    expect((await send()).body).toMatchObject({ code: 'radio_unavailable' })
    await poll({ kinds: 'kind=traceroutes' })
    expect((await send()).body.detail).toBe('The collector of the radio does not allow this')
    await poll()
    expect((await send({ text: 'x', channel: 5, radio: 'hill' })).body).toMatchObject({ code: 'invalid_request' })
    app.clock.advance(40_000)
    expect((await send()).body.detail).toBe('The collector of the radio is not listening for what to send')
    expect(app.store.sqlite.prepare('select count(*) from messages').pluck().get()).toBe(0)
    await poll()
    for (let n = 0; n < 20; n++) expect((await send()).status).toBe(202)
    expect((await send()).body).toMatchObject({ code: 'queue_full' })
  })

  it('reaches a request that waits, at once', async () => {
    const clock = createManualClock(START)
    const events = createEvents(clock)
    const keys: number[] = []
    const subscribe: typeof events.subscribe = (key, wake) => {
      keys.push(key)
      return events.subscribe(key, wake)
    }
    Object.assign(app.ports, { events: { ...events, subscribe } })
    const waiting = poll({ wait: 25 })
    await until(async () =>
      expect(app.store.sqlite.prepare('select count(*) from radio_listeners').pluck().get()).toBe(1),
    )
    expect((await send()).status).toBe(202)
    expect(await waiting).toHaveLength(1)
    await take((await poll())[0].id)
    const silent = poll({ wait: 25 })
    await until(() => {
      clock.advance(5000)
      expect(clock.now()).toBeGreaterThan(START + 60_000)
    })
    expect(await silent).toStrictEqual([])
    // None of them takes a stream of a user, whose keys are above 0.
    expect(keys).toHaveLength(3)
    expect(keys.every((key) => key < 0)).toBe(true)
  })
})

describe('a request that waits where live events are elsewhere', () => {
  it('stays open until somebody gives a command', async () => {
    const elsewhere = { open: () => Promise.reject(new Error('none')), tell() {} }
    const stub = { elsewhere, last: () => 0, subscribe: () => null, after: () => () => {}, isClosed: () => true }
    Object.assign(app.ports, { events: { ...createEvents(createManualClock(START)), ...stub } })
    const waiting = poll({ wait: 25 })
    await until(() => expect(app.store.sqlite.prepare('select count(*) from radio_listeners').pluck().get()).toBe(1))
    expect((await send()).status).toBe(202)
    expect(await waiting).toHaveLength(1)
  })
})

describe('a traceroute for the radio of a collector', () => {
  it('is commanded like a text', async () => {
    await poll()
    const answer = await sender.send('POST', '/api/traceroutes', { to: FAR })
    const { traceroute } = Object(await answer.json())
    expect([answer.status, traceroute]).toMatchObject([202, { state: 'waiting', fromNodeNum: LOCAL }])
    const [{ id, kind, content, packetId }] = await poll()
    expect([kind, content, packetId]).toStrictEqual(['traceroute', { to: FAR }, traceroute.requestId])
    await take(id)
    await report(id, 'failed', { error: 'NO_RESPONSE' })
    const { traceroutes } = Object(await (await sender.send('GET', '/api/traceroutes')).json())
    expect(traceroutes[0]).toMatchObject({ state: 'failed', routingError: 'NO_RESPONSE' })
  })
})

describe('settings of the radio of a collector', () => {
  const SETTINGS = `${ALL}&kind=settings`
  const show = async (sections: unknown, by = token, radio = 'valley') =>
    (await asCollector('PUT', '/settings', { radio, sections }, by)).body.isKnown
  const lora = { section: 'lora', readAt: START, values: { hopLimit: 3, region: 'EU_868' } }
  const read = async (path = '') => Object(await (await admin.send('GET', `/api/configuration${path}`)).json())

  it('are what is a setting and no secret here, whatever a collector says', async () => {
    const hostile = [
      { ...lora, values: { ...lora.values, psk: 'x', privateKey: 'y', ignoreIncoming: [1, [2]], __proto__: { a: 1 } } },
      { ...lora, section: 'security', values: { privateKey: 'cHJpdmF0ZQ==' } },
      { ...lora, section: 'network', values: { wifiPsk: 'secret' } },
      { ...lora, section: 'channels', values: { channels: [{ settings: { psk: 'AQ==' } }] } },
      { ...lora, section: 'device', values: { tzdef: 'x'.repeat(600), role: { deep: {} } } },
      { ...lora, section: 'invented', values: {} },
    ]
    expect(await show(hostile)).toBe(false)
    await poll({ kinds: SETTINGS })
    expect(await show(hostile)).toBe(true)
    const stored = app.store.sqlite
      .prepare('select section, "values" v, secrets s from device_config order by section')
      .all()
    expect(stored).toStrictEqual([
      { section: 'device', v: '{}', s: '{}' },
      { section: 'lora', v: '{"region":"EU_868","hopLimit":3}', s: '{}' },
    ])
    expect(await read()).toMatchObject({ source: 'valley', byCollector: true, editable: true })
    const other = await makeToken(['ingest', 'radio'])
    expect(await show([], other)).toBe(false)
    await deliver('hill', FAR, other)
    expect(await show([], other)).toBe(false)
    // Its owner shows them no longer, or it is gone.
    expect(await show([lora])).toBe(true)
    app.clock.advance(40_000)
    expect(await read()).toMatchObject({ source: 'valley', byCollector: true, editable: false })
    const answer = await admin.send('PUT', '/api/configuration/lora', { values: { hopLimit: 4 } })
    expect(Object(await answer.json())).toMatchObject({ code: 'radio_unavailable' })
    await poll()
    expect(await read()).toMatchObject({ sources: [], sections: [] })
  })

  it('are forgotten when their collector has not asked for commands for a day', async () => {
    // Those of a radio of this service stay.
    app.store.sqlite.exec(`insert into sources (id, kind, name, created_at) values (90, 'tcp', 'own', 1);
      insert into device_config values (90, 'lora', '{}', '{}', 1)`)
    const left = async (ms: number) => {
      await deleteOld({ ...app.ports, now: () => app.clock.now + ms }, async () => true)
      return app.store.sqlite.prepare('select count(*) from device_config where source_id <> 90').pluck().get()
    }
    await poll({ kinds: SETTINGS })
    await show([lora])
    expect([await left(0), await left(DAY), await left(DAY + 1)]).toStrictEqual([1, 1, 0])
    await show([lora])
    expect([await left(-DAY), await left(-DAY - 1)]).toStrictEqual([1, 0])
    await show([lora])
    app.store.sqlite.exec('delete from radio_listeners')
    expect(await left(0)).toBe(0)
    expect((await read()).sources).toStrictEqual(['own'])
  })

  it('are changed by one administrator at a time, also if several ask at once', async () => {
    await poll({ kinds: SETTINGS })
    await show([lora, { section: 'device', readAt: START, values: { tzdef: 'CET-1' } }])
    // Whatever the first one looked for, the other ones are done before it writes.
    const { store } = app
    let meanwhile: (() => Promise<void>) | null = null
    const atomic: typeof store.atomic = async (all, flush) => {
      const first = meanwhile
      meanwhile = null
      await first?.()
      return store.atomic(all, flush)
    }
    Object.assign(app.ports, { store: Object.create(store, { atomic: { value: atomic } }) })
    const ask = async (section: string, values: object) => {
      const answer = await admin.send('PUT', `/api/configuration/${section}`, { values })
      return [answer.status, Object(await answer.json()).code]
    }
    const rows = (table: string, which = 'true') =>
      store.sqlite.prepare(`select count(*) from ${table} where ${which}`).pluck().get()
    const both = async (section: string, values: object) => {
      const answers: unknown[] = []
      meanwhile = async () => void answers.push(await ask('device', { tzdef: 'UTC' }))
      answers.push(await ask(section, values), meanwhile)
      return [
        ...answers,
        rows('device_config_changes', "section = 'device' and state = 'waiting'"),
        rows('device_config_changes', "state = 'waiting'"),
        rows('radio_commands'),
        rows('audit_log', "action = 'configuration_updated'"),
      ]
    }
    const once = [[202, undefined], [409, 'configuration_change_in_progress'], null]
    expect(await both('lora', { hopLimit: 4 })).toStrictEqual([...once, 1, 1, 1, 1])
    // A change of which nothing was heard for long holds no other one up.
    store.sqlite.exec(
      `update device_config_changes set state = 'applying', requested_at = requested_at - ${16 * 60_000}`,
    )
    expect(await both('device', { tzdef: 'GMT' })).toStrictEqual([...once, 1, 1, 2, 2])
  })

  it.each([
    ['POST', '/api/messages', { text: 'x' }, '/api/messages'],
    ['POST', '/api/messages', { text: 'x' }, '/api/messages?channel=0'],
    ['POST', '/api/traceroutes', { to: FAR }, '/api/traceroutes'],
    ['POST', `/api/nodes/${FAR}/requests`, { kind: 'position' }, `/api/nodes/${FAR}/requests`],
    ['PUT', '/api/configuration/lora', { values: { hopLimit: 4 } }, '/api/configuration'],
    ['PUT', '/api/configuration/lora', { values: { hopLimit: 4 } }, '/api/configuration/lora'],
  ])(
    'that nobody took is not sent after a minute, also where no timer says so: %s %s, read as %4$s',
    async (method, path, body, list) => {
      Object.assign(app.ports, { radio: null })
      app.store.sqlite.exec(`insert into nodes (node_num, first_heard, last_heard) values (${FAR}, ${START}, ${START})`)
      await poll({ kinds: SETTINGS })
      await show([lora])
      expect((await admin.send(method, path, body)).status).toBe(202)
      const state = async () =>
        /"(?:deliveryState|state)":"(\w+)"/.exec(await (await admin.send('GET', list)).text())?.[1]
      app.clock.advance(59_999)
      expect(await state()).toBe('waiting')
      app.clock.advance(1)
      expect(await state()).toBe('failed')
    },
  )
})

describe('the scope radio', () => {
  it('is given by administrators, by name, and existing tokens do not have it', async () => {
    const old = await makeToken(['ingest'])
    expect((await asCollector('GET', `/commands?radio=valley&${ALL}`, undefined, old)).status).toBe(403)
    const writer = await app.user('writer', { configuration: { read: true, write: true } })
    const asked = await writer.send('POST', '/api/tokens', { name: 'mine', scopes: ['ingest', 'radio'] })
    expect(Object(await asked.json())).toMatchObject({ code: 'admin_required' })
    expect(auditRows(app).find(({ action }) => action === 'token_created')?.details['scopes']).toContain('radio')
  })

  it('reaches only the radios of the token', async () => {
    const id = await commanded()
    const other = await makeToken(['ingest', 'radio'])
    await deliver('hill', FAR, other)
    expect(await poll({ by: other })).toStrictEqual([])
    expect(await take(id, CLAIM, other)).toBe(0)
    await report(id, 'failed', { error: 'REFUSED' }, other)
    expect(await message()).toStrictEqual(['waiting', null])
  })

  it('ends with the rights of its owner, also for a request that waits', async () => {
    const boss = await app.user('boss')
    await admin.send('PUT', `/api/users/${boss.id}/admin`, { isAdmin: true })
    const made = Object(
      await (await boss.send('POST', '/api/tokens', { name: 'b', scopes: ['ingest', 'radio'] })).json(),
    )
    await deliver('ridge', FAR, made.token)
    const clock = createManualClock(START)
    Object.assign(app.ports, { events: createEvents(clock) })
    const waiting = poll({ radio: 'ridge', by: made.token, wait: 25 })
    await until(() => expect(app.store.sqlite.prepare('select count(*) from radio_listeners').pluck().get()).toBe(1))
    await admin.send('PUT', `/api/users/${boss.id}/admin`, { isAdmin: false })
    expect((await send({ text: 'x', radio: 'ridge' })).status).toBe(202)
    await until(() => {
      clock.advance(5000)
      expect(clock.now()).toBeGreaterThan(START + 60_000)
    })
    expect(await waiting).toStrictEqual([])
    expect((await asCollector('POST', '/commands/take', { id: CLAIM, claim: CLAIM }, made.token)).status).toBe(403)
  })
})
