import { expect, test } from 'vitest'
import { auditOf, type Client, makeUser, refusal, signIn } from '../service.ts'

const HILL = 0xa0cb0001
const VALLEY = 0xa0cb0002
const CREEK = 0xa0cb0003

/** Nodes, messages and settings, and who may see them. */
export function meshScenarios(admin: () => Client): void {
  test('nodes are listed, found, annotated and deleted, each audited', async () => {
    await seedNodes(admin())
    const list = await admin().send('GET', '/api/nodes')
    expect(list.status).toBe(200)
    expect(list.body).toMatchObject([
      { nodeNum: VALLEY, nodeId: '!a0cb0002', longName: 'Valley', hwModel: 'UNKNOWN_60000', position: null },
      { nodeNum: HILL, nodeId: '!a0cb0001', longName: 'Hill', hwModel: 'HELTEC_V3', role: 'CLIENT', snr: null },
    ])
    const etag = list.headers.get('etag') ?? ''
    expect((await admin().send('GET', '/api/nodes', undefined, { 'if-none-match': etag })).status).toBe(304)
    expect((await admin().send('GET', '/api/nodes?q=HILL')).body).toMatchObject([{ nodeNum: HILL }])

    const noted = await admin().send('PUT', '/api/nodes/!a0cb0001', { notes: 'on the mast', isFavorite: true })
    expect(noted).toMatchObject({ status: 200 })
    expect((await admin().send('GET', '/api/nodes', undefined, { 'if-none-match': etag })).status).toBe(200)
    expect((await admin().send('DELETE', `/api/nodes/${VALLEY}`)).status).toBe(204)
    expect(await admin().send('GET', `/api/nodes/${VALLEY}`)).toMatchObject(refusal(404, 'node_not_found'))
    expect(await auditOf(admin(), 'node_updated')).toMatchObject([
      { details: { before: { notes: '', isFavorite: false }, after: { notes: 'on the mast', isFavorite: true } } },
    ])
    expect(await auditOf(admin(), 'node_deleted')).toHaveLength(1)
  })

  test('each user sees the parts of the mesh that their permissions allow', async () => {
    const id = await makeUser(admin(), 'watcher')
    const none = { read: false, write: false }
    const permissions = { nodes: { read: true, write: false }, messages: none, info: none, dashboard: none }
    expect((await admin().send('PUT', `/api/users/${id}/permissions`, { permissions })).status).toBe(200)
    const watcher = await signIn(admin().service, 'watcher')
    expect((await watcher.send('GET', '/api/nodes')).status).toBe(200)
    expect(await watcher.send('PUT', '/api/nodes/1', { notes: 'mine' })).toMatchObject(refusal(403, 'forbidden'))
    expect(await watcher.send('DELETE', '/api/nodes/1')).toMatchObject(refusal(403, 'forbidden'))
    for (const path of ['/api/messages', '/api/settings', '/api/info']) {
      expect(await watcher.send('GET', path)).toMatchObject(refusal(403, 'forbidden'))
    }
  })

  test('messages are paged from the newest, without a gap between two pages', async () => {
    const values = Array.from(
      { length: 5 },
      (_, n) => `(${n + 1}, ${HILL}, 4294967295, 0, 'message ${n + 1}', 1, 'in')`,
    )
    await admin().service.sql(
      `insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction) values ${values.join()}`,
    )
    const first = Object((await admin().send('GET', '/api/messages?limit=3')).body)
    const second = Object((await admin().send('GET', `/api/messages?limit=3&before=${first.nextBefore}`)).body)
    const texts = [...first.messages, ...second.messages].map(({ text }: { text: string }) => text)
    expect(texts).toEqual(['message 5', 'message 4', 'message 3', 'message 2', 'message 1'])
    expect(second.nextBefore).toBeNull()
  })

  test('traceroutes are paged from the newest, without a gap between two pages', async () => {
    const values = [1, 2, 3].map((n) => `(${n}, ${HILL}, ${CREEK}, ${n}, 'unknown', 0)`)
    await admin().service.sql(
      `insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, state, channel) values ${values.join()}`,
    )
    const pageOf = async (query: string) => Object((await admin().send('GET', `/api/traceroutes?limit=2${query}`)).body)
    const first = await pageOf('')
    const second = await pageOf(`&before=${first.nextBefore}`)
    const found = [first, second].map((page) => page.traceroutes.map((one: { requestId: number }) => one.requestId))
    expect([found, second.nextBefore]).toEqual([[[3, 2], [1]], null])
  })

  test('a metric that no node can measure is refused, with the name that was meant', async () => {
    const path = `/api/telemetry?nodeId=${HILL}&metric=`
    const refused = await admin().send('GET', `${path}deviceMetrics.volltage`)
    expect(refused).toMatchObject(refusal(400, 'invalid_request'))
    expect(Object(refused.body).detail).toBe('metric: no such metric; did you mean deviceMetrics.voltage?')
    expect(await admin().send('GET', `${path}nonsense`)).toMatchObject(refusal(400, 'invalid_request'))
    expect((await admin().send('GET', `${path}deviceMetrics.voltage`)).body).toMatchObject({ series: [] })
  })

  test('the dashboard and the metrics count stored data', async () => {
    const others = Object((await admin().send('GET', '/api/nodes')).body).length
    await admin().service.sql(
      `insert into nodes (node_num, last_heard, first_heard) values (${CREEK}, ${Date.now()}, 1000)`,
    )
    const dashboard = Object((await admin().send('GET', '/api/dashboard')).body)
    expect(dashboard).toMatchObject({ counts: { nodes: others + 1, activeNodes: 1 }, links: [], lastBackup: null })
    expect(dashboard.hours).toHaveLength(24)
    expect(dashboard.storage.databaseBytes).toBeGreaterThan(50_000)
    const metrics = await admin().send('GET', '/api/metrics')
    expect(metrics).toMatchObject({ status: 200, body: expect.stringContaining(`\nmesh_nodes ${others + 1}\n`) })
  })

  test('settings can be changed, and the audit log has the changes', async () => {
    const before = Object((await admin().send('GET', '/api/settings')).body)
    const changed = await admin().send('PUT', '/api/settings', { messageRetentionDays: 30 })
    expect(changed).toMatchObject({ status: 200, body: { ...before, messageRetentionDays: 30 } })
    expect(await admin().send('PUT', '/api/settings', { unheardOf: 1 })).toMatchObject(refusal(400, 'invalid_request'))
    expect(await auditOf(admin(), 'settings_updated')).toMatchObject([
      { details: { before: { messageRetentionDays: 365 }, after: { messageRetentionDays: 30 } } },
    ])
  })

  test('map tiles are chosen by a setting, and can be previewed', async () => {
    const url = 'https://tiles.example.org/{z}/{x}/{y}.png'
    const query = new URLSearchParams({ url, latitude: '49.9', longitude: '10.9', zoom: '8' })
    const preview = await admin().send('GET', `/api/map/preview?${query.toString()}`)
    expect([preview.status, preview.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(preview.headers.get('content-security-policy')).toContain("img-src 'self' https://tiles.example.org")
    const mapTiles = { kind: 'url', url, darkUrl: null, maxZoom: 18, attribution: null }
    expect(await admin().send('PUT', '/api/settings', { mapTiles })).toMatchObject({ status: 200, body: { mapTiles } })
    expect((await admin().send('GET', '/api/map')).body).toEqual({ tiles: mapTiles })
    const changes = await auditOf(admin(), 'settings_updated')
    expect(changes).toContainEqual(
      expect.objectContaining({ details: { before: { mapTiles: { kind: 'configured' } }, after: { mapTiles } } }),
    )
    const file = { mapTiles: { kind: 'file', attribution: null } }
    expect(await admin().send('PUT', '/api/settings', file)).toMatchObject(refusal(400, 'invalid_request'))
  })
}

async function seedNodes(admin: Client): Promise<void> {
  await admin.service.sql(
    `insert into nodes (node_num, long_name, short_name, hw_model, role, last_heard, first_heard) values
      (${HILL}, 'Hill', 'HIL', 43, 0, 1000, 1000), (${VALLEY}, 'Valley', 'VAL', 60000, 0, 2000, 1000)`,
  )
}
