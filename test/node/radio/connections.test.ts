import { afterEach, expect, test } from 'vitest'
import { seal } from '../../../src/app/base/sealing.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { readConnections } from '../../../src/app/connections/connections.ts'
import { openConnecting } from '../../../src/node/radio/connecting.ts'
import { restoreBackup } from '../../../src/node/backup/restore/restore.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { keptLog, makeBackup, makeDataDir, MADE_AT, restoreOptions } from '../../support/backup/backup.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { text } from '../../support/mesh/mesh.ts'
import { startMqttBroker } from '../../support/radio/mqtt-broker.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'
import { OWN, until } from '../../support/radio/service.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

type Connection = {
  readonly id: number
  readonly name: string
  readonly order: number
  readonly enabled: boolean
  readonly settings: object | null
  readonly link: { readonly state: string } | null
  readonly heldAt: number | null
  readonly virtualNode: { readonly options: { readonly host: string } } | null
}
/** The fields of any answer; each has some of them. */
type Answer = {
  readonly connection: Connection
  readonly connections: readonly Connection[]
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  readonly code: string
}

type Service = {
  readonly app: TestApp
  readonly admin: Client
  readonly radio: ReturnType<typeof openRadio>
  readonly clock: ReturnType<typeof createManualClock>
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }>
  /** Whether the answers, the log, the audit log or the tables contain a text. */
  tells(words: string): boolean
}

async function start(env: Record<string, string> = {}, store: SqliteStore = openMemoryStore()): Promise<Service> {
  const clock = createManualClock(START)
  endings.push(() => store.close())
  const parsed = parseConfig({ SESSION_SECRET: 's'.repeat(40), ...env })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const { config } = parsed
  const said: string[] = []
  const log = createLog({ level: 'debug', format: 'json', now: clock.now, write: (line) => said.push(line) })
  const radio = openRadio({ config, store, log, clock })
  endings.push(() => radio.close())
  radio.start()
  const app = await createTestApp({
    store,
    env,
    ports: { radio, connecting: openConnecting({ config, store, clock }), now: clock.now },
  })
  const admin = await app.admin()
  return {
    app,
    admin,
    radio,
    clock,
    async ask(method, path, body) {
      const answer = await admin.send(method, `/api/connections${path}`, body)
      const answered = await answer.text()
      said.push(answered)
      return { status: answer.status, body: answered === '' ? {} : Object(JSON.parse(answered)) }
    },
    tells(words) {
      const rows = ['connections', 'audit_log', 'sources'].map((table) =>
        JSON.stringify(store.sqlite.prepare(`select * from ${table}`).all()),
      )
      return [...said, ...app.logged, ...rows].some((each) => each.includes(words))
    },
  }
}

async function device(): Promise<RadioDevice> {
  const started = await startRadioDevice()
  endings.push(() => started.stop())
  return started
}

const tcp = ({ port }: RadioDevice) => ({ kind: 'tcp', settings: { host: '127.0.0.1', port } })
const stateOf = ({ radio }: Service, name: string) => radio.links().find((link) => link.name === name)?.state
const count = ({ app }: Service) => app.store.sqlite.prepare('select count(*) from packets').pluck().get()

