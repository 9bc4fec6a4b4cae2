import { base64Encode } from '@bufbuild/protobuf/wire'
import * as fc from 'fast-check'
import { afterEach, expect, it, vi } from 'vitest'
import * as z from 'zod'
import { WHOLE_VIEW } from '../../../../src/app/accounts/access/visible.ts'
import { key as keyRule } from '../../../../src/app/alerts/kinds/key.ts'
import { sha256Hex } from '../../../../src/app/base/crypto.ts'
import { findMeeting, keyHealthSchema } from '../../../../src/app/mesh/nodes/key-health.ts'
import { NO_PERMISSIONS } from '../../../../src/shared/access/resources.ts'
import { type Client, createTestApp, START } from '../../../support/app.ts'
import { turnsDuring } from '../../../support/turns.ts'

const A = 0xa0cb0001
afterEach(() => vi.restoreAllMocks())

const keysSchema = z.array(keyHealthSchema)

const WEAK = 200
/** The keys themselves are not published: the first published hash stands for one. */
function weaken(): void {
  const made = sha256Hex(new Uint8Array(32).fill(WEAK))
  const { has } = Set.prototype
  vi.spyOn(Set.prototype, 'has').mockImplementation(function (this: Set<unknown>, value) {
    return has.call(this, value === made ? WEAK_HASH : value)
  })
}
const WEAK_HASH = 'f47ecc17e6b4a322eceed9084f3963ea8075e124ce05366963b2cbc028d3348b'

const key = (n: number) => base64Encode(new Uint8Array(32).fill(n))

async function startMesh() {
  const app = await createTestApp()
  const insert = app.store.sqlite.prepare(
    'insert into nodes (node_num, public_key, key_mismatch, is_hidden, first_heard, last_heard) values (?, ?, ?, ?, ?, ?)',
  )
  const add = (
    nodeNum: number,
    publicKey: string | null,
    { mismatch = 0, hidden = 0, from = START, to = START + 1000 } = {},
  ) => insert.run(nodeNum, publicKey, mismatch, hidden, from, to)
  return { app, add }
}

it('nodes with a weak key, one of several nodes, or a contradicted one are listed', async () => {
  const { app, add } = await startMesh()
  weaken()
  add(A, key(1))
  add(A + 1, key(2))
  add(A + 2, key(2))
  add(A + 3, key(WEAK))
  add(A + 4, key(3), { mismatch: 1 })
  add(A + 5, null)
  add(A + 6, null)
  const admin = await app.admin()
  expect(await (await admin.send('GET', '/api/nodes/keys')).json()).toStrictEqual([
    { nodeNum: A + 1, changed: false, weak: false, sharedWith: [A + 2], holders: 2 },
    { nodeNum: A + 2, changed: false, weak: false, sharedWith: [A + 1], holders: 2 },
    { nodeNum: A + 3, changed: false, weak: true, sharedWith: [], holders: 1 },
    { nodeNum: A + 4, changed: true, weak: false, sharedWith: [], holders: 1 },
  ])
})

it('a node that continues under another number shares its key with nobody', async () => {
  const { app, add } = await startMesh()
  add(A, key(1), { from: START, to: START + 1000 })
  add(A + 1, key(1), { from: START + 2000, to: START + 3000 })
  const admin = await app.admin()
  expect(await (await admin.send('GET', '/api/nodes/keys')).json()).toStrictEqual([])
})

it('a node that the viewer may not see is no duplicate of one that they see', async () => {
  const { app, add } = await startMesh()
  add(A, key(1))
  add(A + 1, key(1), { hidden: 1 })
  const list = async (client: Client) => (await client.send('GET', '/api/nodes/keys')).json()
  const admin = await app.admin()
  expect(await list(admin)).toHaveLength(2)
  const anna = await app.user('anna', { nodes: { read: true, write: false } })
  expect(await list(anna)).toStrictEqual([])
  const bert = await app.user('bert', { nodes: { read: false, write: false } })
  expect((await bert.send('GET', '/api/nodes/keys')).status).toBe(403)
})

