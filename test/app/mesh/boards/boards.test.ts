import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  MAX_BOARD_CHARTS,
  MAX_BOARDS,
  MAX_CHART_LINES,
  MAX_CHART_METRICS,
  MAX_CHART_NODES,
} from '../../../../src/shared/mesh/boards.ts'
import { type Client, createTestApp, type TestApp } from '../../../support/app.ts'

const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const WRITE = { read: true, write: true }
const MAY = { nodes: READ, info: READ }
const NODES = [101, 102, 103, 104]
const [A, B, C, D] = NODES
const BATTERY = 'deviceMetrics.batteryLevel'
const VOLTAGE = 'deviceMetrics.voltage'
const TEMPERATURE = 'environmentMetrics.temperature'
const SOLAR = { title: 'Power', metrics: [BATTERY, VOLTAGE], nodes: NODES }
const HIDDEN_ONES = { title: 'Behind', metrics: [TEMPERATURE], nodes: [C, D] }

let app: TestApp
let owner: Client & { id: number }
let other: Client & { id: number }
beforeEach(async () => {
  app = await createTestApp()
  for (const num of NODES)
    run('insert into nodes (node_num, long_name, first_heard, last_heard) values (?, ?, 0, 0)', num, `Node ${num}`)
  owner = await app.user('owner', { ...MAY, nodes: WRITE })
  other = await app.user('other', MAY)
})
afterEach(() => app.close())

const run = (query: string, ...values: unknown[]) => app.store.sqlite.prepare(query).run(...values)
const hide = (num: number | undefined) => run('update nodes set is_hidden = 1 where node_num = ?', num)

type Board = {
  id: number
  name: string
  owner: string
  isOwn: boolean
  sharing: string | null
  readers: string[]
  charts: { title: string; metrics: string[]; nodes: { nodeNum: number; nodeId: string; name: string }[] }[]
}

const read = async <T>(answer: Response): Promise<T> => JSON.parse(await answer.text())

async function make(client: Client, more: object = {}): Promise<Board> {
  const answer = await client.send('POST', '/api/boards', { name: 'Solar site', charts: [SOLAR], ...more })
  expect(answer.status).toBe(201)
  const { board } = await read<{ board: Board }>(answer)
  expect(answer.headers.get('location')).toBe(`/api/boards/${board.id}`)
  return board
}

const put = (client: Client, id: number, board: object) => client.send('PUT', `/api/boards/${id}`, board)
async function get(client: Client, id: number): Promise<Board | number> {
  const answer = await client.send('GET', `/api/boards/${id}`)
  return answer.status === 200 ? (await read<{ board: Board }>(answer)).board : answer.status
}
async function list(client: Client): Promise<Board[]> {
  return (await read<{ boards: Board[] }>(await client.send('GET', '/api/boards'))).boards
}
async function codeOf(answer: Response | Promise<Response>): Promise<string> {
  return (await read<{ code: string }>(await answer)).code
}
const audited = () =>
  app.store.sqlite
    .prepare("select details from audit_log where action = 'board_shared' order by id")
    .pluck()
    .all()
    .map((text) => JSON.parse(String(text)))

it('belongs to its owner, who makes, renames, orders and deletes it', async () => {
  const first = await make(owner)
  expect(first).toMatchObject({ name: 'Solar site', owner: 'owner', isOwn: true, sharing: 'nobody', readers: [] })
  expect(first.charts).toStrictEqual([
    {
      ...SOLAR,
      nodes: NODES.map((num) => ({ nodeNum: num, nodeId: `!000000${num.toString(16)}`, name: `Node ${num}` })),
    },
  ])
  const second = await make(owner, { name: 'Another', charts: [] })
  expect((await list(owner)).map(({ name }) => name)).toStrictEqual(['Solar site', 'Another'])
  await owner.send('PUT', '/api/boards/order', { ids: [second.id] })
  expect((await list(owner)).map(({ name }) => name)).toStrictEqual(['Another', 'Solar site'])
  const renamed = await put(owner, first.id, { name: 'Hut', charts: [{ ...SOLAR, nodes: [B, A] }] })
  expect(renamed.status).toBe(200)
  expect(await get(owner, first.id)).toMatchObject({
    name: 'Hut',
    charts: [{ nodes: [{ nodeNum: B }, { nodeNum: A }] }],
  })

  // Nobody else finds it, not even an administrator.
  for (const client of [other, await app.admin()]) {
    expect(await list(client)).toStrictEqual([])
    expect(await get(client, first.id)).toBe(404)
    expect((await put(client, first.id, { name: 'Mine', charts: [] })).status).toBe(404)
    expect((await client.send('DELETE', `/api/boards/${first.id}`)).status).toBe(404)
    await client.send('PUT', '/api/boards/order', { ids: [first.id, second.id] })
  }
  expect((await list(owner)).map(({ name }) => name)).toStrictEqual(['Another', 'Hut'])
  expect((await owner.send('DELETE', `/api/boards/${first.id}`)).status).toBe(204)
  expect(await get(owner, first.id)).toBe(404)
  expect(audited()).toStrictEqual([])
})