test('a radio is asked who it is, then added, switched off and on, and deleted, without a restart', async () => {
  const service = await start()
  const [hill, valley] = [await device(), await device()]
  const asked = await service.ask('POST', '/test', tcp(hill))
  expect(asked).toMatchObject({ status: 200, body: { problem: null, radio: { nodeNum: OWN } } })
  expect((await service.ask('GET', '')).body.connections).toEqual([])
  const added = await service.ask('POST', '', { name: 'hill', ...tcp(hill) })
  expect(added).toMatchObject({
    status: 201,
    body: { connection: { name: 'hill', kind: 'tcp', enabled: true, order: 0, fromEnvironment: false } },
  })
  await service.ask('POST', '', { name: 'valley', ...tcp(valley) })
  await until(() => expect([stateOf(service, 'hill'), stateOf(service, 'valley')]).toEqual(['connected', 'connected']))
  const { connections } = (await service.ask('GET', '')).body
  const [first, second] = connections
  expect([first?.settings, first?.link?.state, second?.order]).toEqual([tcp(hill).settings, 'connected', 1])
  const before = valley.connections()
  const off = await service.ask('PUT', `/${first?.id}`, { enabled: false })
  expect([off.status, off.body.connection.enabled, off.body.connection.link]).toEqual([200, false, null])
  expect(stateOf(service, 'hill')).toBeUndefined()
  await service.ask('PUT', `/${first?.id}`, { enabled: true })
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
  expect((await service.ask('DELETE', `/${first?.id}`)).status).toBe(204)
  expect(service.radio.links().map(({ name }) => name)).toEqual(['valley'])
  expect(valley.connections()).toBe(before)
  expect((await service.ask('PUT', `/${first?.id}`, { enabled: true })).body.code).toBe('connection_not_found')
})

test('what comes over an added radio is stored, also after another one was added', async () => {
  const service = await start()
  const [hill, valley] = [await device(), await device()]
  await service.ask('POST', '', { name: 'hill', ...tcp(hill) })
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
  const hear = (from: RadioDevice, id: number) =>
    from.send(
      fromRadio({
        case: 'packet',
        value: { from: 7, to: 0xffffffff, id, rxRssi: -80, payloadVariant: { case: 'decoded', value: text('hello') } },
      }),
    )
  hear(hill, 11)
  await until(() => {
    service.clock.advance(100)
    expect(count(service)).toBe(1)
  })
  await service.ask('POST', '', { name: 'valley', ...tcp(valley) })
  await until(() => expect(stateOf(service, 'valley')).toBe('connected'))
  hear(valley, 12)
  hear(hill, 13)
  await until(() => {
    service.clock.advance(100)
    expect(count(service)).toBe(3)
  })
})

test('settings that change open this connection alone; a change of order opens none', async () => {
  const service = await start()
  const [hill, valley, other] = [await device(), await device(), await device()]
  const { connection } = (await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).body
  await service.ask('POST', '', { name: 'valley', ...tcp(valley) })
  await until(() => expect([stateOf(service, 'hill'), stateOf(service, 'valley')]).toEqual(['connected', 'connected']))
  const counts = () => [hill, valley, other].map((one) => one.connections())
  expect(counts()).toEqual([1, 1, 0])
  await service.ask('PUT', `/${connection.id}`, { order: 5 })
  expect((await service.ask('GET', '')).body.connections.map(({ name }) => name)).toEqual(['valley', 'hill'])
  expect(service.radio.links().map(({ name }) => name)).toEqual(['valley', 'hill'])
  expect(counts()).toEqual([1, 1, 0])
  await service.ask('PUT', `/${connection.id}`, { settings: tcp(other).settings })
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
  expect(counts()).toEqual([1, 1, 1])
})

test('an address is told to readers of the configuration alone; passwords and keys to nobody, and both are sealed', async () => {
  const service = await start()
  const settings = {
    url: 'mqtt://broker.club.example:1',
    username: 'club',
    password: 'a hidden word',
    topics: ['msh/EU_868/#'],
    keys: ['Hidden=1PG7OiApB1nwvP+rz05pAQ=='],
  }
  const { connection } = (await service.ask('POST', '', { name: 'broker', kind: 'mqtt', settings })).body
  expect(connection.settings).toMatchObject({
    url: settings.url,
    username: 'club',
    password: '••••',
    keys: ['Hidden=••••'],
  })
  expect(service.tells('a hidden word')).toBe(false)
  expect(service.tells('1PG7OiApB1nwvP')).toBe(false)
  const rows = JSON.stringify(service.app.store.sqlite.prepare('select * from connections').all())
  expect(rows).not.toContain('broker.club.example')
  expect(JSON.stringify(auditRows(service.app))).not.toContain('broker.club.example')
  const reader = await service.app.user('reader', { info: { read: true, write: true } })
  expect((await reader.send('GET', '/api/connections')).status).toBe(403)
  expect(await (await reader.send('GET', '/api/info')).text()).not.toContain('broker.club.example')
  // What is left out or hidden is kept.
  await service.ask('PUT', `/${connection.id}`, {
    settings: { ...settings, password: '••••', keys: ['Hidden=••••', 'Open=AQ=='] },
  })
  const [stored] = await readConnections(service.app.ports)
  expect(stored?.target?.settings).toMatchObject({
    password: 'a hidden word',
    keys: ['Hidden=1PG7OiApB1nwvP+rz05pAQ==', 'Open=AQ=='],
  })
})

