import { sql } from 'drizzle-orm'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { nodes } from '../../../../src/db/schema.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'

let app: TestApp
let admin: Client

beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
  await hear(40)
})
afterEach(() => app.close())

const hear = async (count: number) =>
  app.store.db
    .insert(nodes)
    .values(
      Array.from({ length: count }, (_, n) => ({ nodeNum: n + 1, firstHeard: START, lastHeard: START - n * 1000 })),
    )
    .run()
const get = async (query = '', headers: Record<string, string> = {}) =>
  admin.send('GET', `/api/nodes${query}`, undefined, headers)
const listSchema = z.array(z.object({ nodeNum: z.int(), notes: z.string() }))
const read = async (answer: Response) => listSchema.parse(await answer.json())
const numbersIn = async (answer: Response) => (await read(answer)).map(({ nodeNum }) => nodeNum)
const heardAgain = async (nodeNum: number, at: number) =>
  app.store.db
    .update(nodes)
    .set({ lastHeard: at })
    .where(sql`node_num = ${nodeNum}`)
    .run()

describe('the list of nodes', () => {
  it('matches the database after each change', async () => {
    const inDatabase = () =>
      app.store.db.all<{ n: number }>(sql`select node_num as n from nodes order by last_heard desc, node_num`)
    const changes = [
      () => heardAgain(40, START + 5),
      () => app.store.db.run(sql`delete from nodes where node_num = 7`),
      // As many as before, but different ones.
      async () => {
        await app.store.db.run(sql`delete from nodes where node_num = 8`)
        await app.store.db.insert(nodes).values({ nodeNum: 99, firstHeard: START }).run()
      },
      () => app.store.db.run(sql`update nodes set node_num = 77 where node_num = 9`),
      async () => {
        await app.store.db.run(sql`delete from nodes where node_num = 77`)
        await app.store.db.insert(nodes).values({ nodeNum: 77, firstHeard: START, notes: 'again' }).run()
      },
    ]
    for (const change of changes) {
      await get()
      await change()
      expect(await numbersIn(await get())).toEqual((await inDatabase()).map(({ n }) => n))
    }
    expect((await read(await get())).find(({ nodeNum }) => nodeNum === 77)?.notes).toBe('again')
  })

  it('comes in pages that skip nobody, not even nodes heard meanwhile', async () => {
    const first = await get('?limit=15')
    expect([first.headers.get('x-total-count'), (await get()).headers.get('x-next-cursor')]).toEqual(['40', null])
    const found = new Set(await numbersIn(first))
    let cursor = first.headers.get('x-next-cursor')
    for (let page = 0; cursor !== null; page++) {
      // The last of all becomes the first before its page is read.
      await heardAgain(40 - page, START + page + 1)
      const next = await get(`?limit=15&cursor=${cursor}`)
      const list = await numbersIn(next)
      expect(list.length).toBeLessThanOrEqual(15)
      for (const nodeNum of list) found.add(nodeNum)
      cursor = next.headers.get('x-next-cursor')
    }
    expect(found.size).toBe(40)
  })

  it('has a cursor that says nothing about changes', async () => {
    const cursor = (await get('?limit=15')).headers.get('x-next-cursor') ?? ''
    expect(cursor).toMatch(/^[\w-]{40,}$/)
    // Sealed, not only encoded: whoever may not see some nodes could otherwise count what is heard of them.
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/\d+\.\d+\.\d+\.\d+/)
  })

  it.each(['x', '1.2', '1.2.3.4', 'TAKEN&q=x', 'TAKEN&signed=true', 'FORGED'])(
    'refuses the cursor %s',
    async (text) => {
      const taken = (await get('?limit=15')).headers.get('x-next-cursor') ?? ''
      const forged = `${taken.slice(0, -1)}${taken.endsWith('A') ? 'B' : 'A'}`
      const answer = await get(`?cursor=${text.replace('TAKEN', taken).replace('FORGED', forged)}`)
      expect([answer.status, await answer.json()]).toMatchObject([400, { issues: [{ path: 'cursor' }] }])
    },
  )
})

describe('the compressed list', () => {
  const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer())

  it('is the same in every encoding, each with its own tag', async () => {
    const plain = await get()
    const text = await plain.text()
    const zipped = await get('', { 'accept-encoding': 'br, gzip;q=0.5' })
    const packed = await get('', { 'accept-encoding': 'gzip, deflate, br, zstd' })
    expect([plain, zipped, packed].map(({ headers }) => headers.get('content-encoding'))).toEqual([
      null,
      'gzip',
      'zstd',
    ])
    expect(gunzipSync(await bytesOf(zipped)).toString()).toBe(text)
    expect(zstdDecompressSync(await bytesOf(packed)).toString()).toBe(text)
    const tags = [plain, zipped, packed].map(({ headers }) => headers.get('etag') ?? '')
    expect(new Set(tags).size).toBe(3)
    expect(packed.headers.get('vary')).toContain('Accept-Encoding')
    const [, gzipTag = ''] = tags
    expect((await get('', { 'accept-encoding': 'gzip', 'if-none-match': gzipTag })).status).toBe(304)
    // That version is known in another encoding only.
    expect((await get('', { 'if-none-match': gzipTag })).status).toBe(200)
  })

  it.each([
    ['identity', {}],
    ['gzip;q=0', {}],
    ['gzip, zstd', { 'sec-fetch-site': 'cross-site' }],
    ['gzip, zstd', { 'sec-fetch-site': 'none' }],
  ])('is plain for Accept-Encoding %s with %o', async (accepted, headers) => {
    const answer = await get('', { 'accept-encoding': accepted, ...headers })
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, null])
  })

  it('is compressed once per version', async () => {
    const sizes: number[] = []
    const { compressor } = app.ports
    if (compressor === null) throw new Error('nothing compresses here')
    const counting = await createTestApp({
      store: app.store,
      ports: {
        compressor: {
          ...compressor,
          compress: (encoding, bytes) => {
            sizes.push(bytes.length)
            return compressor.compress(encoding, bytes)
          },
        },
      },
    })
    const reader = await counting.admin()
    const ask = () => reader.send('GET', '/api/nodes', undefined, { 'accept-encoding': 'gzip' })
    await Promise.all([ask(), ask(), ask()])
    await ask()
    expect(sizes).toHaveLength(1)
    await heardAgain(3, START + 9)
    await ask()
    expect(sizes).toHaveLength(2)
  })
})