it('shows somebody who may see two of its nodes those two, and does not say that there were more', async () => {
  hide(C)
  hide(D)
  const board = await make(owner, { sharing: 'everybody', charts: [SOLAR, HIDDEN_ONES] })
  const asMade = {
    id: board.id,
    name: 'Solar site',
    owner: 'owner',
    isOwn: false,
    sharing: null,
    readers: [],
    charts: [
      {
        ...SOLAR,
        nodes: [
          { nodeNum: A, nodeId: '!00000065', name: 'Node 101' },
          { nodeNum: B, nodeId: '!00000066', name: 'Node 102' },
        ],
      },
    ],
  }
  expect(await get(other, board.id)).toStrictEqual(asMade)
  // The answer is the same as if the board had only ever had those.
  await put(owner, board.id, { name: 'Solar site', sharing: 'everybody', charts: [{ ...SOLAR, nodes: [A, B] }] })
  expect(await get(other, board.id)).toStrictEqual(asMade)
  // Whoever may not see nodes sees none.
  const blind = await app.user('blind', { info: READ, nodes: NONE })
  expect(await get(blind, board.id)).toMatchObject({ charts: [] })
  // A hidden node is as unknown to the makers of boards as one that never was.
  for (const num of [D, 4711]) {
    const charts = [{ ...SOLAR, nodes: [A, num] }]
    expect(await codeOf(other.send('POST', '/api/boards', { name: 'Guess', charts }))).toBe('node_not_found')
    const own = await make(other, { charts: [] })
    expect(await codeOf(put(other, own.id, { name: 'Guess', charts }))).toBe('node_not_found')
  }
})

it('keeps to what its owner may still see', async () => {
  const board = await make(other, { charts: [SOLAR, HIDDEN_ONES] })
  hide(C)
  run('delete from nodes where node_num = ?', D)
  const shown = await get(other, board.id)
  expect(shown).toMatchObject({ charts: [{ nodes: [{ nodeNum: A }, { nodeNum: B }] }, { title: 'Behind', nodes: [] }] })
  // A node that was renumbered is the same node, once.
  run('insert into renumberings (from_node_num, to_node_num, since, followed_at) values (?, ?, 1, 1)', D, A)
  expect(await get(other, board.id)).toMatchObject({
    charts: [{ nodes: [{ nodeNum: A }, { nodeNum: B }] }, { nodes: [{ nodeNum: A }] }],
  })
})

it('keeps the nodes that its owner does not see at the moment, in charts that stay as they are', async () => {
  const board = await make(other, { charts: [SOLAR, HIDDEN_ONES] })
  hide(C)
  const changed = { title: 'Renamed', metrics: [TEMPERATURE], nodes: [D] }
  const sent = [changed, { ...SOLAR, nodes: [A, B, D] }]
  expect((await put(other, board.id, { name: 'New name', sharing: 'nobody', readers: [], charts: sent })).status).toBe(
    200,
  )
  run('update nodes set is_hidden = 0')
  expect(await get(other, board.id)).toMatchObject({
    name: 'New name',
    charts: [{ nodes: [{ nodeNum: D }] }, { nodes: NODES.map((nodeNum) => ({ nodeNum })) }],
  })
})

it('of users who left takes no place in the list of others', async () => {
  const board = await make(owner, { sharing: 'everybody' })
  const left = await app.user('left', MAY)
  for (let index = 0; index < 210; index++) {
    run(
      `insert into boards (uid, owner_id, name, position, sharing, charts) values (?, ?, 'Old', ?, 'everybody', '[]')`,
      `old ${index}`,
      left.id,
      index,
    )
  }
  run('update users set is_active = 0 where id = ?', left.id)
  expect((await list(other)).map(({ id }) => id)).toEqual([board.id])
})

it('is shared by name with exactly those users, and never says which names exist', async () => {
  const board = await make(owner, { sharing: 'named', readers: ['OTHER', 'nobody at all'] })
  expect(board.readers).toStrictEqual(['nobody at all', 'OTHER'])
  expect((await list(other)).map(({ id }) => id)).toStrictEqual([board.id])
  const third = await app.user('third', MAY)
  expect(await list(third)).toStrictEqual([])
  expect(await get(third, board.id)).toBe(404)
  // It follows the user, not the name.
  const admin = await app.admin()
  expect((await admin.send('PUT', `/api/users/${other.id}`, { username: 'renamed' })).status).toBe(200)
  expect((await admin.send('PUT', `/api/users/${third.id}`, { username: 'other' })).status).toBe(200)
  await put(owner, board.id, {
    name: 'Solar site',
    sharing: 'named',
    readers: ['OTHER', 'nobody at all'],
    charts: [SOLAR],
  })
  expect((await list(other)).map(({ id }) => id)).toStrictEqual([board.id])
  expect(await list(third)).toStrictEqual([])
  // Taken back: at once.
  await put(owner, board.id, { name: 'Solar site', sharing: 'everybody', charts: [SOLAR] })
  expect(await get(third, board.id)).toMatchObject({ isOwn: false, sharing: null, readers: [] })
  await put(owner, board.id, { name: 'Solar site', sharing: 'nobody', charts: [SOLAR] })
  expect(await get(third, board.id)).toBe(404)
  expect(audited().map(({ after, before }) => [before?.sharing, after?.sharing])).toStrictEqual([
    [undefined, 'named'],
    ['named', 'everybody'],
    ['everybody', 'nobody'],
  ])
})

