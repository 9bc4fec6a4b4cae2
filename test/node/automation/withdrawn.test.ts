import { afterEach, expect, it } from 'vitest'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { encodeText as encode } from '../../../src/meshtastic/link/to-radio.ts'
import type { Client } from '../../support/app.ts'
import { ANNOUNCE, MINUTE, SCHEDULE } from '../../support/automation.ts'
import { FAR, packetsSent, type RadioService, startRadioService, until } from '../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

type Started = { readonly service: RadioService; readonly admin: Client; readonly path: string }

const RULE = { ...ANNOUNCE, when: { kind: 'interval', hours: 3 }, channels: [0, 1, 2] } as const

/** Advances time; the radio answers each heartbeat. */
async function pass({ clock, radio }: RadioService, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    clock.advance(MINUTE)
    await until(() => expect(radio.links()[0]?.lastFrameAt).toBe(clock.now()))
  }
}

/** A rule that has something to send on three channels: one packet is with the radio, two wait. */
async function startWaiting(): Promise<Started> {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  expect((await admin.send('POST', '/api/automation', RULE)).status).toBe(201)
  service.automate()
  await pass(service, 180)
  await untilRun(service, ['sent', null])
  return { service, admin, path: '/api/automation/1' }
}

const untilRun = ({ store }: RadioService, expected: unknown[]) =>
  until(() => {
    const run = Object(store.sqlite.prepare('select outcome, reason from automation_runs order by id desc').get())
    expect([run.outcome, run.reason]).toStrictEqual(expected)
  })

const states = ({ store }: RadioService) =>
  store.sqlite
    .prepare("select channel || ' ' || delivery_state || ' ' || coalesce(routing_error, '') from messages order by id")
    .pluck()
    .all()

const encodeText = (id: number) =>
  encode({ to: BROADCAST, channel: 0, id, hopLimit: 3, wantAck: true, text: 'Hello', replyId: null, isEmoji: false })

/** Time enough for all waiting packets to be sent. */
async function letPass(service: RadioService): Promise<void> {
  for (let n = 0; n < 5; n += 1) service.clock.advance(2200)
  expect((await service.send({ text: 'the last one' })).status).toBe(202)
  await service.sent()
}

it.each([
  ['switched off', 'PUT', { ...RULE, enabled: false }],
  ['changed', 'PUT', { ...RULE, text: 'Something else' }],
  ['deleted', 'DELETE', undefined],
])('waiting packets of a rule that is %s are not sent, and this is shown', async (_, method, body) => {
  const { service, admin, path } = await startWaiting()
  await service.sent()
  expect(packetsSent(service)).toBe(1)
  expect((await admin.send(method, path, body)).status).toBeLessThan(300)
  await until(() => expect(states(service)).toStrictEqual(['0 sent ', '1 failed WITHDRAWN', '2 failed WITHDRAWN']))
  await untilRun(service, ['failed', 'changed'])
  await letPass(service)
  expect(packetsSent(service)).toBe(2)
  const { messages } = Object(await (await admin.send('GET', '/api/messages')).json())
  expect(messages[1]).toMatchObject({ deliveryState: 'failed', routingError: 'WITHDRAWN' })
  if (method === 'DELETE') return
  const { runs } = Object(await (await admin.send('GET', `${path}/runs`)).json())
  expect(runs).toMatchObject([{ outcome: 'failed', reason: 'changed' }])
})

it('saving a rule unchanged withdraws nothing', async () => {
  const { service, admin, path } = await startWaiting()
  expect((await admin.send('PUT', path, RULE)).status).toBe(200)
  for (const channel of [0, 1, 2]) {
    expect(await service.sent()).toMatchObject({ channel })
    service.clock.advance(2200)
  }
  await until(() => expect(states(service)).toStrictEqual(['0 sent ', '1 sent ', '2 sent ']))
  await untilRun(service, ['sent', null])
})