test('hidden keys of one name stay those that they are', async () => {
  const service = await start()
  const keys = ['Club=1PG7OiApB1nwvP+rz05pAQ==', 'Club=AQ==', 'Other=Ag==']
  const settings = { url: 'mqtt://127.0.0.1:1', topics: ['msh/#'], keys }
  const { connection } = (await service.ask('POST', '', { name: 'broker', kind: 'mqtt', settings })).body
  const put = (asked: readonly string[]) =>
    service.ask('PUT', `/${connection.id}`, { settings: { ...settings, keys: asked } })
  const stored = async () => Object((await readConnections(service.app.ports))[0]?.target?.settings)['keys']
  expect((await put(['Other=••••', 'Club=••••', 'New=Aw==', 'Club=••••'])).status).toBe(200)
  const now = [keys[2], keys[0], 'New=Aw==', keys[1]]
  expect(await stored()).toEqual(now)
  // One of the two was removed, and nobody can tell which.
  for (const asked of [
    ['Club=••••', 'Other=••••'],
    ['Club=••••', 'Club=••••', 'Club=••••'],
  ]) {
    expect((await put(asked)).body.issues).toMatchObject([{ path: 'settings.keys.0' }])
  }
  expect(await stored()).toEqual(now)
  expect((await put(['Club=AQ==', 'Other=••••'])).status).toBe(200)
  expect(await stored()).toEqual([keys[1], keys[2]])
})

test('a stored password is sent to no other server: neither by a change nor by a test', async () => {
  const service = await start()
  const evil = await startMqttBroker()
  endings.push(() => evil.stop())
  const settings = { url: 'mqtt://127.0.0.1:1', username: 'club', password: 'a hidden word' }
  const { connection } = (await service.ask('POST', '', { name: 'broker', kind: 'mqtt', settings })).body
  for (const url of [evil.url, 'mqtts://127.0.0.1:1', 'ws://127.0.0.1:1']) {
    for (const password of ['••••', undefined]) {
      const elsewhere = { ...settings, url, password }
      const changed = await service.ask('PUT', `/${connection.id}`, { settings: elsewhere })
      const tested = await service.ask('POST', '/test', {
        kind: 'mqtt',
        settings: elsewhere,
        connection: connection.id,
      })
      for (const { status, body } of [changed, tested]) {
        expect([status, body.issues]).toEqual([
          400,
          [{ path: 'settings.password', message: 'must be entered again for another server' }],
        ])
      }
    }
  }
})

test('the connections of the environment are listed as that, and changed only there', async () => {
  const hill = await device()
  const service = await start({ MESHTASTIC_TCP: `127.0.0.1:${hill.port}` })
  await until(async () => expect((await service.ask('GET', '')).body.connections).toHaveLength(1))
  const [connection] = (await service.ask('GET', '')).body.connections
  expect(connection).toMatchObject({ name: `127.0.0.1:${hill.port}`, fromEnvironment: true, settings: null })
  for (const [method, body] of [
    ['PUT', { enabled: false }],
    ['DELETE', undefined],
  ] as const) {
    expect((await service.ask(method, `/${connection?.id}`, body)).status).toBe(400)
  }
  expect(stateOf(service, connection?.name ?? '')).toBe('connected')
})

