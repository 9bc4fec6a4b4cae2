import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { choose } from '../../../src/app/mesh/nodes/published.ts'
import { createIngest, type Ingest } from '../../../src/app/mesh/ingest/ingest.ts'
import { systemClock } from '../../../src/node/clock.ts'
import { openHomeAssistant } from '../../../src/node/home-assistant/home-assistant.ts'
import { StartRefused } from '../../../src/node/start/problems.ts'
import { createTestApp, START, type TestApp } from '../../support/app.ts'
import { buildService, startService } from '../../support/built/built-service.ts'
import { DISCOVERY_TOPIC, discoverySchema, stateSchema } from '../../support/home-assistant.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { FAR, packet, position, store, telemetry, user } from '../../support/mesh/mesh.ts'
import { endProcess } from '../../support/servers/end-process.ts'
import { type Mosquitto, startMosquitto } from '../../support/servers/mosquitto.ts'

const DAY = 86_400_000
const THIRD = 0xa0cb0003
const config = (nodeNum: number, topic = 'mesh') => `homeassistant/device/${topic}/${nodeNum.toString(16)}/config`
const state = (nodeNum: number, topic = 'mesh') => `${topic}/${nodeNum.toString(16)}/state`

let broker: Mosquitto
let app: TestApp
let ingest: Ingest
const running: { stop(): Promise<void> }[] = []

beforeEach(async () => {
  broker = await startMosquitto()
  watch()
})
afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.stop()
  await broker.stop()
})

/** A service that knows two nodes with a position, one of them with a battery. */
async function openMesh(env: Record<string, string> = {}): Promise<void> {
  app = await createTestApp({ env: { HOME_ASSISTANT_MQTT_URL: broker.url, ...env } })
  ingest = createIngest(app.store)
  await store(ingest, [
    packet(user({ longName: 'Hilltop relay', shortName: 'HILL', hwModel: 43 })),
    packet(position({ latitudeI: 523456789, longitudeI: 134567890 })),
    packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 87, voltage: 4.02 } } })),
    packet(user({ longName: 'Valley', shortName: 'VAL' }), { from: THIRD }),
    packet(position({ latitudeI: 523456788, longitudeI: 134567891 }), { from: THIRD }),
  ])
}

type Options = Partial<Parameters<NonNullable<ReturnType<typeof openHomeAssistant>>>[0]>

function publish(options: Options = {}): { stop(): Promise<void> } {
  const open = openHomeAssistant(app.ports.config)
  if (open === null) throw new Error('HOME_ASSISTANT_MQTT_URL is not set')
  const timings = { refreshMs: 50, sendMs: 20 }
  const started = open({ ...app.ports, clock: systemClock, random: () => 0, timings, ...options })
  running.push(started)
  return started
}

const share = async (changes: object) =>
  expect((await (await app.admin()).send('PUT', '/api/public-access', changes)).status).toBe(200)
const PUBLIC = {
  enabled: true,
  permissions: {
    dashboard: { read: false },
    nodes: { read: true },
    messages: { read: false },
    info: { read: false },
  },
}
/** With the channel on which everything was heard. */
const sharing = async () => ({
  ...PUBLIC,
  channels: [Number(app.store.sqlite.prepare('select channel from nodes').pluck().get())],
})

/** What the broker retains, as its own client reads it. */
function retained(args: readonly string[] = []): Promise<Record<string, string>> {
  return new Promise((resolve) => {
    const all = [
      '-h',
      '127.0.0.1',
      '-p',
      String(broker.port),
      '-t',
      '#',
      '--retained-only',
      '-W',
      '1',
      '-F',
      '%t %p',
      ...args,
    ]
    execFile('mosquitto_sub', all, (_error, out) => {
      const lines = out.split('\n').filter((line) => line !== '')
      resolve(
        Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)])),
      )
    })
  })
}

/** What the broker's own client has seen and what was not deleted since. */
let seen: Map<string, string>

