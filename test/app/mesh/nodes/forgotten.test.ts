import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sweepForgotten } from '../../../../src/app/mesh/nodes/deletion/forgotten.ts'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { rollUp } from '../../../../src/app/mesh/telemetry/roll-up.ts'
import { keepUp } from '../../../../src/app/upkeep/upkeep.ts'
import { openDatabase } from '../../../../src/node/database.ts'
import { auditRows, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { FAR, packet, position, store as hear, telemetry } from '../../../support/mesh/mesh.ts'

const HOUR = 3_600_000
const TABLES = ['telemetry', 'telemetry_hourly', 'telemetry_daily', 'telemetry_dirty', 'positions'] as const
/** Rows in each table of the node, and of another node as well. */
const ROWS = 3000

let directory: string
let app: TestApp

const open = () => createTestApp({ store: openDatabase(join(directory, 'mesh.db')) })
const onward = async () => true

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'mesh-forgotten-'))
  app = await open()
  const { sqlite } = app.store
  sqlite.exec(`insert into metrics (name) values ('a.a');
    insert into nodes (node_num, long_name, first_heard) values (${FAR}, 'Far Hill', 1), (7, 'Other', 1);
    insert into neighbors values (${FAR}, 7, 1, 1, 0, 0)`)
  for (const [table, rest] of [
    ['telemetry', ', 1, 0'],
    ['telemetry_hourly', ', 1, 1, 1, 1, 1, 0'],
    ['telemetry_daily', ', 1, 1, 1, 1, 1, 0'],
    ['telemetry_dirty', ''],
  ] as const) {
    sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${ROWS})
      insert into ${table} select nodes.id, 1, n * ${HOUR}${rest} from nodes, i`)
  }
  sqlite.exec('insert into positions select node_id, t, 1, 2, null, null, null from telemetry')
})
afterEach(() => {
  app.close()
  rmSync(directory, { recursive: true })
})

const idOf = (nodeNum: number) =>
  app.store.sqlite.prepare('select id from nodes where node_num = ?').pluck().get(nodeNum)
/** Rows of the tables in their order, selected by the id of a node. */
const rowsOf = (id: unknown) =>
  TABLES.map((table) => app.store.sqlite.prepare(`select count(*) from ${table} where node_id = ?`).pluck().get(id))
const forgotten = () => app.store.sqlite.prepare('select node_id from forgotten_nodes').pluck().all()
const all = (rows: number) => TABLES.map(() => rows)

async function deleteNode(nodeNum = FAR): Promise<number> {
  const admin = await app.admin()
  return (await admin.send('DELETE', `/api/nodes/${nodeNum}`)).status
}

describe('a node disappears in one step that changes few rows, however much data it has', () => {
  /** Rows that change when the node is deleted. */
  const changesOfDeletion = async () => {
    const admin = await app.admin()
    const changes = app.store.sqlite.prepare<[], number>('select total_changes()').pluck()
    const before = changes.get() ?? 0
    expect((await admin.send('DELETE', `/api/nodes/${FAR}`)).status).toBe(204)
    return (changes.get() ?? 0) - before
  }

  test('only its own rows while no text index contains it', async () => {
    app.store.sqlite.exec('update text_indexes set indexed_from = 1000000')
    expect(await changesOfDeletion()).toBeLessThan(10)
  })

  test('ten more rows in the text indexes of nodes and of the audit log', async () => {
    expect(await changesOfDeletion()).toBe(17)
  })
})

test('a deleted node is nowhere to be found', async () => {
  const admin = await app.admin()
  expect(await deleteNode()).toBe(204)
  for (const path of [`/api/nodes/${FAR}`, `/api/nodes/${FAR}/positions`, `/api/telemetry?nodeId=${FAR}&metric=a.a`]) {
    expect([path, (await admin.send('GET', path)).status]).toStrictEqual([path, 404])
  }
  expect(await (await admin.send('GET', '/api/nodes')).json()).toMatchObject([{ nodeNum: 7 }])
  expect(await (await admin.send('GET', '/api/neighbors')).json()).toMatchObject({ neighbors: [] })
  expect(auditRows(app).filter(({ action }) => action === 'node_deleted')).toHaveLength(1)
})

test.each([1, 0.1])(
  'its history is deleted in slices of at most 1000 rows × %d, and no other node’s',
  async (share) => {
    const [id, other] = [idOf(FAR), idOf(7)]
    await deleteNode()
    const total = app.store.sqlite.prepare<[], number>('select total_changes()').pluck()
    const changes: number[] = []
    let before = total.get() ?? 0
    const pause = async () => {
      const now = total.get() ?? 0
      changes.push(now - before)
      before = now
      return true
    }
    expect(await sweepForgotten(app.store, pause, () => share)).toBe(TABLES.length * ROWS)
    // Each deleted row also lowers the row count of its owner.
    expect(Math.max(...changes)).toBe(2 * 1000 * share)
    expect([rowsOf(id), rowsOf(other), forgotten()]).toStrictEqual([all(0), all(ROWS), []])
    expect(await sweepForgotten(app.store, pause)).toBe(0)
  },
)

test("a deletion that the service's stop interrupts is continued by the next start", async () => {
  const id = idOf(FAR)
  const left = () => rowsOf(id).reduce((sum: number, rows) => sum + Number(rows), 0)
  await deleteNode()
  let starts = 0
  while (left() > 0) {
    const before = left()
    expect(forgotten()).toStrictEqual([id])
    let slices = 2
    await sweepForgotten(app.store, async () => --slices > 0)
    expect(left()).toBe(Math.max(0, before - 2000))
    app.close()
    app = await open()
    starts += 1
  }
  expect(starts).toBe(Math.ceil((TABLES.length * ROWS) / 2000))
  await keepUp(app.ports, onward)
  expect([forgotten(), rowsOf(idOf(7))[0]]).toStrictEqual([[], ROWS])
  expect(await deleteNode()).toBe(404)
})

test('a node heard again during its deletion keeps its new rows and loses the old ones', async () => {
  const id = idOf(FAR)
  await deleteNode()
  let heardAt = 0
  const ingest = createIngest(app.store)
  await keepUp(
    app.ports,
    async () => {
      if (++heardAt !== 33) return true
      const said = [
        telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } }),
        position({ latitudeI: 1, longitudeI: 2 }),
      ]
      await hear(
        ingest,
        said.map((data) => packet(data)),
      )
      return true
    },
    () => 0.1,
  )
  expect(heardAt).toBeGreaterThan(40)
  const again = idOf(FAR)
  expect(again).toBeGreaterThan(Number(id))
  expect([rowsOf(id), forgotten()]).toStrictEqual([all(0), []])
  await keepUp(app.ports, onward)
  expect(rowsOf(again)).toStrictEqual([1, 1, 1, 0, 1])
  const admin = await app.admin()
  const { metrics } = Object(await (await admin.send('GET', `/api/telemetry?nodeId=${FAR}`)).json())
  expect(metrics).toMatchObject([{ metric: 'deviceMetrics.voltage' }])
  const node = Object(await (await admin.send('GET', `/api/nodes/${FAR}`)).json())
  expect(node).toMatchObject({ longName: null, firstHeard: START })
})

test('hours that are rolled up at the same time leave nothing behind', async () => {
  const id = idOf(FAR)
  await deleteNode()
  let slices = 0
  await sweepForgotten(app.store, async () => {
    slices += 1
    // As the other job of the service may do, also with hours that it read before the deletion.
    app.store.sqlite
      .exec(`insert into telemetry_dirty select node_id, metric, t from telemetry where node_id = ${String(id)}
      and t % ${7 * HOUR} = 0 on conflict do nothing`)
    if (slices % 2 === 0) await rollUp(app.store, onward)
    return true
  })
  expect([rowsOf(id), forgotten()]).toStrictEqual([all(0), []])
})

test('a node that a forged backup lists as forgotten keeps its history', async () => {
  const id = idOf(7)
  app.store.sqlite.prepare('insert into forgotten_nodes values (?), (12345)').run(id)
  expect(await sweepForgotten(app.store, onward)).toBe(0)
  expect([rowsOf(id), forgotten()]).toStrictEqual([all(ROWS), [id]])
  expect(await deleteNode(7)).toBe(204)
  expect(await sweepForgotten(app.store, onward)).toBe(TABLES.length * ROWS)
  expect([rowsOf(id), forgotten()]).toStrictEqual([all(0), []])
})
