import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canMount, mountSmallDisk } from '../support/backup/small-disk.ts'
import { buildService, type Built, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { portOf } from '../support/servers/port-of.ts'
import { item } from '../support/mesh/delivery.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { figure } from './figures.ts'

const PASSWORD = 'the first administrator'
const HOLDS = 'This instance has the radios and the schedules'
/** Run side by side: a round lasts at least as long as the lease of the killed instance. */
const HILLS = 5
const ROUNDS = 20
const DESTINATIONS = 3
const json = { 'content-type': 'application/json' }

let built: Built
beforeAll(() => {
  built = buildService()
})

/** What one receiver got: the alerts of each message by its id, and the number of deliveries. */
type Received = { readonly messages: Map<string, number[]>; arrived: number }

/**
 * Receives webhooks, each path for itself, and answers slowly: the sender is often killed before it gets the answer.
 */
async function startReceiver(): Promise<{ server: Server; url: string; at(path: string): Received }> {
  const received = new Map<string, Received>()
  const at = (path: string) => {
    const known = received.get(path) ?? { messages: new Map(), arrived: 0 }
    received.set(path, known)
    return known
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { data } = Object(JSON.parse(body))
      const known = at(request.url ?? '')
      known.arrived++
      known.messages.set(
        String(request.headers['webhook-id']),
        Array.from(data.alerts, (alert) => Number(Object(alert).id)),
      )
      setTimeout(() => response.end(), Math.random() * 400)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${portOf(server)}`, at }
}

let receiver: Awaited<ReturnType<typeof startReceiver>>
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => {
  receiver.server.close()
  receiver.server.closeAllConnections()
})

async function post(url: string, path: string, headers: Record<string, string>, body: object) {
  const init = { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) }
  const answer = await fetch(`${url}/api${path}`, init)
  return { status: answer.status, body: Object(await answer.json()) }
}

function rowsOf<T>(dir: string, query: string): T[] {
  const database = new Database(join(dir, 'mesh.db'), { readonly: true })
  try {
    return database.prepare<[], T>(query).all()
  } finally {
    database.close()
  }
}

async function until(isSo: () => boolean | Promise<boolean>, seconds: number): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries === seconds * 20) throw new Error('the expected state was not reached')
    await wait(50)
  }
}

/** An administrator's rules that each wait for one word, destinations, and a token that delivers packets. */
async function prepare(url: string, hill: string, words: readonly string[]) {
  const cookie = { cookie: await signInAt(url, PASSWORD) }
  const destinations: unknown[] = []
  for (let n = 0; n < DESTINATIONS; n++) {
    const settings = { url: `${receiver.url}/${hill}/${n}` }
    const made = await post(url, '/alerts/destinations', cookie, { kind: 'webhook', name: `Hook ${n}`, settings })
    destinations.push(made.body.destination.id)
  }
  for (const word of words) {
    const rule = { kind: 'message', name: word, match: { mode: 'word', words: [word] }, destinations }
    expect((await post(url, '/alerts/rules', cookie, rule)).status).toBe(201)
  }
  const { token } = (await post(url, '/tokens', cookie, { name: 'hill', scopes: ['ingest'] })).body
  return { authorization: `Bearer ${String(token)}` }
}

function deliver(url: string, bearer: Record<string, string>, words: string) {
  const packets = [{ data: item(packet(text(words), { from: 0x1000 })), receivedAt: Date.now() }]
  return post(url, '/ingest', bearer, { source: 'hill', packets })
}

const sorted = (ids: readonly number[]) => ids.toSorted((a, b) => a - b)

/** Two instances with one database; the sending one is killed again and again. */
async function attack(hill: string) {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-alerts-'))
  const start = () => startService(built, { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, LOGIN_MAX_FAILURES: '1000' })
  const words = Array.from({ length: ROUNDS }, (_, round) => `word${round}x`)
  const running = [await start(), await start()]
  const holder = () => running.find(({ lines }) => lines.some((line) => line.includes(HOLDS)))
  try {
    const bearer = await prepare(running[0]?.url ?? '', hill, words)
    let acknowledged = 0
    for (const word of words) {
      await until(() => holder() !== undefined, 60)
      // Within the seconds in which due messages are sent.
      await wait(Math.random() * 2500)
      const url = running[Math.random() < 0.5 ? 0 : 1]?.url ?? ''
      const delivering = deliver(url, bearer, word).catch(() => null)
      await wait(Math.random() * 40)
      const victim = holder()
      if (victim !== undefined) running.splice(running.indexOf(victim), 1)
      await victim?.stop('SIGKILL')
      const answer = await delivering
      if (answer?.status === 200) acknowledged++
      running.push(await start())
    }
    await until(() => rowsOf(dir, "select 1 from alert_deliveries where state = 'waiting'").length === 0, 240)
    const alerts = sorted(rowsOf<{ id: number }>(dir, 'select id from alerts').map(({ id }) => id))
    const texts = rowsOf(dir, "select 1 from messages where direction = 'in'").length
    return { acknowledged, alerts, texts }
  } finally {
    await Promise.all(running.map((service) => service.stop('SIGKILL')))
    rmSync(dir, { recursive: true, force: true })
  }
}

test('kill -9 between event, outbox and delivery: no alert is lost, and none is in two messages', async () => {
  const hills = Array.from({ length: HILLS }, (_, n) => `hill${n}`)
  const found = await Promise.all(hills.map(attack))
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  const places = hills.flatMap((hill) => Array.from({ length: DESTINATIONS }, (_, n) => receiver.at(`/${hill}/${n}`)))
  const messages = sum(places.map((place) => place.messages.size))
  const arrived = sum(places.map((place) => place.arrived))
  figure('alerts: kill -9 of the instance that sends, rounds', HILLS * ROUNDS)
  figure('alerts: texts acknowledged', sum(found.map(({ acknowledged }) => acknowledged)))
  figure(
    'alerts: texts stored, and alerts of them',
    `${sum(found.map(({ texts }) => texts))}, ${sum(found.map(({ alerts }) => alerts.length))}`,
  )
  figure('alerts: messages that arrived, and repeats with the same ID', `${messages}, ${arrived - messages}`)
  for (const [index, { acknowledged, texts, alerts }] of found.entries()) {
    expect(texts).toBeGreaterThanOrEqual(acknowledged)
    expect(alerts).toHaveLength(texts)
    for (let n = 0; n < DESTINATIONS; n++) {
      const told = [...receiver.at(`/hill${index}/${n}`).messages.values()].flat()
      expect(sorted(told)).toStrictEqual(alerts)
    }
  }
})

describe.skipIf(!canMount)('a disk that is full while an alert is due', () => {
  test('loses nothing: it is logged, and the message is sent when there is room', async () => {
    const disk = mountSmallDisk(64)
    let service: Service | null = null
    try {
      service = await startService(built, { DATA_DIR: disk.dir, ADMIN_PASSWORD: PASSWORD })
      const { url, lines } = service
      const bearer = await prepare(url, 'disk', ['help'])
      expect((await deliver(url, bearer, 'help')).status).toBe(200)
      disk.fill()
      const health = async () => Object(await (await fetch(`${url}/api/health`)).json())
      const refused = await deliver(url, bearer, 'help again')
      expect(refused).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
      const due = Date.now() + 75_000
      await until(() => Date.now() > due, 80)
      expect(await health()).toMatchObject({ unavailable: 'disk' })
      const arrivedWhileFull = receiver.at('/disk/0').arrived
      const said = lines.filter((line) => line.includes('could not be sent')).length
      figure('alerts: lines in the log about sending, in 15 s with a full disk', said)
      disk.clear()
      await until(async () => (await fetch(`${url}/api/health`)).status === 200, 60)
      const again = await deliver(url, bearer, 'help again')
      expect(again.status).toBe(200)
      await until(() => rowsOf(disk.dir, "select 1 from alert_deliveries where state = 'waiting'").length === 0, 200)
      figure('alerts: messages that arrived while the disk was full', arrivedWhileFull)
      for (let n = 0; n < DESTINATIONS; n++) {
        expect(sorted([...receiver.at(`/disk/${n}`).messages.values()].flat())).toStrictEqual([1, 2])
      }
    } finally {
      await service?.stop('SIGKILL')
      disk.remove()
    }
  })
})