it('can be changed by nobody else; an administrator can delete one that is shared, and its sharing ends with its owner', async () => {
  const board = await make(owner, { sharing: 'everybody' })
  expect(await codeOf(put(other, board.id, { name: 'Mine', charts: [] }))).toBe('forbidden')
  expect(await codeOf(other.send('DELETE', `/api/boards/${board.id}`))).toBe('forbidden')
  const admin = await app.admin()
  expect((await admin.send('DELETE', `/api/boards/${board.id}`)).status).toBe(204)
  expect(audited().at(-1)).toMatchObject({ boardId: board.id, before: { sharing: 'everybody' }, after: null })
  const next = await make(owner, { sharing: 'everybody' })
  expect(await get(other, next.id)).toMatchObject({ name: 'Solar site' })
  await admin.send('DELETE', `/api/users/${owner.id}`)
  expect(await get(other, next.id)).toBe(404)
  expect(await list(other)).toStrictEqual([])
})

it('is for people who may read measurements, and a token only reads', async () => {
  const board = await make(owner, { sharing: 'everybody' })
  const outsider = await app.user('outsider', { nodes: READ, info: NONE })
  expect((await outsider.send('GET', `/api/boards/${board.id}`)).status).toBe(403)
  expect(await codeOf(outsider.send('POST', '/api/boards', { name: 'X' }))).toBe('forbidden')
  expect((await app.client().send('GET', `/api/boards/${board.id}`)).status).toBe(401)
  const { token } = await read<{ token: string }>(
    await owner.send('POST', '/api/tokens', { name: 't', scopes: ['info:read', 'nodes:read'] }),
  )
  const headers = { authorization: `Bearer ${token}` }
  expect((await app.request(`/api/boards/${board.id}`, { headers })).status).toBe(200)
  expect((await app.request(`/api/boards/${board.id}`, { method: 'DELETE', headers })).status).toBe(403)
  // Whoever sees as the owner does not see what is the owner's own.
  const admin = await app.admin()
  await make(owner, { name: 'Private' })
  const { seeAs } = await read<{ seeAs: string }>(await admin.send('POST', `/api/users/${owner.id}/see-as`))
  const seen = await admin.send('GET', '/api/boards', undefined, { 'x-see-as': seeAs })
  expect((await read<{ boards: Board[] }>(seen)).boards).toMatchObject([{ name: 'Solar site', isOwn: false }])
})

it('has bounds', async () => {
  const chart = (more: object) => ({ name: 'X', charts: [{ ...SOLAR, ...more }] })
  const many = (count: number) => Array.from({ length: count }, (_, n) => n + 1)
  const metrics = ['voltage', 'ch1Voltage', 'ch2Voltage', 'ch3Voltage', 'ch4Voltage'].map(
    (name) => `powerMetrics.${name}`,
  )
  for (const wrong of [
    { name: '' },
    { name: 'a\nb' },
    { name: 'X', owner: 1 },
    chart({ metrics: [] }),
    chart({ metrics: ['=1+1'] }),
    chart({ metrics: [BATTERY, BATTERY] }),
    chart({ metrics: [BATTERY, VOLTAGE, TEMPERATURE] }),
    chart({ metrics: metrics.slice(0, MAX_CHART_METRICS + 1) }),
    chart({ nodes: [A, A] }),
    chart({ nodes: [0] }),
    chart({ nodes: many(MAX_CHART_NODES + 1) }),
    chart({ metrics: metrics.slice(0, 3), nodes: many(MAX_CHART_LINES / 2) }),
    { name: 'X', charts: Array.from({ length: MAX_BOARD_CHARTS + 1 }, () => SOLAR) },
    { name: 'X', sharing: 'named', readers: ['a', 'A'] },
  ]) {
    expect(await codeOf(owner.send('POST', '/api/boards', wrong)), JSON.stringify(wrong)).toBe('invalid_request')
  }
  for (let n = 0; n < MAX_BOARDS; n++) await make(owner, { charts: [] })
  expect(await codeOf(owner.send('POST', '/api/boards', { name: 'One more' }))).toBe('too_many_boards')
  expect(await list(owner)).toHaveLength(MAX_BOARDS)
  await make(other)
  // A damaged row has no charts, and stops nobody.
  const [{ id } = { id: 0 }] = await list(owner)
  run('update boards set charts = ? where id = ?', '{"not":"charts"}', id)
  expect(await get(owner, id)).toMatchObject({ charts: [] })
})
