import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildService, type Built, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { type RadioDevice, startRadioDevice } from '../support/radio/device.ts'
import { figure } from './figures.ts'

const PASSWORD = 'three services on one hill'
const HOLDS = 'This instance has the radios and the schedules'
const INSTANCES = 3
const SEND_EVERY_MS = 400
/** Longer than the lease. */
const STANDSTILL_MS = 22_000
const TAKEN_WITHIN_MS = 30_000

const ATTACKS = ['kill', 'stand still', 'terminate', 'kill', 'stand still', 'kill all'] as const

let built: Built
let device: RadioDevice
const dir = mkdtempSync(join(tmpdir(), 'mesh-instances-'))
const running = new Set<Service>()

beforeAll(async () => {
  built = buildService()
  // The radio does not stop a process that should no longer write.
  device = await startRadioDevice({ keepsClients: true })
})
afterAll(async () => {
  await Promise.all([...running].map((service) => service.stop('SIGKILL')))
  await device.stop()
  rmSync(dir, { recursive: true })
})

async function start(): Promise<Service> {
  const service = await startService(built, {
    DATA_DIR: dir,
    ADMIN_PASSWORD: PASSWORD,
    MESHTASTIC_TCP: `127.0.0.1:${device.port}`,
  })
  running.add(service)
  return service
}

async function end(service: Service, signal: NodeJS.Signals): Promise<void> {
  running.delete(service)
  await service.stop(signal)
}

/** The one that took the lease last. */
function holder(): Service {
  const times = [...running].flatMap((service) => {
    const line = service.lines.findLast((each) => each.includes(HOLDS))
    return line === undefined ? [] : [{ service, time: String(Object(JSON.parse(line)).time) }]
  })
  const latest = times.toSorted((a, b) => a.time.localeCompare(b.time)).at(-1)
  if (latest === undefined) throw new Error('nobody has the lease')
  return latest.service
}

function sentTexts(): string[] {
  const utf8 = new TextDecoder()
  return device.received.flatMap(({ payloadVariant }) => {
    const packet = payloadVariant.case === 'packet' ? payloadVariant.value.payloadVariant : null
    return packet?.case === 'decoded' ? [utf8.decode(packet.value.payload)] : []
  })
}

async function attack(kind: (typeof ATTACKS)[number]): Promise<void> {
  const victim = holder()
  switch (kind) {
    case 'kill':
      await end(victim, 'SIGKILL')
      await start()
      return
    case 'terminate':
      await end(victim, 'SIGTERM')
      await start()
      return
    case 'stand still':
      victim.process.kill('SIGSTOP')
      await wait(STANDSTILL_MS)
      victim.process.kill('SIGCONT')
      return
    case 'kill all':
      await Promise.all([...running].map((service) => end(service, 'SIGKILL')))
      await Promise.all(Array.from({ length: INSTANCES }, start))
      return
    default:
      kind satisfies never
  }
}

test('whichever instances die at any time, no text is sent twice, and no acknowledged text is lost', async () => {
  const first = await Promise.all(Array.from({ length: INSTANCES }, start))
  const cookie = await signInAt(String(first[0]?.url), PASSWORD)
  const headers = { 'content-type': 'application/json', cookie }
  const acknowledged: string[] = []
  const refused = new Map<string, number>()
  let n = 0
  const over = new AbortController()
  const send = async () => {
    const text = `text ${n}`
    const service = [...running][n++ % running.size]
    try {
      const init = { method: 'POST', headers, body: JSON.stringify({ text }), signal: AbortSignal.timeout(60_000) }
      const answer = await fetch(`${service?.url}/api/messages`, init)
      const { code } = Object(await answer.json())
      if (answer.status === 202) acknowledged.push(text)
      else refused.set(code, (refused.get(code) ?? 0) + 1)
    } catch {
      refused.set('no answer', (refused.get('no answer') ?? 0) + 1)
    }
  }
  const load = async () => {
    const all: Promise<void>[] = []
    while (!over.signal.aborted) {
      if (running.size > 0) all.push(send())
      await wait(SEND_EVERY_MS)
    }
    await Promise.all(all)
  }
  const loading = load()
  await expect.poll(() => sentTexts().length, { timeout: TAKEN_WITHIN_MS }).toBeGreaterThan(0)
  for (const kind of ATTACKS) {
    const before = device.connections()
    const began = performance.now()
    await attack(kind)
    await expect.poll(() => device.connections(), { timeout: TAKEN_WITHIN_MS }).toBeGreaterThan(before)
    const sent = sentTexts().length
    await expect.poll(() => sentTexts().length, { timeout: TAKEN_WITHIN_MS }).toBeGreaterThan(sent)
    figure(`${kind}: sending again after`, `${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  over.abort()
  await loading
  const last = [...running]
  await Promise.all(last.map((service) => end(service, 'SIGTERM')))
  await end(await start(), 'SIGTERM')

  const sent = sentTexts()
  expect(sent.filter((text, i) => sent.indexOf(text) !== i)).toStrictEqual([])
  const database = new Database(join(dir, 'mesh.db'), { readonly: true })
  const rows = database.prepare('select text, delivery_state from messages').raw().all().map(Object)
  database.close()
  const states = new Map<string, string>(rows.map(([text, state]) => [String(text), String(state)]))
  expect(acknowledged.filter((text) => !states.has(text))).toStrictEqual([])
  expect([...states].filter(([, state]) => state === 'queued')).toStrictEqual([])
  expect(sent.filter((text) => !states.has(text))).toStrictEqual([])
  figure('texts', `${n} asked, ${acknowledged.length} acknowledged, ${sent.length} sent`)
  figure('refused', JSON.stringify(Object.fromEntries(refused)))
})