/** Reads everything from now on, and what the broker retains. */
function watch(): void {
  const found = new Map<string, string>()
  seen = found
  const args = ['-h', '127.0.0.1', '-p', String(broker.port), '-t', '#', '-F', '%t %p']
  const client = spawn('mosquitto_sub', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  createInterface({ input: client.stdout }).on('line', (line) => {
    const [, topic = '', payload = ''] = /^(\S+) (.*)$/.exec(line) ?? []
    if (payload === '') found.delete(topic)
    else found.set(topic, payload)
  })
  running.push({ stop: () => endProcess(client, 'SIGTERM') })
}

const topics = () => [...seen.keys()].toSorted()
const untilTopics = (wanted: readonly string[]) => expect.poll(topics).toStrictEqual([...wanted].toSorted())
const both = (...nums: readonly number[]) => nums.flatMap((num) => [config(num), state(num)])

describe('what is published', () => {
  test('nothing but its own presence, while people without an account see nothing', async () => {
    await openMesh()
    publish()
    await untilTopics(['mesh/status'])
    expect((await retained())['mesh/status']).toBe('online')
    const warned = () => app.logged.filter((line) => line.includes('Nothing is published for Home Assistant'))
    await expect.poll(() => warned().length).toBe(1)
    expect(warned()[0]).toContain('public access shows no nodes')
  })

  test('devices and states as Home Assistant wants them, and never a position', async () => {
    await openMesh({ PUBLIC_URL: 'https://mesh.example.org' })
    await share(await sharing())
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const found = await retained()
    for (const [topic, payload] of Object.entries(found)) {
      if (topic === 'mesh/status') continue
      if (topic.endsWith('/config')) {
        expect(topic).toMatch(DISCOVERY_TOPIC)
        const { device, components, state_topic: at } = discoverySchema.parse(JSON.parse(payload))
        expect(found).toHaveProperty([at])
        for (const [key, each] of Object.entries(components)) {
          expect(each.unique_id).toBe(`${device.identifiers[0]}_${key}`)
          expect(Object.keys(JSON.parse(found[at] ?? ''))).toContain(each.value_template.slice(14, -3))
        }
      } else stateSchema.parse(JSON.parse(payload))
      expect(payload).not.toMatch(/52\.?34|13\.?45|latitude|position/)
    }
    const far = discoverySchema.parse(JSON.parse(found[config(FAR)] ?? ''))
    expect(far.device).toStrictEqual({
      identifiers: ['mesh_a0cb0002'],
      name: 'Hilltop relay',
      serial_number: '!a0cb0002',
      model: 'HELTEC_V3',
      configuration_url: 'https://mesh.example.org/nodes/!a0cb0002',
    })
    expect(Object.keys(far.components)).toStrictEqual(['last_heard', 'active', 'battery', 'voltage'])
    expect(Object.keys(discoverySchema.parse(JSON.parse(found[config(THIRD)] ?? '')).components)).toStrictEqual([
      'last_heard',
      'active',
    ])
    expect(JSON.parse(found[state(FAR)] ?? '')).toStrictEqual({
      last_heard: new Date(START).toISOString(),
      active: 'ON',
      battery: 87,
      voltage: 4.02,
    })
  })

  test('new values, a node that falls silent, and a battery on external power', async () => {
    await openMesh()
    await share(await sharing())
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    app.clock.advance(DAY / 4)
    const powered = { case: 'deviceMetrics', value: { batteryLevel: 101, voltage: 4.2 } } as const
    await store(ingest, [packet(telemetry({ variant: powered }), { from: THIRD })], { at: app.clock.now })
    const read = (num: number) => Object(JSON.parse(seen.get(state(num)) ?? '{}'))
    await expect.poll(() => read(THIRD)).toMatchObject({ active: 'ON', battery: 100, voltage: 4.2 })
    expect(read(FAR)).toMatchObject({ active: 'OFF', battery: 87 })
    expect(Object(JSON.parse(seen.get(config(THIRD)) ?? '{}')).components).toHaveProperty('battery')
  })
})

describe('whose eyes decide', () => {
  test('a user sees their channels only, and one who may not see nodes nothing', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'butler' })
    const nodes = { read: true, write: false }
    const { id } = await app.user(
      'butler',
      { nodes },
      { channels: { read: [], write: [] }, direct: { read: false, write: false } },
    )
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    // The battery was told on a channel that this user may not read.
    expect(JSON.parse(seen.get(state(FAR)) ?? '')).toMatchObject({ battery: null, voltage: null })
    const none = { read: false, write: false }
    await (await app.admin()).send('PUT', `/api/users/${id}/permissions`, { permissions: { nodes: none } })
    await untilTopics(['mesh/status'])
  })

  test('a user who is deactivated or does not exist sees nothing', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'Butler' })
    publish()
    await untilTopics(['mesh/status'])
    await expect.poll(() => app.logged.join()).toContain('HOME_ASSISTANT_VIEWER may not see nodes, or does not exist')
    const { id } = await app.user('butler', { nodes: { read: true, write: false } })
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    await (await app.admin()).send('PUT', `/api/users/${id}`, { isActive: false })
    await (await app.admin()).send('DELETE', `/api/users/${id}`)
    await untilTopics(['mesh/status'])
  })

  test('a hidden node is not published, not even for an administrator, and is withdrawn when it is hidden', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const admin = await app.admin()
    expect((await admin.send('PUT', '/api/nodes/!a0cb0002', { hidden: true })).status).toBe(200)
    await untilTopics(['mesh/status', ...both(THIRD)])
  })

  test('public access that ends withdraws everything', async () => {
    await openMesh()
    await share(await sharing())
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    await share({ enabled: false })
    await untilTopics(['mesh/status'])
  })
})

