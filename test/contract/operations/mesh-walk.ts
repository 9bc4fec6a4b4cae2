import { expect } from 'vitest'
import { item } from '../../support/mesh/delivery.ts'
import { FAR, LOCAL, myInfo, nodeInfo, packet, position, telemetry, text, user } from '../../support/mesh/mesh.ts'
import type { Walker } from './walker.ts'

const HOUR = 3_600_000
/** Delivers to the service, and sends for it. */
const RADIO = 'hill'

/** Of the far node. */
const KEY = Uint8Array.from({ length: 32 }, (_, index) => 3 * index)

/** Everything about the mesh. `recording`: messages of a real radio, as base64. */
export async function walkMesh(walker: Walker, recording: readonly string[]): Promise<void> {
  const { call } = walker
  const made = await call('POST /api/tokens', { body: { name: 'hill', scopes: ['ingest', 'radio'] } })
  const token = { by: walker.stranger(), headers: { authorization: `Bearer ${String(made['token'])}` } }
  await call('POST /api/ingest', { ...token, body: { source: 'recorded', packets: recording } })
  const heard = [
    myInfo,
    nodeInfo({ num: LOCAL, user: { id: '!a0cb0001', longName: 'Hill', shortName: 'HI' } }),
    packet(user({ longName: 'Far away', shortName: 'FA', publicKey: KEY })),
    packet(user({ longName: 'Somebody else', shortName: 'FA', publicKey: KEY.map((byte) => byte + 1) })),
    packet(text('hello')),
    packet(position({ latitudeI: 508_000_000, longitudeI: 87_000_000 })),
    packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 50 } } })),
  ]
  await call('POST /api/ingest', { ...token, body: { source: RADIO, packets: heard.map((each) => item(each)) } })
  await walkNodes(walker)
  await walkKnowledge(walker)
  await walkTexts(walker, token)
  await walkSending(walker)
  await walkBoards(walker)
  await walkMaps(walker)
  await walk(walker, ['info', 'neighbors', 'links', 'channels', 'dashboard', 'settings', 'settings/retention'])
  await call('PUT /api/settings', { body: { meshName: 'Walked' } })
  await walker.listen()
  await call('GET /api/metrics')
  await call('DELETE /api/nodes/:id', { ids: [FAR] })
}

/** Lists that need nothing. */
async function walk({ call }: Walker, paths: readonly string[]): Promise<void> {
  for (const path of paths) await call(`GET /api/${path}`)
}

async function walkNodes({ call }: Walker): Promise<void> {
  const ids = [FAR]
  await call('GET /api/nodes')
  await call('GET /api/nodes', { query: '?limit=2&q=a' })
  await call('GET /api/nodes/keys')
  await call('GET /api/nodes/:id', { ids })
  await call('PUT /api/nodes/:id', { ids, body: { isFavorite: true, notes: 'on a hill' } })
  await call('PUT /api/nodes/:id/key', { ids, body: { publicKey: Buffer.from(KEY).toString('base64') } })
  await call('PUT /api/nodes/:id/own', { ids: [LOCAL], body: { own: true } })
  const nothing = { refusedPublicKey: null, refusedLongName: null, refusedShortName: null }
  await call('PUT /api/nodes/:id/identity', { ids, body: { use: 'known', ...nothing } })
  for (const part of ['positions', 'radios', 'past', 'silence', 'requests']) {
    await call(`GET /api/nodes/:id/${part}`, { ids })
  }
  await call('GET /api/telemetry', { query: `?nodeId=${FAR}` })
  await call('GET /api/telemetry', { query: `?nodeId=${FAR}&metric=deviceMetrics.batteryLevel` })
}

/** What is known about the whole mesh and its past. */
async function walkKnowledge({ call }: Walker): Promise<void> {
  const { findings } = await call('GET /api/findings')
  const [{ rule, subject } = { rule: 'none', subject: 1 }] = Object(findings)
  await call('PUT /api/findings/:rule/:subject', { ids: [rule, subject], body: { muted: true } })
  await call('GET /api/coverage', { query: '?bits=16' })
  await call('GET /api/topology')
  const range = `?from=${Date.now() - 24 * HOUR}&to=${Date.now()}`
  for (const part of ['tracks', 'heard', 'hours']) await call(`GET /api/playback/${part}`, { query: range })
  const { packets } = await call('GET /api/packets')
  expect(Object(packets).length).toBeGreaterThan(20)
  await call('GET /api/packets', { query: `?port=1&from=${FAR}` })
}

