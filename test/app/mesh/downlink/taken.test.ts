import { afterEach, beforeEach, expect, it } from 'vitest'
import { noteRefusal, noteTold, readNews, writeDown } from '../../../../src/app/mesh/downlink/taken.ts'
import { createTestApp, START, type TestApp } from '../../../support/app.ts'
import { FAR, LOCAL } from '../../../support/mesh/mesh.ts'

const DAY = 86_400_000
let app: TestApp

beforeEach(async () => {
  app = await createTestApp()
  app.store.sqlite.prepare(`insert into sources (id, kind, name, created_at) values (1, 'tcp', 'hill', 1)`).run()
})
afterEach(() => app.close())

const word = (n: number) => n.toString(16).padStart(32, '0')
const take = (n: number, at = START) =>
  writeDown(app.store, { id: word(n), claim: word(0), fromNodeNum: LOCAL, packetId: n }, at)
const send = (n: number) =>
  app.store.sqlite
    .prepare(
      `insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction,
        delivery_state) values (1, ?, ?, ?, 0, 'x', ?, 'out', 'sent')`,
    )
    .run(n, LOCAL, FAR, START)
const setState = (n: number, state: string) =>
  app.store.sqlite.prepare('update messages set delivery_state = ? where packet_id = ?').run(state, n)
const count = () => app.store.sqlite.prepare('select count(*) from taken_commands').pluck().get()
/** Tells everything that is new, and returns it. */
async function tell(isBegun = true): Promise<unknown[]> {
  const news = await readNews(app.store, () => isBegun)
  await noteTold(app.store, news)
  return news.map(({ report: { id, state, error } }) => [Number.parseInt(id, 16), state, error])
}

it('tells each state of a command once', async () => {
  for (const n of [1, 2, 3]) expect(await take(n)).toBe(true)
  expect(await take(1)).toBe(false)
  send(1)
  await noteRefusal(app.store, word(2), { error: 'REFUSED', notice: 'No' })
  expect(await tell()).toStrictEqual([
    [1, 'sent', null],
    [2, 'failed', 'REFUSED'],
  ])
  expect(await tell()).toStrictEqual([])
  setState(1, 'delivered')
  expect(await tell(false)).toStrictEqual([
    [3, 'failed', 'NOT_SENT'],
    [1, 'delivered', null],
  ])
  expect(await tell(false)).toStrictEqual([])
})

it('does not know what became of a change of settings whose row a later one has taken', async () => {
  const change = { id: word(1), claim: word(0), fromNodeNum: LOCAL, packetId: 0 }
  await writeDown(app.store, change, START)
  await take(2)
  const state = (id: string) =>
    app.store.sqlite
      .prepare(
        `insert or replace into device_config_changes (source_id, section, id, state, fields, differing, requested_at)
          values (1, 'lora', ?, 'applied', '[]', '[]', 1)`,
      )
      .run(id)
  state(word(1))
  state('of somebody here')
  expect(await tell()).toStrictEqual([])
  expect(await tell(false)).toStrictEqual([
    [1, 'unknown', 'UNREPORTED'],
    [2, 'failed', 'NOT_SENT'],
  ])
  expect(await tell(false)).toStrictEqual([])
})

it('tells what is heard later, however many commands followed', async () => {
  for (let n = 1; n <= 120; n++) {
    await take(n)
    send(n)
  }
  const told = [await tell(), await tell(), await tell(), await tell()]
  expect(told.map(({ length }) => length)).toStrictEqual([50, 50, 20, 0])
  setState(1, 'relayed')
  expect(await tell()).toStrictEqual([[1, 'relayed', null]])
  // The process that sent the others is gone.
  expect((await tell(false))[0]).toStrictEqual([2, 'unknown', 'UNREPORTED'])
})

it('tells nothing of a packet that was deleted after what was told', async () => {
  await take(1)
  send(1)
  setState(1, 'relayed')
  expect(await tell()).toHaveLength(1)
  app.store.sqlite.exec('delete from messages')
  expect([await tell(), await tell(false)]).toStrictEqual([[], []])
})

it('forgets what is old, also if the other service never hears of it', async () => {
  await take(1)
  await take(2, START + 8 * DAY)
  expect(count()).toBe(1)
  app.store.sqlite.exec(`insert into taken_commands (id, claim, taken_at, from_node_num, packet_id)
    with recursive numbers (n) as (select 3 union all select n + 1 from numbers where n < 10100)
    select n, 'x', ${START + 8 * DAY}, 1, n from numbers`)
  await take(20_000, START + 8 * DAY)
  expect(count()).toBe(10_000)
})
