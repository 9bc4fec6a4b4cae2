import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'

const DEFAULTS = {
  telemetryRetentionDays: 30,
  positionRetentionDays: 90,
  messageRetentionDays: 365,
  telemetryHourlyRetentionDays: 400,
  packetRetentionDays: 7,
  nodeActiveSeconds: 7200,
  mapTiles: { kind: 'configured' },
  meshName: null,
}

let app: TestApp
let admin: Client

beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const read = async () => Object(await (await admin.send('GET', '/api/settings')).json())

describe('settings', () => {
  it('have their defaults until somebody sets them', async () => {
    expect(await read()).toStrictEqual(DEFAULTS)
  })

  it('name the mesh for everybody, also before signing in', async () => {
    const name = async () => Object(await (await app.request('/api/auth/status')).json()).meshName
    expect(await name()).toBe(null)
    await admin.send('PUT', '/api/settings', { meshName: '  Hill & Valley  ' })
    expect([await name(), (await read()).meshName]).toStrictEqual(['Hill & Valley', 'Hill & Valley'])
    await admin.send('PUT', '/api/settings', { meshName: null })
    expect(await name()).toBe(null)
  })

  it('change by name; the audit log has the changes and nothing else', async () => {
    const changes = { telemetryRetentionDays: 14, messageRetentionDays: 365, nodeActiveSeconds: 900 }
    const answer = await admin.send('PUT', '/api/settings', changes)
    expect([answer.status, await answer.json()]).toStrictEqual([200, { ...DEFAULTS, ...changes }])
    expect(await read()).toStrictEqual({ ...DEFAULTS, ...changes })
    expect(auditRows(app).at(-1)).toStrictEqual({
      action: 'settings_updated',
      username: 'admin',
      details: {
        before: { telemetryRetentionDays: 30, nodeActiveSeconds: 7200 },
        after: { telemetryRetentionDays: 14, nodeActiveSeconds: 900 },
      },
    })
    const { length } = auditRows(app)
    for (const same of [changes, {}]) expect((await admin.send('PUT', '/api/settings', same)).status).toBe(200)
    expect(auditRows(app)).toHaveLength(length)
  })

  it.each([
    { unknownKey: 1 },
    { telemetryRetentionDays: 0 },
    { telemetryRetentionDays: 36_501 },
    { positionRetentionDays: 1.5 },
    { messageRetentionDays: '30' },
    { nodeActiveSeconds: 59 },
    { nodeActiveSeconds: null },
    { meshName: '' },
    { meshName: 'a'.repeat(41) },
    { meshName: 'Hill\u202ehseM' },
    { meshName: 'Two\nlines' },
    { mapTiles: { kind: 'url' } },
    { mapTiles: { kind: 'elsewhere' } },
    { mapTiles: { kind: 'none', url: '/{z}/{x}/{y}' } },
    { mapTiles: 'none' },
    ...[
      'http://tiles.example.org/{z}/{x}/{y}.png',
      'https://tiles.example.org/{z}/{x}.png',
      'javascript:{z}{x}{y}',
    ].map((url) => ({ mapTiles: { kind: 'url', url, darkUrl: null, maxZoom: 19, attribution: null } })),
    { mapTiles: { kind: 'file', attribution: null } },
    { telemetryRetentionDays: 14, __proto__x: true },
    [],
  ])('refuse %j as a whole', async (body) => {
    const { length } = auditRows(app)
    const answer = await admin.send('PUT', '/api/settings', body)
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
    expect(await read()).toStrictEqual(DEFAULTS)
    expect(auditRows(app)).toHaveLength(length)
  })

  it('have their defaults where the stored value is invalid', async () => {
    app.store.sqlite.exec(
      `insert into settings values ('telemetryRetentionDays', '-5', 0), ('of another version', '1', 0)`,
    )
    expect(await read()).toStrictEqual(DEFAULTS)
  })

  it('need the permissions to be read and written', async () => {
    const none = await app.user('none', { settings: { read: false, write: false } })
    const reader = await app.user('reader', { settings: { read: true, write: false } })
    const writer = await app.user('writer', { settings: { read: true, write: true } })
    const { length } = auditRows(app)
    const put = { positionRetentionDays: 7 }
    const tries = [
      [app.client(), 401, 401],
      [none, 403, 403],
      [reader, 200, 403],
      [writer, 200, 200],
    ] as const
    for (const [client, get, change] of tries) {
      expect((await client.send('GET', '/api/settings')).status).toBe(get)
      expect((await client.send('PUT', '/api/settings', put)).status).toBe(change)
    }
    expect(auditRows(app).slice(length)).toMatchObject([{ action: 'settings_updated', username: 'writer' }])
  })
})

it('tells how long data is really kept, to those who may read settings', async () => {
  app.store.sqlite.exec(`insert into retention_plans values ('packets', 1, 1728000, 10000000000, ${START})`)
  const answer = await admin.send('GET', '/api/settings/retention')
  const { tables, database } = Object(await answer.json())
  expect(tables[2]).toStrictEqual({
    table: 'packets',
    setting: 'packetRetentionDays',
    setDays: 7,
    keptDays: 0.7,
    reason: 'disk',
    rowsPerDay: 1_728_000,
    maxRows: 1_428_571,
    lagSeconds: null,
    isLate: false,
  })
  expect(database).toStrictEqual({ usedBytes: null, limitBytes: null, isLarge: false })
  const reader = await app.user('reader', { settings: { read: true, write: false } })
  expect((await reader.send('GET', '/api/settings/retention')).status).toBe(200)
})