async function walkTexts({ call }: Walker, token: object): Promise<void> {
  const { messages } = await call('GET /api/messages', { query: '?q=hello' })
  await call('GET /api/messages/:id/receptions', { ids: [Object(messages)[0].id] })
  const allowed = `?radio=${RADIO}&kind=texts&kind=traceroutes&kind=requests&kind=settings`
  await call('GET /api/ingest/commands', { ...token, query: `${allowed}&wait=0` })
  const lora = { section: 'lora', readAt: Date.now(), values: { hopLimit: 3 } }
  const shown = await call('PUT /api/ingest/settings', { ...token, body: { radio: RADIO, sections: [lora] } })
  expect(shown).toEqual({ isKnown: true })
  await call('POST /api/messages', { body: { text: 'from far away', channel: 0, radio: RADIO } })
  await call('POST /api/traceroutes', { body: { to: FAR, radio: RADIO } })
  const { commands } = await call('GET /api/ingest/commands', { ...token, query: `${allowed}&wait=5` })
  const [{ id }, { id: other }] = Object(commands)
  const taken = await call('POST /api/ingest/commands/take', { ...token, body: { id, claim: id } })
  expect(taken['remainingMs']).toBeGreaterThan(0)
  const report = { id, claim: id, state: 'sent', error: null, notice: null, isAnswered: false }
  await call('POST /api/ingest/commands/take', { ...token, body: { id: other, claim: id } })
  await call('POST /api/ingest/commands/report', { ...token, body: { reports: [report] } })
  const { messages: sent } = await call('GET /api/messages')
  expect(Object(sent)[0]).toMatchObject({ text: 'from far away', deliveryState: 'sent' })
  const { traceroutes } = await call('GET /api/traceroutes')
  await call('GET /api/traceroutes/:id/answers', { ids: [Object(traceroutes)[0].id] })
}

/** What only a service with a radio of its own does. */
async function walkSending({ call }: Walker): Promise<void> {
  await call('POST /api/traceroutes/direct', { body: {} })
  await call('POST /api/nodes/:id/requests', { ids: [FAR], body: { kind: 'position' } })
  const place = { name: 'Hut', latitude: 50, longitude: 8 }
  await call('POST /api/waypoints', { body: place })
  const waypoints = await call('GET /api/waypoints')
  const ids = [Object(waypoints['waypoints'] ?? waypoints)[0]?.id ?? 1]
  await call('PUT /api/waypoints/:id', { ids, body: place })
  await call('DELETE /api/waypoints/:id', { ids })
}

async function walkBoards({ call }: Walker): Promise<void> {
  const charts = [{ title: 'Batteries', metrics: ['deviceMetrics.batteryLevel'], nodes: [FAR] }]
  const body = { name: 'Power', sharing: 'everybody', charts }
  const { board } = await call('POST /api/boards', { body })
  const ids = [Object(board).id]
  await call('GET /api/boards')
  await call('GET /api/boards/:id', { ids })
  await call('PUT /api/boards/:id', { ids, body: { ...body, name: 'Sun' } })
  await call('PUT /api/boards/order', { body: { ids } })
  await call('DELETE /api/boards/:id', { ids })
}

async function walkMaps({ call }: Walker): Promise<void> {
  const geometry = { type: 'Point', coordinates: [8, 50] }
  const features = [{ type: 'Feature', geometry, properties: { name: 'Hut' } }]
  const { id } = await call('POST /api/map/overlays', { body: { name: 'Huts', features, isWhole: false } })
  const ids = [Number(id)]
  await call('POST /api/map/overlays/:id/shapes', { ids, body: { features, isWhole: true } })
  await call('GET /api/map/overlays')
  await call('GET /api/map/overlays/:id', { ids })
  await call('PUT /api/map/overlays/:id', { ids, body: { name: 'Shelters', isPublic: true } })
  await call('DELETE /api/map/overlays/:id', { ids })
  await call('GET /api/map')
  const url = encodeURIComponent('https://127.0.0.1:9/{z}/{x}/{y}.png')
  await call('GET /api/map/preview', { query: `?url=${url}&latitude=50&longitude=8&zoom=5` })
  await call('GET /api/map/archive')
  await call('GET /api/map/region')
  const area = { bounds: [8, 50, 8.1, 50.1], maxZoom: 6 }
  await call('POST /api/map/region/preview', { body: area })
  await call('POST /api/map/region', { body: area })
  await call('GET /api/map/region.pmtiles')
  await call('DELETE /api/map/region', { query: '?what=download' })
}
