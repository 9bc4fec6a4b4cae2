import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { wholeSlices } from '../../src/app/base/pacing/slice-share.ts'
import { find, summarise, surveyMesh } from '../../src/app/upkeep/surveying.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { runSurvey } from '../../src/edge/schedule.ts'
import { ADMIN_PASSWORD, type Client, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { fewRoundsHasher } from '../support/few-rounds.ts'
import { FINDING_RULES } from '../../src/shared/mesh/finding-rules.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { fillPast, FIRST } from '../support/mesh/past.ts'
import { type CountedDatabase, countTrips } from './counting.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NODES = 250
/** developers.cloudflare.com/d1/platform/limits: queries of one run of a worker, or of one request. */
const MAX_QUERIES = 1000
const SURVEY = '8-58/10 * * * *'
/** The beginning of an hour. */
const NOW = Math.floor(Date.now() / HOUR) * HOUR

const silent = `!${(FIRST + 1).toString(16)}`
const range = `from=${NOW - DAY}&to=${NOW}`
const READS = [
  '/api/findings',
  '/api/coverage?bits=16',
  '/api/topology',
  `/api/nodes/${silent}/past`,
  `/api/nodes/${silent}/silence`,
  `/api/playback/tracks?${range}`,
  `/api/playback/heard?${range}`,
  `/api/playback/hours?${range}`,
]

let workerd: Workerd
let d1: CountedDatabase
let edge: TestApp
let node: TestApp
beforeAll(async () => {
  workerd = await openWorkerd(SCENARIO_ENV)
  d1 = countTrips(workerd.database, { reads: false })
  const store = d1Store(d1.database)
  edge = await createTestApp({
    // The worker signs in the same administrator.
    passwords: fewRoundsHasher(),
    ports: { store, sessions: databaseSessions(store), radio: null, compressor: null, now: () => NOW },
  })
  node = await createTestApp({ ports: { now: () => NOW } })
  fillPast(node.store, NODES, NOW)
  const told: string[] = []
  fillPast(Object({ sqlite: { exec: (sql: string) => told.push(sql) } }), NODES, NOW)
  for (const statement of told.join('').split(';')) if (statement.trim() !== '') await workerd.sql(statement)
}, 240_000)
afterAll(async () => {
  node.close()
  edge.close()
  await workerd.close()
})

const count = async (table: string) => Number((await workerd.sql(`select count(*) as n from ${table}`))[0]?.['n'])
/**
 * Larger slices find nodes in another order, and of very many nodes and findings the first ones are kept: which nodes
 * `hops` names may differ.
 */
function comparable(answer: unknown): unknown {
  const { findings } = Object(answer)
  if (findings === undefined) return answer
  return findings
    .map((found: Record<string, unknown>) =>
      JSON.stringify(
        found['rule'] === 'hops'
          ? ['hops']
          : [found['rule'], found['subject'], found['evidence'], Object(found['nodes']).length],
      ),
    )
    .toSorted()
}
/** One run of the trigger at this minute: it stays within its queries. */
async function runAt(minute: number): Promise<void> {
  d1.takeQueries()
  await runSurvey(edge.ports, NOW + minute * MINUTE)
  expect(d1.takeQueries()).toBeLessThanOrEqual(MAX_QUERIES)
}
/** What others have put into the log of packets since, as many rows. */
const hear = (packets: number) =>
  workerd.sql(`with recursive n(i) as (select 0 union all select i + 1 from n where i < ${packets - 1})
    insert into packets (source_id, t, packet_id, from_node_num, to_node_num, gateway, channel, port, rx_snr, hops_away,
      hop_limit, via_mqtt, pki_encrypted, replayed, payload)
    select 900, ${NOW}, 800000 + i, ${FIRST} + i % ${NODES}, 4294967295, ${FIRST}, 0, 67, 5, 0, 3, 0, 0, 0,
      '{"kind":"telemetry"}' from n`)

describe('what is known about the whole mesh', () => {
  test('runs of the schedule find the same as Node does, and pages the same answers', async () => {
    const goesOn = async () => true
    await summarise(node.ports, goesOn, wholeSlices)
    await surveyMesh(node.ports, goesOn, wholeSlices)
    await find(node.ports, goesOn)
    await runAt(58)
    await runAt(8)
    const [here, there] = [await node.admin(), await edge.admin()]
    for (const path of READS) {
      const expected = await (await here.send('GET', path)).json()
      d1.takeQueries()
      const answer = await there.send('GET', path)
      expect(d1.takeQueries(), path).toBeLessThanOrEqual(MAX_QUERIES)
      expect([answer.status, comparable(await answer.json())], path).toEqual([200, comparable(expected)])
    }
    expect(Object(await (await there.send('GET', '/api/findings')).json()).at).toBe(NOW)
    d1.takeQueries()
    const rule = { kind: 'finding', name: 'Wrong', findings: FINDING_RULES, nodes: { kind: 'all' } }
    expect((await there.send('POST', '/api/alerts/rules/preview', rule)).status).toBe(200)
    expect(d1.takeQueries()).toBeLessThanOrEqual(MAX_QUERIES)
    expect(await count('heard_links')).toBeGreaterThan(0)
  }, 240_000)

  test('a few packets wait for the last run of the hour, because each run writes rows', async () => {
    const packets = async () =>
      Number((await workerd.sql('select sum(packets) as n from node_days where day > 0'))[0]?.['n'])
    await hear(100)
    const before = await packets()
    await runAt(38)
    expect(await packets()).toBe(before)
    await runAt(58)
    expect(await packets()).toBe(before + 100)
    // So many do not wait for it.
    await hear(80_000)
    await runAt(28)
    expect(await packets()).toBe(before + 80_100)
  }, 60_000)

  test('the trigger of the worker does this', async () => {
    await hear(50)
    await workerd.sql('delete from finding_looks')
    const hour = new Date(NOW)
    await workerd.runSchedule(new Date(hour.getTime() + 58 * MINUTE), SURVEY)
    expect(
      await workerd.sql('select max(id) - (select packets from node_days where day = 0) as n from packets'),
    ).toEqual([{ n: 0 }])
    await workerd.runSchedule(new Date(hour.getTime() + 8 * MINUTE), SURVEY)
    expect(await count('finding_looks')).toBeGreaterThan(10)
  }, 60_000)
})

describe('on the worker as it is deployed', () => {
  let admin: Client
  beforeAll(async () => {
    admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
  })

  test('its pages get their answers', async () => {
    for (const path of READS) expect((await admin.send('GET', path)).status, path).toBe(200)
    const { findings } = Object((await admin.send('GET', '/api/findings')).body)
    const [{ rule, subject }] = findings
    expect((await admin.send('PUT', `/api/findings/${rule}/${subject}`, { muted: true })).status).toBe(204)
    const muted = Object((await admin.send('GET', '/api/findings')).body).findings
    expect(muted).toContainEqual(expect.objectContaining({ rule, subject, isMuted: true, mutedBy: 'admin' }))
    expect((await admin.send('PUT', '/api/findings/nothing/1', { muted: true })).status).toBe(404)
  })

  test('rules of alerts watch findings and look back', async () => {
    const rule = {
      name: 'Mesh',
      kind: 'finding',
      findings: ['depends', 'one_way', 'hops', 'restarts'],
      nodes: { kind: 'all' },
    }
    const made = await admin.send('POST', '/api/alerts/rules', rule)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
  })

  test('boards are made, shared, changed and deleted', async () => {
    const board = { name: 'Solar', sharing: 'everybody', charts: [] }
    const made = await admin.send('POST', '/api/boards', board)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const { id } = Object(made.body).board
    expect((await admin.send('PUT', `/api/boards/${id}`, { ...board, name: 'Sun' })).status).toBe(200)
    expect((await admin.send('PUT', '/api/boards/order', { ids: [id] })).status).toBe(204)
    expect(await admin.send('GET', `/api/boards/${id}`)).toMatchObject({
      status: 200,
      body: { board: { name: 'Sun' } },
    })
    expect((await admin.send('DELETE', `/api/boards/${id}`)).status).toBe(204)
    expect((await admin.send('GET', `/api/boards/${id}`)).status).toBe(404)
  })

  test('overlays are put on the map in parts', async () => {
    const point = (n: number) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [n, 50] },
      properties: {},
    })
    const made = await admin.send('POST', '/api/map/overlays', {
      name: 'Huts',
      isPublic: false,
      isWhole: false,
      features: [point(1)],
    })
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const { id } = Object(made.body)
    const more = await admin.send('POST', `/api/map/overlays/${id}/shapes`, { features: [point(2)], isWhole: true })
    expect(more.status, JSON.stringify(more.body)).toBe(204)
    expect(Object((await admin.send('GET', `/api/map/overlays/${id}`)).body).features).toHaveLength(2)
    expect((await admin.send('PUT', `/api/map/overlays/${id}`, { name: 'Shelters', isPublic: true })).status).toBe(200)
    expect((await admin.send('DELETE', `/api/map/overlays/${id}`)).status).toBe(204)
  })
})
