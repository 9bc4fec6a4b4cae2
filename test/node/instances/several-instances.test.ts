import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import Database from 'better-sqlite3'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AdminMessageSchema } from '../../../src/meshtastic/gen/admin_pb.ts'
import { UserSchema, WaypointSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { buildService, type Built, type Service, signInAt, startService } from '../../support/built/built-service.ts'
import { writePlanet } from '../../support/maps/planet.ts'
import { startPlanetServer } from '../../support/maps/planet-server.ts'
import { type Nginx, startNginx } from '../../support/servers/nginx.ts'
import { type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'
import { type RedisServer, startRedis } from '../../support/servers/redis.ts'

const PASSWORD = 'two services on one hill'
const JSON_BODY = { 'content-type': 'application/json' }
const HOLDS = 'This instance has the radios and the schedules'

let built: Built
beforeAll(() => {
  built = buildService()
})

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

const signIn = async ({ url }: Pick<Service, 'url'>) => ({ ...JSON_BODY, cookie: await signInAt(url, PASSWORD) })

/** As if the holder of the radios had been silent for the length of its lease. */
function expireLease(): void {
  const instances = new Database(join(dir, 'instances.db'))
  try {
    expect(instances.prepare('update lease set expires_at = 0 where owner is not null').run().changes).toBe(1)
  } finally {
    instances.close()
  }
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

test('of instances that start together one gets the radio; after kill -9 another one does, within 30 s', async () => {
  const all = await Promise.all([start(), start(), start()])
  const [holder, ...more] = all.filter(isHolder)
  expect(more).toStrictEqual([])
  // The others answer as well.
  const ready = await Promise.all(all.map(({ url }) => fetch(`${url}/api/ready`)))
  expect(ready.map(({ status }) => status)).toStrictEqual([200, 200, 200])
  await expect.poll(() => device.connections()).toBe(1)
  const killedAt = performance.now()
  await holder?.stop('SIGKILL')
  await expect.poll(() => device.connections(), { timeout: 30_000 - (performance.now() - killedAt) }).toBe(2)
  expect(all.filter(isHolder)).toHaveLength(2)
})

test('three that start at the same time on an empty directory all answer, and none warns of anything', async () => {
  const env = { DATA_DIR: join(dir, 'new'), ADMIN_PASSWORD: PASSWORD, DEMO: 'true' }
  const all = await Promise.all([startService(built, env), startService(built, env), startService(built, env)])
  running.push(...all)
  const health = await Promise.all(all.map(({ url }) => fetch(`${url}/api/health`)))
  expect(health.map(({ status }) => status)).toStrictEqual([200, 200, 200])
  const headers = await Promise.all(all.map(signIn))
  const seen = async ({ url }: Service, i: number) => {
    const { instances } = Object(await (await fetch(`${url}/api/system`, { headers: headers[i] ?? {} })).json())
    return instances.filter(({ hasLease }: { hasLease: boolean }) => hasLease).length
  }
  await expect.poll(() => Promise.all(all.map(seen))).toStrictEqual([1, 1, 1])
  expect(all.filter(isHolder)).toHaveLength(1)
  await expect.poll(() => readdirSync(env.DATA_DIR)).toContain('disk-reserve')
  expect(await Promise.all(all.map((service) => service.stop('SIGTERM')))).toStrictEqual([0, 0, 0])
  const entries = all.flatMap(({ lines }) => lines.filter((line) => line.startsWith('{')).map(parseEntry))
  expect(entries.filter(({ level }) => level !== 'info')).toStrictEqual([])
  expect(readdirSync(env.DATA_DIR).filter((name) => name.startsWith('disk-reserve'))).toStrictEqual(['disk-reserve'])
  expect(statSync(join(env.DATA_DIR, 'disk-reserve')).blocks * 512).toBeGreaterThanOrEqual(16 * 1024 * 1024)
})

test('a map of the region is downloaded by the one with the radio, and after kill -9 by the next one; all serve it', async () => {
  const planet = writePlanet(6, 'first', (z, x, y) => z < 3 || (x + y) % 3 !== 0)
  const server = await startPlanetServer(planet.bytes)
  try {
    const env = { MAP_ARCHIVE_URL: `${server.url}/planet.pmtiles` }
    const [holder, other] = [await start(env), await start(env)]
    const headers = await signIn(holder)
    const { promise: held, resolve: isHeld } = Promise.withResolvers<void>()
    server.lie = (_answer, { first }, honest) => (first < planet.tilesAt ? honest() : isHeld())
    const area = JSON.stringify({ bounds: [-11, 51, -4, 56], maxZoom: 6 })
    const begin = ({ url }: Service) => fetch(`${url}/api/map/region`, { method: 'POST', headers, body: area })
    const state = async ({ url }: Service) =>
      Object(await (await fetch(`${url}/api/map/region`, { headers })).json()).state
    expect((await begin(other)).status).toBe(202)
    await held
    expect([(await begin(holder)).status, (await begin(other)).status]).toStrictEqual([409, 409])
    expect([await state(holder), await state(other)]).toStrictEqual(['loading', 'loading'])
    server.lie = null
    await holder.stop('SIGKILL')
    expireLease()
    await expect.poll(() => state(other)).toBe('ready')
    const third = await start(env)
    const files = [other, third].map(async ({ url }) =>
      (await fetch(`${url}/api/map/region.pmtiles`, { headers })).text(),
    )
    const [one, two] = await Promise.all(files)
    expect([one?.startsWith('PMTiles'), one === two]).toStrictEqual([true, true])
  } finally {
    await server.close()
  }
})

const parseEntry = (line: string): { readonly level?: unknown } => Object(JSON.parse(line))

test('an instance that stops cleanly hands over at once; a single one that starts after kill -9 does not wait', async () => {
  const first = await start()
  const second = await start()
  expect([isHolder(first), isHolder(second)]).toStrictEqual([true, false])
  expect(await first.stop('SIGTERM')).toBe(0)
  await says(second, HOLDS)
  await second.stop('SIGKILL')
  expect(isHolder(await start())).toBe(true)
})

test('the page System of each instance lists all of them, with the one that has the lease and its links', async () => {
  const [holder, other] = [await start(), await start()]
  const headers = await signIn(holder)
  await connected(holder, headers)
  const read = async ({ url }: Service) => Object(await (await fetch(`${url}/api/system`, { headers })).json())
  const seen = async (service: Service) => {
    const { instances, links, problems } = await read(service)
    return {
      instances: instances.map(({ isSelf, hasLease }: Record<string, boolean>) => [isSelf, hasLease]),
      links: links.map(({ state }: { state: string }) => state),
      problems: problems.map(({ code }: { code: string }) => code),
    }
  }
  const links = ['connected']
  const problems = ['backup_off']
  await expect
    .poll(() => seen(holder))
    .toStrictEqual({
      instances: [
        [true, true],
        [false, false],
      ],
      links,
      problems,
    })
  await expect
    .poll(() => seen(other))
    .toStrictEqual({
      instances: [
        [false, true],
        [true, false],
      ],
      links,
      problems,
    })
  const [one, two] = [await read(holder), await read(other)]
  const ids = ({ instances }: { instances: { id: string }[] }) => instances.map(({ id }) => id)
  expect(ids(one)).toStrictEqual(ids(two))
  expect(Math.abs(one.instances[0].seenAt - Date.now())).toBeLessThan(60_000)
  expect(one.storage.disk.freeBytes).toBeGreaterThan(0)
  expect(one.storage.disk.totalBytes).toBeGreaterThan(one.storage.disk.freeBytes)
})

test('an instance that froze with waiting packets sends none of them after another one took over', async () => {
  const holder = await start()
  const headers = await signIn(holder)
  await connected(holder, headers)
  for (const text of ['one', 'two', 'three']) expect((await sendText(holder, headers, text)).status).toBe(202)
  await device.next('packet')
  holder.process.kill('SIGSTOP')
  const other = await start()
  expireLease()
  await says(other, HOLDS)
  await expect.poll(() => device.connections()).toBe(2)
  const before = sentPackets().length
  const watching = await watchEvents(other, headers)
  holder.process.kill('SIGCONT')
  expect((await sendText(holder, headers, 'four')).status).toBe(202)
  await says(holder, 'Another instance has taken over the radios')
  await says(holder, '"state":"stopped"')
  expect(await holder.stop('SIGTERM')).toBe(0)
  await expect.poll(() => storedMessages().at(-1)).toStrictEqual(['four', 'sent', null])
  expect(sentPackets()).toHaveLength(before + 1)
  expect(watching.said()).not.toContain('"state":"stopped"')
  await watching.end()
  expect(before).toBeLessThan(3)
  for (const [, state] of storedMessages().map(Object)) expect(['sent', 'unknown', 'failed']).toContain(state)
})

/** Live events as they arrive. */
async function watchEvents({ url }: Pick<Service, 'url'>, headers: Record<string, string>) {
  const ended = new AbortController()
  const answer = await fetch(`${url}/api/events`, { headers, signal: ended.signal })
  expect(answer.status).toBe(200)
  let said = ''
  const read = async () => {
    for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) said += text
  }
  const reading = read().catch(() => {})
  return {
    said: () => said,
    hears: (text: string) => expect.poll(() => said).toContain(text),
    end: async () => {
      ended.abort()
      await reading
    },
  }
}

const info = async ({ url }: Pick<Service, 'url'>, headers: Record<string, string>) =>
  Object(await (await fetch(`${url}/api/info`, { headers })).json())

describe('two instances, Redis, and nginx that alternates between them', () => {
  let redis: RedisServer
  let nginx: Nginx
  let holder: Service
  let other: Service
  let headers: Record<string, string>
  beforeEach(async () => {
    redis = await startRedis()
    const env = {
      SESSION_STORE: 'redis',
      REDIS_URL: redis.url,
      TRUSTED_PROXIES: '127.0.0.1',
      WRITE_BURST: '10',
      WRITES_PER_MINUTE: '1',
    }
    holder = await start(env)
    other = await start(env)
    nginx = await startNginx([holder.url, other.url])
    headers = await signIn(nginx)
    await connected(holder, headers)
    await connected(other, headers)
  })
  afterEach(async () => {
    await nginx.stop()
    await redis.stop()
  })

  test('both know the sessions, the state of the radio and its settings', async () => {
    for (const url of [holder.url, other.url, nginx.url, nginx.url]) {
      const status = await fetch(`${url}/api/auth/status`, { headers })
      expect(await status.json()).toMatchObject({ authenticated: true })
    }
    const states = await Promise.all([holder, other].map(async (each) => (await info(each, headers)).links))
    expect(states[1]).toMatchObject([{ name: states[0][0].name, kind: 'tcp', radio: states[0][0].radio }])
    const sections = async ({ url }: Service) => (await fetch(`${url}/api/configuration`, { headers })).json()
    expect(await sections(other)).toStrictEqual(await sections(holder))
  })

  test('a text is sent once, by the radio of the other instance, and both show its delivery', async () => {
    const watching = [await watchEvents(holder, headers), await watchEvents(other, headers)]
    const answer = await sendText(other, headers, 'from the one without')
    expect(answer.status).toBe(202)
    const { message } = Object(await answer.json())
    const { payloadVariant } = await device.next('packet')
    expect(Object(payloadVariant.value).id).toBe(message.packetId)
    for (const each of watching) await each.hears(`"packetId":${message.packetId}`)
    await expect.poll(storedMessages).toStrictEqual([['from the one without', 'sent', null]])
    const entries = await fetch(`${nginx.url}/api/audit?action=message_sent`, { headers })
    expect(await entries.json()).toMatchObject({
      entries: [{ username: 'admin', requestId: answer.headers.get('x-request-id'), ip: '127.0.0.1' }],
    })
    expect(sentPackets()).toHaveLength(1)
    for (const each of watching) await each.end()
  })

  test('marks, requests and waypoints of the instance without a radio reach the radio of the other one', async () => {
    const ask = (method: string, path: string, body: object) =>
      fetch(`${other.url}${path}`, { method, headers, body: JSON.stringify(body) })
    const nextOn = async (portnum: PortNum) => {
      const { payloadVariant } = await device.next('packet')
      if (payloadVariant.case !== 'packet' || payloadVariant.value.payloadVariant.case !== 'decoded')
        throw new Error('?')
      const { value } = payloadVariant.value.payloadVariant
      expect(value.portnum).toBe(portnum)
      return value.payload
    }
    expect((await ask('PUT', '/api/nodes/!a0cb0002', { isFavorite: true })).status).toBe(200)
    const { payloadVariant: order } = fromBinary(AdminMessageSchema, await nextOn(PortNum.ADMIN_APP))
    expect(order).toStrictEqual({ case: 'setFavoriteNode', value: 0xa0cb0002 })
    expect((await ask('POST', '/api/nodes/!a0cb0002/requests', { kind: 'node-info' })).status).toBe(202)
    expect(fromBinary(UserSchema, await nextOn(PortNum.NODEINFO_APP)).longName).toBe('Test Radio')
    const place = { name: 'Hut', latitude: 47, longitude: 8 }
    expect((await ask('POST', '/api/waypoints', place)).status).toBe(202)
    expect(fromBinary(WaypointSchema, await nextOn(PortNum.WAYPOINT_APP)).name).toBe('Hut')
    const shown = async () => Object(await (await fetch(`${other.url}/api/waypoints`, { headers })).json()).waypoints
    await expect.poll(shown).toMatchObject([{ name: 'Hut', fromNodeNum: 0xa0cb0001 }])
  })

  test('a request that is handed over counts once against the write limit', async () => {
    for (let n = 1; n <= 10; n++) expect((await sendText(other, headers, `text ${n}`)).status).toBe(202)
    expect((await sendText(other, headers, 'too many')).status).toBe(429)
  })

  test('the instance without a radio refuses the same requests as the other one', async () => {
    const ask = async (url: string, method: string, path: string, body: unknown) => {
      const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
      return [answer.status, Object(await answer.json()).code]
    }
    const asked = [
      ['POST', '/api/messages', { text: 'x', radio: 'nobody' }],
      ['POST', '/api/messages', { text: 'x'.repeat(300) }],
      ['POST', '/api/traceroutes', { to: 'nobody' }],
      ['PUT', '/api/configuration/nothing', { values: {} }],
      ['PUT', '/api/remote/!a0cb0042', { own: true }],
      ['POST', '/api/remote/!a0cb0042', { action: 'read', section: 'lora' }],
    ] as const
    for (const [method, path, body] of asked) {
      expect(await ask(other.url, method, path, body)).toStrictEqual(await ask(holder.url, method, path, body))
    }
    const anonymous = await fetch(`${other.url}/api/messages`, { method: 'POST', body: '{}', headers: JSON_BODY })
    expect(anonymous.status).toBe(401)
    expect(sentPackets()).toHaveLength(0)
  })

  test('when the one with the radio is killed the other one takes it, and nobody has to sign in again', async () => {
    const watching = await watchEvents(other, headers)
    await holder.stop('SIGKILL')
    // Nobody takes it in time, and it is not sent later.
    const lost = await sendText(other, headers, 'too early')
    expect([lost.status, Object(await lost.json()).code]).toStrictEqual([503, 'radio_unavailable'])
    expireLease()
    await expect.poll(() => device.connections()).toBe(2)
    await connected(nginx, headers)
    await watching.hears('"state":"connected"')
    expect((await sendText(nginx, headers, 'in time')).status).toBe(202)
    await expect.poll(storedMessages).toStrictEqual([['in time', 'sent', null]])
    await watching.end()
  })

  test('a request that nobody took in time is not executed later', async () => {
    holder.process.kill('SIGSTOP')
    const asking = sendText(other, headers, 'never')
    expect((await asking).status).toBe(503)
    holder.process.kill('SIGCONT')
    expect((await sendText(other, headers, 'now')).status).toBe(202)
    await expect.poll(storedMessages).toStrictEqual([['now', 'sent', null]])
  })

  test('a backup that is due is made once, by the instance that takes over', async () => {
    const body = JSON.stringify({ enabled: true, backupTime: '03:00', maxBackups: 5 })
    const set = await fetch(`${other.url}/api/system/backup/settings`, { method: 'PUT', headers, body })
    expect(set.status).toBe(200)
    const database = new Database(join(dir, 'mesh.db'))
    const since = Date.now() - 2 * 86_400_000
    const { changes } = database
      .prepare(
        "update settings set value = json_set(value, '$.since', ?) where json_extract(value, '$.backupTime') = '03:00'",
      )
      .run(since)
    database.close()
    expect(changes).toBe(1)
    await holder.stop('SIGKILL')
    expireLease()
    await says(other, '"message":"Backup completed"')
    const again = await start({ SESSION_STORE: 'redis', REDIS_URL: redis.url })
    await other.stop('SIGTERM')
    await says(again, HOLDS)
    await connected(again, headers)
    const listed = await fetch(`${again.url}/api/system/backup`, { headers })
    expect(await listed.json()).toMatchObject({ backups: [{ kind: 'scheduled' }] })
  })
})