describe('what the broker keeps', () => {
  test('a forgotten node is cleared, also if it was forgotten while nothing ran', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
    const first = publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const admin = await app.admin()
    expect((await admin.send('DELETE', '/api/nodes/!a0cb0002')).status).toBe(204)
    await untilTopics(['mesh/status', ...both(THIRD)])
    await first.stop()
    await expect.poll(() => seen.get('mesh/status')).toBe('offline')
    expect((await admin.send('DELETE', '/api/nodes/!a0cb0003')).status).toBe(204)
    publish()
    await untilTopics(['mesh/status'])
  })

  test('the command of the documentation clears all of it', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
    const service = publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    await service.stop()
    expect(Object.keys(await retained(['--remove-retained']))).toHaveLength(5)
    expect(await retained()).toStrictEqual({})
  })

  test('what other services and devices left there stays', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin', HOME_ASSISTANT_TOPIC: 'club' })
    const others = [
      'homeassistant/device/mesh/a0cb0009/config',
      'homeassistant/sensor/club/x/config',
      'club/nonsense/state',
    ]
    for (const topic of others) {
      await new Promise((resolve) => {
        const args = ['-h', '127.0.0.1', '-p', String(broker.port), '-r', '-t', topic, '-m', '{}']
        execFile('mosquitto_pub', args, resolve)
      })
    }
    publish()
    const own = [FAR, THIRD].flatMap((num) => [config(num, 'club'), state(num, 'club')])
    await untilTopics(['club/status', ...own, ...others])
  })

  test('a broker that comes back without its memory gets everything again', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
    publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const { port } = broker
    await broker.stop()
    broker = await startMosquitto({ port })
    watch()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const said = app.logged.filter((line) => line.includes('"Home Assistant"')).map((line) => Object(JSON.parse(line)))
    expect(said.map(({ level, state: now }) => `${level} ${now}`).slice(0, 2)).toStrictEqual([
      'info connected',
      'warn waiting',
    ])
    expect(said.at(-1)).toMatchObject({ state: 'connected', broker: `127.0.0.1:${port}` })
  })

  test('the service that takes over is online, although the last will of the other one comes late', async () => {
    await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
    const predecessor = publish()
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    const successor = publish()
    await predecessor.stop()
    await expect.poll(() => seen.get('mesh/status')).toBe('online')
    await untilTopics(['mesh/status', ...both(FAR, THIRD)])
    await successor.stop()
    await expect.poll(() => seen.get('mesh/status')).toBe('offline')
  })
})

