import { afterEach, beforeEach, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client } from '../../../support/app.ts'
import { createTestMesh, FAR, myInfo, packet, store, type TestMesh, text } from '../../../support/mesh/mesh.ts'

const FORMER = 0xa0cb0007
let mesh: TestMesh
let keeper: Client
let reader: Client
beforeEach(async () => {
  mesh = await createTestMesh()
  keeper = await mesh.app.user('keeper', { nodes: { read: true, write: true } })
  reader = await mesh.app.user('reader')
  await store(mesh.ingest, [myInfo, packet(text('before'))])
})
afterEach(() => mesh.app.close())

const PATH = `/api/nodes/${FAR}`
const hide = (hidden: boolean, client = keeper) => client.send('PUT', PATH, { hidden })
const listed = async (client: Client): Promise<string[]> => {
  const nodes: { nodeId: string }[] = Object(await (await client.send('GET', '/api/nodes')).json())
  return nodes.map(({ nodeId }) => nodeId)
}
const said = async (client: Client): Promise<string[]> => {
  const { messages } = Object(await (await client.send('GET', '/api/messages')).json())
  return messages.map((message: { text: string }) => message.text)
}

test('users who may change nodes can hide one, and the audit log records it once', async () => {
  expect(await outcomeOf(hide(true, reader))).toBe('403 forbidden')
  expect([await outcomeOf(hide(true)), await outcomeOf(hide(true))]).toEqual(['200', '200'])
  const recorded = auditRows(mesh.app).filter(({ action }) => action === 'node_updated')
  expect(recorded).toEqual([
    {
      action: 'node_updated',
      username: 'keeper',
      details: { nodeNum: FAR, nodeId: '!a0cb0002', before: { isHidden: false }, after: { isHidden: true } },
    },
  ])
  expect([await outcomeOf(reader.send('GET', PATH)), await outcomeOf(keeper.send('GET', PATH))]).toEqual([
    '404 node_not_found',
    '200',
  ])
  expect([await said(reader), await said(keeper)]).toEqual([[], ['before']])
})

test('a hidden node that is deleted stays hidden: its messages, and the node when it is heard again', async () => {
  await hide(true)
  const at = mesh.app.clock.now
  mesh.app.store.sqlite.exec(`insert into renumberings (from_node_num, to_node_num, since, followed_at)
    values (${FORMER}, ${FAR}, 1, 1)`)
  await store(mesh.ingest, [packet(text('by its former number'), { from: FORMER })])
  mesh.app.store.sqlite.exec(`delete from nodes where node_num = ${FORMER}`)
  expect(await outcomeOf(keeper.send('DELETE', PATH))).toBe('204')
  expect([await said(reader), await said(keeper)]).toEqual([[], ['by its former number', 'before']])

  await store(mesh.ingest, [packet(text('again'))], { at: at + 1000 })
  expect([await listed(reader), await listed(keeper)]).toEqual([[], ['!a0cb0002']])
  expect([await said(reader), (await said(keeper))[0]]).toEqual([[], 'again'])
  await hide(false)
  expect([await listed(reader), await said(reader)]).toEqual([['!a0cb0002'], ['again', 'before']])
})

test('a node that was not hidden is not hidden when it comes back', async () => {
  await keeper.send('DELETE', PATH)
  await store(mesh.ingest, [packet(text('again'))], { at: mesh.app.clock.now + 1000 })
  expect(await listed(reader)).toEqual(['!a0cb0002'])
})
