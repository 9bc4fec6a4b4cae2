import { afterEach, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { startAutomation } from '../../../src/node/automation.ts'
import { type NodeRadio, openRadio } from '../../../src/node/radio/radio.ts'
import { auditRows, START } from '../../support/app.ts'
import { ACKNOWLEDGE, ANNOUNCE, createTestAutomation, HOUR, MINUTE, SCHEDULE } from '../../support/automation.ts'
import { fromRadio } from '../../support/radio/device.ts'
import {
  FAR,
  LORA,
  OWN,
  packetsSent,
  type RadioService,
  startRadioService,
  until,
} from '../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

async function startService(rule: object, extra: readonly Uint8Array[] = [LORA]): Promise<RadioService> {
  const service = await startRadioService(extra)
  running.push(service)
  const admin = await service.app.admin()
  expect((await admin.send('POST', '/api/automation', rule)).status).toBe(201)
  service.automate()
  return service
}

const said = (words: string, id: number, from = FAR) =>
  fromRadio({
    case: 'packet',
    value: {
      from,
      to: BROADCAST,
      id,
      hopStart: 3,
      hopLimit: 2,
      // A radio does not hear itself: with a signal, another node would be speaking in its name.
      ...(from === OWN ? {} : { rxSnr: 5.5, rxRssi: -90 }),
      payloadVariant: {
        case: 'decoded',
        value: { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(words) },
      },
    },
  })

/** The radio sends something, which is stored and evaluated. */
async function hear(service: RadioService, packet: Uint8Array, { messages, runs }: { messages: number; runs: number }) {
  service.device.send(packet)
  await until(() => {
    service.clock.advance(100)
    expect(counts(service)).toStrictEqual({ messages, runs })
  })
}

/** Advances time; the radio answers each heartbeat. */
async function pass({ clock }: RadioService, radio: NodeRadio, minutes: number) {
  for (let minute = 0; minute < minutes; minute += 1) {
    clock.advance(MINUTE)
    await until(() => expect(radio.links()[0]?.lastFrameAt).toBe(clock.now()))
  }
}

function counts({ store }: RadioService): unknown {
  return store.sqlite
    .prepare('select (select count(*) from messages) messages, (select sum(count) from automation_runs) runs')
    .get()
}

function textOf({ payloadVariant }: MeshPacket): string {
  return payloadVariant.case === 'decoded' ? new TextDecoder().decode(payloadVariant.value.payload) : ''
}

it('answers a ping over the air once, but not its copy, a replay or our own words', async () => {
  const service = await startService({
    ...ACKNOWLEDGE,
    answer: { kind: 'text', text: 'ping from {senderLongName}: {hops} hop, {snr} dB' },
  })
  await hear(service, said('Ping', 501), { messages: 2, runs: 1 })
  const answer = await service.sent()
  expect(answer).toMatchObject({ to: BROADCAST, channel: 0, hopLimit: 2, wantAck: true })
  expect(answer.payloadVariant.value).toMatchObject({ replyId: 501, emoji: 0 })
  expect(textOf(answer)).toBe('ping from Far Hill: 1 hop, 5.5 dB')
  await service.untilState('sent')
  service.answer(answer.id, OWN)
  await service.untilState('relayed')

  await pass(service, service.radio, 2)
  await hear(service, said('Ping', 501), { messages: 2, runs: 2 })
  await hear(service, said('ping from Far Hill', 502, OWN), { messages: 3, runs: 3 })
  await pass(service, service.radio, 2)
  await hear(service, said('[bridge] ping from Far Hill: 1 hop, 5.5 dB', 503), { messages: 4, runs: 4 })
  const admin = await service.app.admin()
  const { runs } = Object(await (await admin.send('GET', '/api/automation/1/runs')).json())
  expect(runs.map(({ outcome, reason }: Record<string, string>) => reason ?? outcome)).toStrictEqual([
    'echo',
    'own_message',
    'duplicate',
    'sent',
  ])
  expect(packetsSent(service)).toBe(1)
  expect(auditRows(service.app).filter(({ action }) => action === 'message_sent')).toMatchObject([
    { username: 'system', details: { automation: 1, packetId: answer.id } },
  ])

  // The radio remembers it and replays it to the next process.
  const next = await service.restart()
  service.automate(next)
  await until(() => expect(next.links()[0]?.state).toBe('connected'))
  await hear(service, said('Ping', 501), { messages: 4, runs: 5 })
  expect(packetsSent(service)).toBe(1)
})

it('announces on time, in step with the queue of the radio, and once across a restart', async () => {
  const service = await startService({ ...ANNOUNCE, when: { kind: 'interval', hours: 3 }, channels: [0, 1] })
  await pass(service, service.radio, 180)
  await until(() => expect(counts(service)).toStrictEqual({ messages: 2, runs: 1 }))
  expect(textOf(await service.sent())).toBe('Hello from TR')
  // The second one waits: a radio drops a text that comes right after another.
  expect(packetsSent(service)).toBe(1)
  service.clock.advance(2200)
  expect(await service.sent()).toMatchObject({ channel: 1 })

  const next = await service.restart()
  service.automate(next)
  await until(() => expect(next.links()[0]?.state).toBe('connected'))
  await pass(service, next, 30)
  await until(async () => {
    const admin = await service.app.admin()
    const { automation } = Object(await (await admin.send('GET', '/api/automation/1')).json())
    expect(automation.lastRun).toMatchObject({ outcome: 'sent' })
  })
  expect(packetsSent(service)).toBe(2)
})

it('refuses while the radio must not transmit', async () => {
  const silent = fromRadio({
    case: 'config',
    value: { payloadVariant: { case: 'lora', value: { hopLimit: 2, txEnabled: false } } },
  })
  const service = await startService({ ...SCHEDULE, cron: '5 12 * * *' }, [silent])
  await pass(service, service.radio, 6)
  await until(() => expect(counts(service)).toStrictEqual({ messages: 0, runs: 1 }))
  const admin = await service.app.admin()
  const { automations } = Object(await (await admin.send('GET', '/api/automation')).json())
  expect(automations).toMatchObject([
    {
      state: 'blocked',
      blockedBy: 'tx_disabled',
      nextRunAt: START + 5 * MINUTE + 24 * HOUR,
      lastRun: { outcome: 'skipped', reason: 'tx_disabled' },
    },
  ])
  expect(packetsSent(service)).toBe(0)
})

it('does not spin when a missed run cannot be recorded', async () => {
  const { app, add } = await createTestAutomation()
  await add({ ...SCHEDULE, cron: '*/5 * * * *' })
  // The run of 12:05 was missed, that of 12:10 is due, and neither can be recorded.
  app.clock.advance(11 * MINUTE)
  app.store.sqlite.exec('drop table automation_runs')
  const delays: number[] = []
  let fire = () => {}
  const clock = {
    now: () => app.clock.now,
    after(delayMs: number, run: () => void) {
      delays.push(delayMs)
      fire = run
      return () => {}
    },
  }
  const automatons = startAutomation({ ...app.ports, events: null }, clock)
  fire()
  await until(() => expect(delays).toHaveLength(3))
  expect(delays).toStrictEqual([30_000, 10_000, 1000])
  await automatons.stop()
  app.close()
})

it('is left to the process with the radio, like runs under way', async () => {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  expect((await admin.send('POST', '/api/automation', { ...SCHEDULE, cron: '5 12 * * *' })).status).toBe(201)
  expect((await service.send({ text: 'on its way' })).status).toBe(202)
  await service.untilState('sent')
  await startOther(service).stop()
  await service.untilState('sent')
  // Its timers come first.
  const other = startOther(service)
  service.automate()
  await pass(service, service.radio, 6)
  await until(() => expect(packetsSent(service)).toBe(2))
  await other.stop()
  const runs = service.store.sqlite.prepare('select outcome, reason from automation_runs').all()
  expect(runs).toStrictEqual([{ outcome: 'sent', reason: null }])
})

/** A process on the same database without radios. */
function startOther({ store, clock }: RadioService): { stop(): Promise<void> } {
  const parsed = parseConfig({})
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const log = createLog({ level: 'error', format: 'json', now: clock.now, write: (line) => expect(line).toBe('') })
  const radio = openRadio({ config: parsed.config, store, log, clock })
  radio.start()
  const automation = startAutomation({ store, radio, events: null, log, now: clock.now }, clock)
  return {
    async stop() {
      await automation.stop()
      await radio.close()
    },
  }
}