test('at most 20 messages a second leave the service', async () => {
  await openMesh({ HOME_ASSISTANT_VIEWER: 'admin' })
  const many = Array.from({ length: 40 }, (_, index) =>
    packet(user({ longName: `Node ${index}` }), { from: 0x100 + index }),
  )
  await store(ingest, many)
  const clock = createManualClock(START)
  publish({ clock, timings: { refreshMs: 60_000, sendMs: 1000 } })
  const step = async (ms: number) => {
    clock.advance(ms)
    return Object.keys(await retained()).length
  }
  await vi.waitFor(async () => expect(await step(1)).toBeGreaterThan(0), 30_000)
  let last = await step(0)
  expect(last).toBeLessThanOrEqual(20)
  while (last < 85) {
    const next = await step(1000)
    expect(next - last).toBeLessThanOrEqual(20)
    last = next
  }
  expect(last).toBe(1 + 2 * 42)
})

test('a wrong password is named in the log, and the password is not', async () => {
  await broker.stop()
  broker = await startMosquitto({ login: { username: 'butler', password: 'right' } })
  await openMesh({ HOME_ASSISTANT_MQTT_URL: `mqtt://butler:verysecret@127.0.0.1:${broker.port}` })
  publish()
  await expect
    .poll(() => app.logged.find((line) => line.includes('"Home Assistant"')))
    .toContain('the broker refuses the user name or password')
  expect(app.logged.join('\n')).not.toContain('verysecret')
})

test('an unreadable file of certificates ends the start', async () => {
  await openMesh({ HOME_ASSISTANT_MQTT_CA: '/nowhere.pem' })
  expect(() => openHomeAssistant(app.ports.config)).toThrow(StartRefused)
  expect(() => openHomeAssistant(app.ports.config)).toThrow(/^HOME_ASSISTANT_MQTT_CA: found "\/nowhere\.pem"/)
})

test('the built service publishes its mesh, and a killed one is offline', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-home-'))
  try {
    const service = await startService(buildService(), {
      DATA_DIR: dir,
      ADMIN_PASSWORD: 'a house on the hill',
      DEMO: 'true',
      HOME_ASSISTANT_MQTT_URL: broker.url,
      HOME_ASSISTANT_VIEWER: 'admin',
    })
    await expect.poll(() => seen.get('mesh/status')).toBe('online')
    await service.stop('SIGKILL')
    await expect.poll(() => seen.get('mesh/status')).toBe('offline')
  } finally {
    rmSync(dir, { recursive: true })
  }
})

describe('of more nodes than there is room for', () => {
  const node = (nodeNum: number, more: object = {}) => ({
    nodeNum,
    isLocal: false,
    isFavorite: false,
    lastHeard: START - nodeNum,
    ...more,
  })
  const chosen = (rows: ReturnType<typeof node>[], known: readonly number[] = []) =>
    choose(rows, new Set(known), { most: 3, now: START }).map(({ nodeNum }) => nodeNum)

  test('own radios and favourites come first, then the latest heard', () => {
    const rows = [node(1), node(2), node(3), node(4, { isFavorite: true, lastHeard: null }), node(5, { isLocal: true })]
    expect(chosen(rows)).toStrictEqual([5, 4, 1])
  })

  test('one that has a place keeps it for a week after it was last heard', () => {
    const rows = [node(1), node(2), node(3), node(4), node(5)]
    expect(chosen(rows, [4, 5])).toStrictEqual([4, 5, 1])
    const silent = rows.map((row) => (row.nodeNum === 4 ? { ...row, lastHeard: START - 8 * DAY } : row))
    expect(chosen(silent, [4, 5])).toStrictEqual([5, 1, 2])
  })
})