test('a standby and a demonstration open none of them', async () => {
  const service = await start({ DEMO: 'true' })
  const hill = await device()
  const { status } = await service.ask('POST', '', { name: 'hill', ...tcp(hill) })
  expect([status, service.radio.links().map(({ name }) => name), hill.connections()]).toEqual([201, ['demo'], 0])
  const standby = await start()
  standby.app.store.sqlite.prepare(`insert into settings values ('standby', 'true', 1)`).run()
  await standby.ask('POST', '', { name: 'hill', ...tcp(hill) })
  expect([standby.radio.links(), hill.connections()]).toEqual([[], 0])
})

test('what was sent over a connection that is closed is told as lost, not as sent for ever', async () => {
  const service = await start()
  const hill = await device()
  const { connection } = (await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).body
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
  service.clock.advance(100)
  const channels = () => service.app.store.sqlite.prepare('select count(*) from channels').pluck().get()
  await until(() => expect(channels()).toBe(1))
  const sent = await service.admin.send('POST', '/api/messages', { text: 'is anybody there?' })
  expect(sent.status).toBe(202)
  await hill.next('packet')
  const state = () => service.app.store.sqlite.prepare('select delivery_state from messages').pluck().get()
  await until(() => expect(state()).toBe('sent'))
  await service.ask('PUT', `/${connection.id}`, { enabled: false })
  await until(() => expect(state()).toBe('unknown'))
})

test('a connection that this version cannot read stops no other one, and can be deleted', async () => {
  const service = await start()
  const hill = await device()
  const { app } = service
  await service.ask('POST', '', { name: 'hill', enabled: false, ...tcp(hill) })
  const later = await seal(app.ports.config.SESSION_SECRET, 'connection:later', '{"host":"hill","colour":"red"}')
  app.store.sqlite
    .prepare(
      `insert into connections (name, kind, enabled, position, sealed, revision, created_at, updated_at)
        values ('later', 'tcp', 1, 0, ?, 99, 1, 1), ('unsealed', 'tcp', 1, 0, 'nonsense', 98, 1, 1)`,
    )
    .run(later)
  const [first] = (await service.ask('GET', '')).body.connections.filter(({ name }) => name === 'hill')
  await service.ask('PUT', `/${first?.id}`, { enabled: true })
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
  const others = (await service.ask('GET', '')).body.connections.filter(({ name }) => name !== 'hill')
  expect(others.map(({ settings, link }) => [settings, link])).toEqual([
    [null, null],
    [null, null],
  ])
  for (const { id } of others) expect((await service.ask('DELETE', `/${id}`)).status).toBe(204)
})

test('a port for apps is opened with a connection, changed and closed without touching it', async () => {
  const hill = await device()
  const service = await start({ MESHTASTIC_TCP: `127.0.0.1:${hill.port}` })
  await until(async () => expect((await service.ask('GET', '')).body.connections).toHaveLength(1))
  const [connection] = (await service.ask('GET', '')).body.connections
  await until(() => expect(stateOf(service, connection?.name ?? '')).toBe('connected'))
  const put = (virtualNode: unknown) => service.ask('PUT', `/${connection?.id}`, { virtualNode })
  const port = await freePort()
  const opened = await put({ port, userId: null })
  expect([opened.status, opened.body.connection.virtualNode?.options.host]).toEqual([200, '127.0.0.1'])
  const portOf = () => service.radio.virtualNodes().get(connection?.name ?? '')
  await until(() => expect(portOf()?.port).toBe(port))
  expect((await put({ port, userId: null, mayConfigure: true })).status).toBe(200)
  await until(() => expect(portOf()?.port).toBe(port))
  await put(null)
  expect(portOf()).toBeUndefined()
  expect(hill.connections()).toBe(1)
  const refused = await put({ port, host: '0.0.0.0', userId: null })
  expect([refused.status, refused.body.issues.map(({ path }) => path)]).toEqual([400, ['virtualNode.allowedNetworks']])
})