it('a key with which a stranger makes up thousands of nodes gives a short list at each of so many nodes', async () => {
  const { app, add } = await startMesh()
  const MADE_UP = 5200
  app.store.sqlite.exec('begin')
  // The oldest is there all the time, the others were heard once each: they share the key with it alone.
  add(A, key(1), { from: START, to: START + 100_000 })
  for (let n = 1; n <= 30; n += 1) add(A + n, key(1), { from: START + n, to: START + n })
  for (let n = 31; n <= MADE_UP; n += 1) add(A + n, key(1), { from: START + n, to: START + 90_000 })
  app.store.sqlite.exec('commit')
  const admin = await app.admin()
  const listed = keysSchema.parse(await (await admin.send('GET', '/api/nodes/keys')).json())
  expect(listed).toHaveLength(5000)
  expect(listed.slice(0, 2)).toMatchObject([
    { nodeNum: A, sharedWith: Array.from({ length: 20 }, (_, n) => A + 1 + n), holders: MADE_UP + 1 },
    { nodeNum: A + 1, sharedWith: [A] },
  ])
  expect(listed[30]).toMatchObject({ nodeNum: A + 30, sharedWith: [A] })
  const lengths = listed.map(({ sharedWith }) => sharedWith.length)
  expect(Math.min(...lengths)).toBe(1)
  expect(Math.max(...lengths)).toBe(20)
})

it('that nodes were there at the same time is found as by comparing each with each', () => {
  const time = fc.integer({ min: 0, max: 12 })
  const heard = fc.record({ firstHeard: time, lastHeard: fc.option(time) })
  const meets = (older: Heard, newer: Heard) => newer.lastHeard !== null && (older.lastHeard ?? 0) > newer.firstHeard
  fc.assert(
    fc.property(fc.uniqueArray(heard, { selector: ({ firstHeard }) => firstHeard, maxLength: 8 }), (nodes) => {
      const byStart = nodes.toSorted((a, b) => a.firstHeard - b.firstHeard)
      const compared = byStart.filter((one, i) =>
        byStart.some((other, j) => (i < j && meets(one, other)) || (j < i && meets(other, one))),
      )
      const found = findMeeting(nodes)
      expect(byStart.filter((one) => found.has(one))).toStrictEqual(compared)
    }),
  )
})

it('an alert rule compares 5,000 nodes that have one key, and never met, in few steps', () => {
  const MADE_UP = 5000
  let looks = 0
  const nothing = { role: null, latitude: null, longitude: null, precisionBits: null, positionChannel: null }
  const never = { lastHeardByRadio: null, previousPublicKey: null, refusedPublicKey: null, spoofClaim: null }
  const not = { isFavorite: false, isLocal: false, isIgnored: false, keyMismatch: false, spoofSuspected: false }
  const nodes = Array.from({ length: MADE_UP }, (_, n) => ({
    ...nothing,
    ...never,
    ...not,
    id: n,
    nodeNum: A + n,
    name: 'made up',
    publicKey: key(1),
    get firstHeard() {
      looks += 1
      return n
    },
    lastHeard: n,
  }))
  const fields = { kind: 'key', name: 'Keys', nodes: { kind: 'all' } }
  const rule = keyRule.schema.parse(fields)
  const owner = { isAdmin: true, permissions: NO_PERMISSIONS, view: WHOLE_VIEW }
  const watching = { id: 1, ownerId: 1, anchorAt: 0, rule, owner }
  const world = { now: 1, startedAt: null, nodes, links: [], heardBy: new Map(), latest: new Map(), anchors: new Map() }
  const more = { weakKeys: new Set<string>(), backups: { succeededAt: null, failure: null, copies: [] }, retention: [] }
  expect(keyRule.state?.find(watching, { ...world, ...more }, new Map())).toStrictEqual([])
  expect(looks).toBeLessThan(MADE_UP * 40)
})

type Heard = { readonly firstHeard: number; readonly lastHeard: number | null }

it('others get their turns while 20,000 made-up nodes with one key are compared', async () => {
  const { app } = await startMesh()
  app.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 20000)
    insert into nodes (node_num, public_key, first_heard, last_heard) select n, '${key(1)}', ${START} + n, ${START} + 30000 from i`)
  const admin = await app.admin()
  const turns = await turnsDuring(async () => {
    const listed = keysSchema.parse(await (await admin.send('GET', '/api/nodes/keys')).json())
    expect(listed).toHaveLength(5000)
    expect(listed[0]).toMatchObject({ nodeNum: 1, holders: 20_000 })
  })
  // After 2,000 rows each, and after 500 comparisons each.
  expect(turns).toBeGreaterThanOrEqual(20_000 / 2000 + 20_000 / 500)
})
