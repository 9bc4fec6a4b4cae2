import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Built, buildService, type Service, startService } from '../support/built-service.ts'
import { type RadioDevice, startRadioDevice } from '../support/radio-device.ts'

const PASSWORD = 'two services on one hill'
const HOLDS = 'This instance has the radios and the schedules'

let built: Built
beforeAll(() => {
  built = buildService()
})
afterAll(() => built.remove())

let dir: string
let device: RadioDevice
const running: Service[] = []
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-several-'))
  device = await startRadioDevice({ keepsClients: true })
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop('SIGKILL')))
  await device.stop()
  rmSync(dir, { recursive: true })
})

async function start(env: Record<string, string> = {}): Promise<Service> {
  const service = await startService(built, {
    DATA_DIR: dir,
    ADMIN_PASSWORD: PASSWORD,
    MESHTASTIC_TCP: `127.0.0.1:${device.port}`,
    ...env,
  })
  running.push(service)
  return service
}

const says = (service: Service, text: string) => expect.poll(() => service.lines.join('\n')).toContain(text)
const isHolder = (service: Service) => service.lines.some((line) => line.includes(HOLDS))

async function signIn({ url }: Pick<Service, 'url'>) {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ username: 'admin', password: PASSWORD })
  const answer = await fetch(`${url}/api/auth/login`, { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
  return { ...headers, cookie: String(answer.headers.getSetCookie()[0]).split(';')[0] ?? '' }
}

/** Until the radio can send. */
async function connected({ url }: Pick<Service, 'url'>, headers: Record<string, string>): Promise<void> {
  const state = async () => Object(await (await fetch(`${url}/api/info`, { headers })).json()).link?.state
  await expect.poll(state).toBe('connected')
}

const sendText = ({ url }: Pick<Service, 'url'>, headers: Record<string, string>, text: string) =>
  fetch(`${url}/api/messages`, { method: 'POST', headers, body: JSON.stringify({ text }) })

function storedMessages(): unknown[] {
  const database = new Database(join(dir, 'mesh.db'), { readonly: true })
  try {
    return database.prepare('select text, delivery_state, routing_error from messages order by id').raw().all()
  } finally {
    database.close()
  }
}

const sentPackets = () => device.received.filter(({ payloadVariant }) => payloadVariant.case === 'packet')

test('of those that start at the same instant one has the radio; after kill -9 another one, within 30 s', async () => {
  const all = await Promise.all([start(), start(), start()])
  const [holder, ...more] = all.filter(isHolder)
  expect(more).toStrictEqual([])
  await expect.poll(() => device.connections()).toBe(1)
  const killedAt = performance.now()
  await holder?.stop('SIGKILL')
  await expect.poll(() => device.connections(), { timeout: 30_000 - (performance.now() - killedAt) }).toBe(2)
  expect(all.filter(isHolder)).toHaveLength(2)
})

test('one that ends in order hands over at once; one that starts alone after kill -9 waits for nobody', async () => {
  const first = await start()
  const second = await start()
  expect([isHolder(first), isHolder(second)]).toStrictEqual([true, false])
  expect(await first.stop('SIGTERM')).toBe(0)
  await says(second, HOLDS)
  await second.stop('SIGKILL')
  expect(isHolder(await start())).toBe(true)
})

test('one that was stopped while packets waited sends none of them after another one took over', async () => {
  const holder = await start()
  const headers = await signIn(holder)
  await connected(holder, headers)
  for (const text of ['one', 'two', 'three']) expect((await sendText(holder, headers, text)).status).toBe(202)
  await device.next('packet')
  holder.process.kill('SIGSTOP')
  const other = await start()
  await says(other, HOLDS)
  await expect.poll(() => device.connections()).toBe(2)
  const before = sentPackets().length
  holder.process.kill('SIGCONT')
  await says(holder, 'Another instance has taken over the radios')
  await says(holder, '"state":"stopped"')
  expect(await holder.stop('SIGTERM')).toBe(0)
  expect(sentPackets()).toHaveLength(before)
  expect(before).toBeLessThan(3)
  for (const [, state] of storedMessages().map(Object)) expect(['sent', 'unknown', 'failed']).toContain(state)
})