/** A rule that requests a traceroute, behind three users' requests: its packet waits for a minute and a half. */
async function startWaitingTraceroute(): Promise<Started> {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  const action = { kind: 'traceroute', to: FAR }
  const made = await admin.send('POST', '/api/automation', { ...SCHEDULE, cron: '5 12 * * *', action })
  expect(made.status).toBe(201)
  service.automate()
  await pass(service, 4)
  service.clock.advance(50_000)
  for (let n = 0; n < 4; n += 1) {
    expect((await service.sender.send('POST', '/api/traceroutes', { to: FAR })).status).toBe(202)
  }
  await until(() => {
    service.clock.advance(100)
    expect(service.store.sqlite.prepare('select outcome from automation_runs').pluck().all()).toStrictEqual(['sent'])
  })
  return { service, admin, path: '/api/automation/1' }
}

const lastTraceroute = ({ store }: RadioService) =>
  store.sqlite.prepare('select state, routing_error error, requested_by who from traceroutes order by id desc').get()

const TAKEN_BACK = { state: 'failed', error: 'WITHDRAWN', who: 'automation:Net' }

it('a waiting traceroute is withdrawn, and then its run has sent nothing', async () => {
  const { service, admin, path } = await startWaitingTraceroute()
  expect(lastTraceroute(service)).toStrictEqual({ state: 'queued', error: null, who: 'automation:Net' })
  expect((await admin.send('DELETE', path)).status).toBe(204)
  await until(() => expect(lastTraceroute(service)).toStrictEqual(TAKEN_BACK))
  await untilRun(service, ['skipped', 'changed'])
})

it('a change by another process withdraws packets at the next check of the rules', async () => {
  const { service } = await startWaitingTraceroute()
  service.store.sqlite.exec('update automations set enabled = 0, revision = revision + 1')
  await until(() => {
    service.clock.advance(100)
    expect(lastTraceroute(service)).toStrictEqual(TAKEN_BACK)
  })
  await untilRun(service, ['skipped', 'changed'])
})

it('a packet in preparation is not sent either when its rule changes', async () => {
  const service = await startRadioService()
  running.push(service)
  const rule = { automationId: 1, revision: 1 }
  const [first, second] = [service.radio.reserve('text', { rule }), service.radio.reserve('text', { rule })]
  service.radio.withdraw(({ revision }) => revision === 1)
  const third = service.radio.reserve('text', { rule: { automationId: 1, revision: 2 } })
  for (const { packetId, send } of [first, second, third]) send(encodeText(packetId))
  expect(await service.sent()).toMatchObject({ id: third.packetId })
  await letPass(service)
  expect(packetsSent(service)).toBe(2)
})

it('rules leave places for users, who go first, and report when their own packets are withdrawn', async () => {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  const channels = [0, 1, 2, 3, 4, 5, 6, 7]
  for (const name of ['one', 'two', 'three']) {
    expect((await admin.send('POST', '/api/automation', { ...RULE, name, channels })).status).toBe(201)
  }
  service.automate()
  await pass(service, 180)
  const runs = () =>
    service.store.sqlite
      .prepare("select outcome || ' ' || coalesce(reason, '') || json_array_length(packets) from automation_runs")
      .pluck()
      .all()
  // One is with the radio, and 20 wait.
  await until(() => expect(runs()).toStrictEqual(['sent 8', 'sent 8', 'failed queue_full5']))
  for (let n = 0; n < 30; n += 1) expect((await service.send({ text: `person ${n}` })).status).toBe(202)
  expect(await service.send({ text: 'person 30' })).toMatchObject({ status: 429, body: { code: 'queue_full' } })
  expect(await service.sent()).toMatchObject({ channel: 0 })
  for (let n = 0; n < 2; n += 1) {
    service.clock.advance(2200)
    const { payloadVariant } = await service.sent()
    expect(payloadVariant.value).toMatchObject({ payload: new TextEncoder().encode(`person ${n}`) })
  }
})