test('only administrators give a port the view of another user, or change such a port', async () => {
  const service = await start()
  const hill = await device()
  const { connection } = (await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).body
  const { app } = service
  const all = { configuration: { read: true, write: true } }
  const anna = await app.user('anna', all)
  const put = async (client: Client, virtualNode: object) =>
    (await client.send('PUT', `/api/connections/${connection.id}`, { virtualNode })).status
  const port = await freePort()
  const adminId = Object(app.store.sqlite.prepare(`select id from users where username = 'admin'`).get()).id
  expect(await put(anna, { port, userId: adminId })).toBe(403)
  expect(await put(anna, { port, userId: anna.id })).toBe(200)
  expect(await put(anna, { port, userId: null })).toBe(200)
  expect(await put(service.admin, { port, userId: adminId })).toBe(200)
  // Another address would show the administrator's view to others.
  expect(await put(anna, { port, userId: adminId, host: '127.0.0.2' })).toBe(403)
  expect(await put(service.admin, { port, userId: 9999 })).toBe(404)
  const broker = await service.ask('POST', '', {
    name: 'broker',
    kind: 'mqtt',
    settings: { url: 'mqtt://127.0.0.1:1' },
  })
  const { id } = broker.body.connection
  expect((await service.ask('PUT', `/${id}`, { virtualNode: { port, userId: null } })).status).toBe(400)
})

test('a restore holds connections and ports for apps until an administrator releases them', async () => {
  const here = makeDataDir()
  endings.push(() => here.remove())
  const [hill, valley, mast] = [await device(), await device(), await device()]
  const env = { MESHTASTIC_TCP: `127.0.0.1:${mast.port}` }
  const ports = [await freePort(), await freePort()]
  const first = await start(env, openDatabase(here.database))
  await first.ask('POST', '', { name: 'hill', ...tcp(hill) })
  await first.ask('POST', '', { name: 'valley', enabled: false, ...tcp(valley) })
  const idOf = async (service: Service, name: string) =>
    (await service.ask('GET', '')).body.connections.find((one) => one.name === name)?.id
  const mastName = `127.0.0.1:${mast.port}`
  for (const [i, name] of ['hill', mastName].entries())
    await first.ask('PUT', `/${await idOf(first, name)}`, { virtualNode: { port: ports[i], userId: null } })
  await until(() => expect([stateOf(first, 'hill'), stateOf(first, mastName)]).toEqual(['connected', 'connected']))
  const backup = await makeBackup(here.dataDir)
  // The radios and the directory stay.
  for (const end of endings.splice(4).toReversed()) await end()
  const { log, lines } = keptLog()
  await restoreBackup(restoreOptions(here.dataDir, { log }), backup)
  expect(lines).toContainEqual(expect.stringMatching(/^warn 2 connections of the backup stay off until /))

  const service = await start(env, openDatabase(here.database))
  await until(() => expect(stateOf(service, mastName)).toBe('connected'))
  const held = async () =>
    (await service.ask('GET', '')).body.connections.map(({ name, heldAt, link }) => [name, heldAt, link?.state])
  const at = MADE_AT + 60_000
  expect(await held()).toEqual([
    [mastName, at, 'connected'],
    ['hill', at, undefined],
    ['valley', null, undefined],
  ])
  const portsOf = () => [...service.radio.virtualNodes()].map(([name, { port }]) => [name, port])
  expect([hill.connections(), portsOf()]).toEqual([1, []])
  // Switching it on is no release, and only administrators release.
  const id = await idOf(service, 'hill')
  const anna = await service.app.user('anna', { configuration: { read: true, write: true } })
  const put = async (body: object) => (await anna.send('PUT', `/api/connections/${id}`, body)).status
  expect([await put({ enabled: false }), await put({ enabled: true }), await put({ held: false })]).toEqual([
    200, 200, 403,
  ])
  expect(hill.connections()).toBe(1)
  expect((await service.ask('PUT', `/${id}`, { held: false })).body.connection.heldAt).toBeNull()
  await until(() => expect([stateOf(service, 'hill'), portsOf()]).toEqual(['connected', [['hill', ports[0]]]]))
  await service.ask('PUT', `/${await idOf(service, mastName)}`, { held: false })
  await until(() => expect(portsOf()).toHaveLength(2))
  expect(mast.connections()).toBe(2)
  expect(auditRows(service.app).findLast(({ details }) => Object(details).name === 'hill')?.details).toMatchObject({
    before: { held: 'restore' },
    after: { held: null },
  })
})

