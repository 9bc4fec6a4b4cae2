import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openMapArchive } from '../../../src/node/map/archive.ts'
import { type Client, createTestApp, type TestApp } from '../../support/app.ts'
import { writePmtiles } from '../../support/web/pmtiles.ts'

const directory = mkdtempSync(join(tmpdir(), 'mesh-map-'))
const path = join(directory, 'map.pmtiles')
// Larger than one read.
const bytes = Uint8Array.from({ length: 700_000 }, (_, index) => (index * 7) % 251)
const file = writePmtiles([{ z: 0, x: 0, y: 0, bytes }], 'png', 'Somebody')
let app: TestApp
let admin: Client

beforeAll(async () => {
  writeFileSync(path, file)
  app = await createTestApp({
    env: { MAP_PMTILES: path },
    ports: { mapArchive: await openMapArchive({ MAP_PMTILES: path }) },
  })
  admin = await app.admin()
})
afterAll(() => {
  app.close()
  rmSync(directory, { recursive: true })
})

const get = (headers: Record<string, string> = {}, method = 'GET') =>
  admin.send(method, '/api/map/archive', undefined, headers)

/** The number of open handles of this process on the file. */
const openFiles = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path
    } catch {
      return false
    }
  }).length

test('the page gets the metadata of the file', async () => {
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({
    tiles: {
      kind: 'archive',
      format: 'raster',
      minZoom: 0,
      maxZoom: 0,
      bounds: [-180, -85, 180, 85],
      attribution: null,
    },
  })
})

test('the whole file, a part of it and its end can be requested', async () => {
  const whole = await get()
  expect([whole.status, whole.headers.get('accept-ranges')]).toEqual([200, 'bytes'])
  expect(whole.headers.get('content-length')).toBe(String(file.length))
  expect(Buffer.from(await whole.arrayBuffer()).equals(file)).toBe(true)
  const part = await get({ range: 'bytes=100-400099' })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 100-400099/${file.length}`])
  expect(Buffer.from(await part.arrayBuffer()).equals(file.subarray(100, 400_100))).toBe(true)
  const end = await get({ range: 'bytes=-5' })
  expect(Buffer.from(await end.arrayBuffer()).equals(file.subarray(-5))).toBe(true)
  await expect.poll(openFiles).toBe(0)
})

test('a range beyond the end is refused with the size', async () => {
  const refused = await get({ range: `bytes=${file.length}-` })
  expect([refused.status, refused.headers.get('content-range')]).toEqual([416, `bytes */${file.length}`])
  expect(await refused.json()).toMatchObject({ code: 'range_not_satisfiable' })
  await expect.poll(openFiles).toBe(0)
})

test('HEAD, 304 answers and unfinished downloads leave no file open', async () => {
  const head = await get({}, 'HEAD')
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(file.length), ''])
  const etag = head.headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[\w-]+"$/)
  expect((await get({ 'if-none-match': etag })).status).toBe(304)
  expect((await (await get({ range: 'bytes=0-9', 'if-range': etag })).arrayBuffer()).byteLength).toBe(10)
  const other = await get({ range: 'bytes=0-9', 'if-range': '"another"' })
  expect(other.status).toBe(200)
  await other.body?.cancel()
  await expect.poll(openFiles).toBe(0)
})

test('another file has another ETag; a missing or broken one is reported as such, and can return', async () => {
  const before = (await get({}, 'HEAD')).headers.get('etag')
  writeFileSync(path, writePmtiles([{ z: 1, x: 1, y: 0, bytes: bytes.subarray(0, 50) }], 'mvt', ''))
  expect((await get({}, 'HEAD')).headers.get('etag')).not.toBe(before)
  expect(await (await admin.send('GET', '/api/map')).json()).toMatchObject({
    tiles: { format: 'vector', minZoom: 1, maxZoom: 1 },
  })
  rmSync(path)
  const gone = await admin.send('GET', '/api/map')
  expect([gone.status, await gone.json()]).toEqual([503, expect.objectContaining({ code: 'map_unavailable' })])
  writeFileSync(path, 'not a map')
  expect((await get()).status).toBe(503)
  writeFileSync(path, file)
  expect((await get({}, 'HEAD')).status).toBe(200)
  await expect.poll(openFiles).toBe(0)
})

test('a file that shrinks while it is read aborts the answer', async () => {
  const answer = await get()
  truncateSync(path, 200_000)
  await expect(answer.arrayBuffer()).rejects.toThrow('the map file ends early')
  await expect.poll(openFiles).toBe(0)
  writeFileSync(path, file)
})

test.each([
  ['gone.pmtiles', () => {}, ' (ENOENT)'],
  ['text.pmtiles', (at: string) => writeFileSync(at, 'x'.repeat(200)), ''],
  ['short.pmtiles', (at: string) => writeFileSync(at, 'PMTiles\x03'), ''],
  ['old.pmtiles', (at: string) => writeFileSync(at, Buffer.concat([Buffer.from('PMTiles\x02'), file.subarray(8)])), ''],
  ['fifo', (at: string) => execFileSync('mkfifo', [at]), ''],
  ['', () => {}, ''],
] as const)('a start with %j is refused in one line', async (name, make, code) => {
  const at = join(directory, name)
  make(at)
  await expect(openMapArchive({ MAP_PMTILES: at })).rejects.toThrow(
    `MAP_PMTILES: found ${JSON.stringify(at)}, expected a readable PMTiles 3 file of images or vector tiles${code}`,
  )
})