test('after a restore under another SESSION_SECRET an address is entered again, and used at once', async () => {
  const hill = await device()
  const service = await start()
  const { connection } = (await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).body
  await service.ask('PUT', `/${connection.id}`, { enabled: false })
  service.app.store.sqlite.exec(`update connections set held_at = 1, enabled = 1, sealed = 'sealed elsewhere'`)
  const found = (await service.ask('GET', '')).body.connections
  expect(found).toMatchObject([{ settings: null, heldAt: 1, link: null }])
  await service.ask('PUT', `/${connection.id}`, { settings: tcp(hill).settings })
  await until(() => expect(stateOf(service, 'hill')).toBe('connected'))
})

test.each([
  ['a port in the host', { kind: 'tcp', settings: { host: 'hill:4403' } }, 'settings.host'],
  ['a port that is none', { kind: 'tcp', settings: { host: 'hill', port: 70_000 } }, 'settings.port'],
  ['a file that is no device', { kind: 'serial', settings: { device: '/etc/passwd' } }, 'settings.device'],
  ['a device by a way out', { kind: 'serial', settings: { device: '/dev/../etc/passwd' } }, 'settings.device'],
  ['a way out at the end', { kind: 'serial', settings: { device: '/dev/serial/..' } }, 'settings.device'],
  ['another protocol', { kind: 'http', settings: { url: 'file:///etc/passwd' } }, 'settings.url'],
  ['a password in the URL', { kind: 'mqtt', settings: { url: 'mqtt://a:b@broker.example' } }, 'settings.url'],
  ['a key that is none', { kind: 'udp', settings: { keys: ['Club=short'] } }, 'settings.keys.0'],
  ['an unknown setting', { kind: 'tcp', settings: { host: 'hill', password: 'x' } }, 'settings'],
])('refuses %s, and says where', async (_name, connection, path) => {
  const service = await start()
  const { status, body } = await service.ask('POST', '', { name: 'x', ...connection })
  expect([status, body.issues.map(({ path: at }) => at)]).toEqual([400, [path]])
  expect((await service.ask('GET', '')).body.connections).toEqual([])
})

test('a name is used once, and never that of the source of another kind', async () => {
  const service = await start()
  const hill = await device()
  service.app.store.sqlite.prepare(`insert into sources (kind, name, created_at) values ('ingest', 'taken', 1)`).run()
  expect((await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).status).toBe(201)
  for (const name of ['hill', 'taken']) {
    const { status, body } = await service.ask('POST', '', { name, ...tcp(hill) })
    expect([status, body.issues]).toEqual([400, [{ path: 'name', message: 'already used' }]])
  }
})

test('each change is in the audit log, without the address', async () => {
  const service = await start()
  const hill = await device()
  const { connection } = (await service.ask('POST', '', { name: 'hill', ...tcp(hill) })).body
  await service.ask('POST', '/test', tcp(hill))
  await service.ask('PUT', `/${connection.id}`, { enabled: false })
  await service.ask('PUT', `/${connection.id}`, { enabled: false })
  await service.ask('DELETE', `/${connection.id}`)
  const entries = auditRows(service.app).filter(({ action }) => action.startsWith('connection_'))
  expect(entries.map(({ action, details }) => [action, details])).toEqual([
    ['connection_updated', { name: 'hill', kind: 'tcp', before: null, after: { enabled: true, settings: 'entered' } }],
    ['connection_tested', { name: null, kind: 'tcp', ok: true }],
    [
      'connection_updated',
      { name: 'hill', kind: 'tcp', before: { enabled: true, order: 0 }, after: { enabled: false, order: 0 } },
    ],
    ['connection_updated', { name: 'hill', kind: 'tcp', before: { enabled: false }, after: null }],
  ])
})
