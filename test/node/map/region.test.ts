import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  openAsBlob,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { PMTiles, type RangeResponse } from 'pmtiles'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { recordAs } from '../../../src/app/mesh/map/region/region.ts'
import { systemClock } from '../../../src/node/clock.ts'
import { type NodeRegions, openRegions } from '../../../src/node/map/region/regions.ts'
import { PROBLEMS } from '../../../src/node/map/region/problems.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'
import { type Damage, type Planet, writePlanet } from '../../support/maps/planet.ts'
import { end, type PlanetServer, startPlanetServer } from '../../support/maps/planet-server.ts'
import { endProcess } from '../../support/servers/end-process.ts'

const MAX_ZOOM = 6
/** Around Ireland: some sea, much land, and at each zoom level a few tiles. */
const AREA = { bounds: [-11, 51, -4, 56], maxZoom: MAX_ZOOM }
const SMALL = { bounds: [10, 40, 12, 42], maxZoom: 5 }
const isLand = (z: number, x: number, y: number) => z < 3 || (x + 2 * y) % 5 !== 0

/** Forty kilobytes that unpack to forty megabytes. */
const BOMB = gzipSync(Buffer.alloc(40 * 1024 * 1024))

let planet: Planet
let other: Planet
let server: PlanetServer
let dir: string
let app: TestApp
let admin: Client
let regions: NodeRegions
/** Free bytes of the disk. */
let free: number[]
/** Host names that were looked up. */
let resolved: string[]

beforeAll(() => {
  planet = writePlanet(MAX_ZOOM, 'first', isLand)
  other = writePlanet(MAX_ZOOM, 'second', isLand)
})
beforeEach(async () => {
  server = await startPlanetServer(planet.bytes)
  dir = mkdtempSync(join(tmpdir(), 'mesh-region-'))
  free = [1e12]
  resolved = []
  await open()
})
afterEach(async () => {
  await regions.close()
  app.close()
  await server.close()
  rmSync(dir, { recursive: true })
})

async function open(env: Record<string, string> = {}): Promise<void> {
  const all = { DATA_DIR: dir, MAP_ARCHIVE_URL: `${server.url}/planet.pmtiles`, ...env }
  let seconds = 0
  const ports = { mapRegions: null as NodeRegions | null }
  app = await createTestApp({ env: all, ports })
  regions = openRegions({
    config: app.ports.config,
    log: app.ports.log,
    // Pauses are over at once, and progress is noted after each request.
    clock: { now: () => START, monotonic: () => (seconds += 2000), after: (_ms, run) => systemClock.after(0, run) },
    record: recordAs({ store: app.store, now: () => START, ip: null, requestId: null, viewer: null }),
    source: {
      stallMs: 300,
      resolve: async (hostname) => {
        resolved.push(hostname)
        return [{ address: '127.0.0.1', family: 4 }]
      },
    },
    free: () => (free.length > 1 ? free.shift() : free[0]) ?? 0,
  })
  Object.assign(app.ports, { mapRegions: regions })
  admin = await app.admin()
}

const path = (name: string) => join(dir, 'maps', name)
const state = async () => Object(await (await admin.send('GET', '/api/map/region')).json())
const start = (area: object = AREA) => admin.send('POST', '/api/map/region', area)
async function refusalOf(answer: Response | Promise<Response>): Promise<string> {
  const { status } = await answer
  const { code, detail } = Object(await (await answer).json())
  return `${status} ${code}: ${detail}`
}
async function fetchAll(area: object = AREA): Promise<void> {
  expect((await start(area)).status).toBe(202)
  await regions.idle()
}

/** The finished file, read by an independent reader. */
async function readMap(file = path('region.pmtiles')): Promise<PMTiles> {
  const blob = await openAsBlob(file)
  return new PMTiles({
    getKey: () => file,
    getBytes: async (offset: number, length: number): Promise<RangeResponse> => ({
      data: await blob.slice(offset, offset + length).arrayBuffer(),
    }),
  })
}

/** The tiles that an area touches at a zoom level, by the usual formulas of web maps. */
function tilesOf({ bounds: [west = 0, south = 0, east = 0, north = 0] }: { bounds: number[] }, z: number) {
  const column = (longitude: number) => Math.floor(((longitude + 180) / 360) * 2 ** z)
  const row = (latitude: number) => {
    const radians = (latitude * Math.PI) / 180
    return Math.floor(((1 - Math.log(Math.tan(radians) + 1 / Math.cos(radians)) / Math.PI) / 2) * 2 ** z)
  }
  const found: [number, number, number][] = []
  for (let x = column(west); x <= column(east); x++)
    for (let y = row(north); y <= row(south); y++) found.push([z, x, y])
  return found
}

async function expectTiles(of: Planet, area: { bounds: number[]; maxZoom: number } = AREA): Promise<void> {
  const map = await readMap()
  for (let z = 0; z <= area.maxZoom; z++) {
    const wanted = new Set(tilesOf(area, z).map(String))
    for (let x = 0; x < 2 ** z; x++) {
      for (let y = 0; y < 2 ** z; y++) {
        // At the lower levels all tiles of the world are tried, then those around the region.
        if (z > 5 && ![-1, 0, 1].some((d) => wanted.has(String([z, x + d, y])))) continue
        const found = await map.getZxy(z, x, y)
        const tile = `${z}/${x}/${y}`
        expect([tile, found !== undefined]).toEqual([tile, wanted.has(String([z, x, y]))])
        if (found !== undefined) {
          const whole = Buffer.from(
            await new Response(
              new Blob([of.tile(z, x, y)]).stream().pipeThrough(new DecompressionStream('gzip')),
            ).arrayBuffer(),
          )
          expect([tile, Buffer.from(found.data).equals(whole)]).toEqual([tile, true])
        }
      }
    }
  }
}

const steps = () =>
  auditRows(app)
    .filter(({ action }) => action === 'map_region_updated')
    .map(({ username, details }) => `${username} ${Object(details).step}`)

test('a region is measured, downloaded and served, and needs no network afterwards', async () => {
  expect(await state()).toMatchObject({ state: 'none', bounds: null, bytes: 0, t: null, wanted: null })
  expect(await refusalOf(admin.send('GET', '/api/map/region.pmtiles'))).toContain('404 not_found')
  const measured = Object(await (await admin.send('POST', '/api/map/region/preview', AREA)).json())
  expect(existsSync(path('region.pmtiles.part'))).toBe(false)
  expect(server.asked.every(({ first }) => first < planet.tilesAt)).toBe(true)
  server.asked.length = 0
  await fetchAll()
  const file = readFileSync(path('region.pmtiles'))
  const wanted = Array.from({ length: MAX_ZOOM + 1 }, (_, z) => tilesOf(AREA, z)).flat()
  expect(measured).toEqual({ bytes: file.length, tiles: wanted.length, free: 1e12 - 128 * 1024 * 1024 })
  await expectTiles(planet)
  const map = await readMap()
  expect(await map.getHeader()).toMatchObject({
    specVersion: 3,
    clustered: true,
    minZoom: 0,
    maxZoom: MAX_ZOOM,
    minLon: -11,
    minLat: 51,
    maxLon: -4,
    maxLat: 56,
    numAddressedTiles: wanted.length,
    numTileContents: new Set(wanted.map(([z, x, y]) => planet.tile(z, x, y).toString('latin1'))).size,
  })
  expect(await map.getMetadata()).toMatchObject({ attribution: expect.stringContaining('Somebody') })
  // Only a part of the planet was read, every byte of tiles once, and each request was for the same file.
  const tiles = server.asked.filter(({ first }) => first >= planet.tilesAt)
  const read = tiles.reduce((sum, { first, last }) => sum + last + 1 - first, 0)
  expect(read).toBeLessThan(planet.bytes.length / 8)
  expect(tiles.length).toBeGreaterThan(3)
  expect(server.asked.slice(1).every(({ ifRange }) => ifRange !== null)).toBe(true)

  await server.close()
  server = await startPlanetServer(planet.bytes)
  expect(await state()).toMatchObject({
    state: 'ready',
    source: expect.stringMatching(/^127\.0\.0\.1:/),
    bounds: AREA.bounds,
    maxZoom: MAX_ZOOM,
    bytes: file.length,
    attribution: 'Somebody © Everybody',
    wanted: null,
    problem: null,
  })
  const part = await admin.send('GET', '/api/map/region.pmtiles', undefined, { range: 'bytes=0-126' })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 0-126/${file.length}`])
  expect(Buffer.from(await part.arrayBuffer()).equals(file.subarray(0, 127))).toBe(true)
  const etag = part.headers.get('etag') ?? ''
  const stale = await admin.send('GET', '/api/map/region.pmtiles', undefined, { range: 'bytes=0-9', 'if-range': '"x"' })
  expect([stale.status, Buffer.from(await stale.arrayBuffer()).equals(file)]).toEqual([200, true])
  expect((await admin.send('GET', '/api/map/region.pmtiles', undefined, { 'if-none-match': etag })).status).toBe(304)
  expect(steps()).toEqual(['admin started', 'system finished'])
  expect(readdirSync(join(dir, 'maps')).filter((name) => !name.startsWith('.'))).toEqual(['region.pmtiles'])

  expect((await admin.send('DELETE', '/api/map/region?what=map')).status).toBe(204)
  expect(await state()).toMatchObject({ state: 'none', bounds: null })
  expect(await refusalOf(admin.send('DELETE', '/api/map/region?what=map'))).toContain('404 not_found')
  expect(steps().at(-1)).toBe('admin removed')
})

/** Answers honestly until the tiles begin, or until some of them are sent, and then waits. */
function holdTiles(after = 0): { readonly held: Promise<void>; readonly release: () => void } {
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>()
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  let sent = 0
  server.lie = (_answer, { first }, honest) => {
    if (first < planet.tilesAt || sent++ < after) return honest()
    isHeld()
    void gate.then(honest)
  }
  return {
    held,
    release: () => {
      server.lie = null
      release()
    },
  }
}

test('the map in use stays until the new one is complete; a second download is refused, and one can be cancelled', async () => {
  await fetchAll(SMALL)
  const before = readFileSync(path('region.pmtiles'))
  const { held, release } = holdTiles(2)
  expect((await start()).status).toBe(202)
  await held
  const now = await state()
  expect(now).toMatchObject({ state: 'loading', bounds: SMALL.bounds, maxZoom: 5, wanted: AREA, problem: null })
  expect(now.fetchedBytes > 0 && now.fetchedBytes < now.totalBytes).toBe(true)
  const served = await admin.send('GET', '/api/map/region.pmtiles')
  expect(Buffer.from(await served.arrayBuffer()).equals(before)).toBe(true)
  expect(await refusalOf(start(SMALL))).toContain('409 map_in_progress')
  // Another process, such as the command line.
  const elsewhere = openRegions({
    config: app.ports.config,
    log: app.ports.log,
    clock: systemClock,
    record: async () => {},
  })
  await expect(elsewhere.start({ bounds: [1, 2, 3, 4], maxZoom: 1 }, async () => {})).rejects.toMatchObject({
    code: 'map_in_progress',
  })
  await expect(elsewhere.cancel(async () => {})).rejects.toMatchObject({ code: 'map_in_progress' })
  expect(await elsewhere.state()).toMatchObject({ state: 'loading', wanted: AREA })
  expect((await admin.send('DELETE', '/api/map/region?what=download')).status).toBe(204)
  release()
  expect(await state()).toMatchObject({ state: 'ready', bounds: SMALL.bounds, wanted: null })
  expect(readdirSync(join(dir, 'maps')).filter((name) => !name.startsWith('.'))).toEqual(['region.pmtiles'])
  expect(await refusalOf(admin.send('DELETE', '/api/map/region?what=download'))).toContain('404 not_found')
  await fetchAll()
  expect(await state()).toMatchObject({ state: 'ready', bounds: AREA.bounds })
  const [first, second, third] = ['admin started', 'system finished', 'admin cancelled']
  expect(steps()).toEqual([first, second, first, third, first, second])
})

describe('a planet that', () => {
  type Lies = Parameters<typeof holdTiles> extends unknown ? NonNullable<PlanetServer['lie']> : never
  const always: Readonly<Record<string, readonly [Lies, keyof typeof PROBLEMS]>> = {
    'ignores ranges': [(answer) => end(answer, 200, {}, Buffer.alloc(9)), 'noRanges'],
    'is packed': [
      (answer, { first, last }) =>
        end(answer, 206, { 'content-encoding': 'gzip', 'content-range': `bytes ${first}-${last}/99999999` }),
      'noRanges',
    ],
    redirects: [(answer) => end(answer, 302, { location: 'http://127.0.0.1:9/' }), 'redirected'],
    'is gone': [(answer) => end(answer, 404), 'gone'],
    'fails all the time': [(answer) => end(answer, 503), 'silent'],
    'sends another range': [
      (answer, { last }) =>
        end(answer, 206, { 'content-range': `bytes 1-${last + 1}/99999999` }, Buffer.alloc(last + 1)),
      'wrongRange',
    ],
    'sends no range': [(answer, { last }) => end(answer, 206, {}, Buffer.alloc(last + 1)), 'wrongRange'],
    'sends fewer bytes': [
      (answer, { last }) => end(answer, 206, { 'content-range': `bytes 0-${last}/99999999` }, Buffer.alloc(last)),
      'wrongRange',
    ],
    'sends more bytes': [
      (answer, { last }) => end(answer, 206, { 'content-range': `bytes 0-${last}/99999999` }, Buffer.alloc(last + 9)),
      'wrongRange',
    ],
    'is no map': [
      (answer, { last }) => end(answer, 206, { 'content-range': `bytes 0-${last}/99999999` }, Buffer.alloc(last + 1)),
      'damaged',
    ],
    'closes the connection': [(answer) => answer.destroy(), 'silent'],
    'never answers': [() => {}, 'silent'],
  }
  test.each(Object.entries(always))('%s is refused before anything is fetched', async (_name, [lie, problem]) => {
    server.lie = lie
    expect(await refusalOf(start())).toBe(`409 map_refused: ${PROBLEMS[problem].text}`)
    expect(await refusalOf(admin.send('POST', '/api/map/region/preview', AREA))).toContain(PROBLEMS[problem].text)
    expect(await state()).toMatchObject({ state: 'none', wanted: null, problem: null })
    expect(steps()).toEqual([])
  })

  const amongTiles: Readonly<Record<string, readonly [Lies, keyof typeof PROBLEMS]>> = {
    'cuts its answers': [
      (answer, { first, last }) => {
        answer.writeHead(206, {
          'content-range': `bytes ${first}-${last}/${planet.bytes.length}`,
          'content-length': last + 1 - first,
          etag: tag(),
        })
        answer.write(Buffer.alloc(9), () => answer.destroy())
      },
      'silent',
    ],
    'stalls in the middle': [
      (answer, { first, last }) => {
        answer.writeHead(206, {
          'content-range': `bytes ${first}-${last}/${planet.bytes.length}`,
          'content-length': last + 1 - first,
          etag: tag(),
        })
        answer.write(Buffer.alloc(9))
      },
      'silent',
    ],
    'sends the beginning again': [
      (answer, { first, last }) =>
        end(
          answer,
          206,
          { 'content-range': `bytes 0-${last - first}/${planet.bytes.length}`, etag: tag() },
          planet.bytes.subarray(0, last + 1 - first),
        ),
      'wrongRange',
    ],
    'sends zeros': [
      (answer, { first, last }) =>
        end(
          answer,
          206,
          { 'content-range': `bytes ${first}-${last}/${planet.bytes.length}`, etag: tag() },
          Buffer.alloc(last + 1 - first),
        ),
      'damagedTile',
    ],
    'no longer serves ranges': [(answer) => end(answer, 200, { etag: tag() }, Buffer.alloc(9)), 'noRanges'],
    'asks for a password now': [(answer) => end(answer, 403), 'gone'],
  }
  const tag = () => JSON.stringify(JSON.parse(etagNow))
  let etagNow = ''
  test.each(Object.entries(amongTiles))(
    '%s among the tiles ends the download with one sentence',
    async (_name, [lie, problem]) => {
      await fetchAll(SMALL)
      etagNow = etagOfAnswer(await fetch(server.url, { headers: { range: 'bytes=0-0' } }))
      let sent = 0
      server.lie = (answer, range, honest) =>
        range.first < planet.tilesAt || sent++ < 1 ? honest() : lie(answer, range, honest)
      await fetchAll()
      expect(await state()).toMatchObject({
        state: 'failed',
        problem: PROBLEMS[problem].text,
        bounds: SMALL.bounds,
        wanted: AREA,
      })
      expect(steps().slice(2)).toEqual(['admin started', 'system failed'])
      // What the network cut off can be continued; anything else does not stay on the disk.
      expect(existsSync(path('region.pmtiles.part'))).toBe(problem === 'silent')
      server.lie = null
      server.asked.length = 0
      await fetchAll()
      expect(await state()).toMatchObject({ state: 'ready', bounds: AREA.bounds, problem: null })
      await expectTiles(planet)
    },
  )

  const damages: Readonly<Record<string, readonly [Damage, keyof typeof PROBLEMS]>> = {
    'is not clustered': [{ header: (header) => header.writeUInt8(0, 96) }, 'damaged'],
    'has brotli tiles': [{ header: (header) => header.writeUInt8(3, 98) }, 'damaged'],
    'has tiles outside of the file': [{ header: (header) => header.writeBigUInt64LE(2n ** 62n, 64) }, 'damaged'],
    'has its root elsewhere': [{ header: (header) => header.writeBigUInt64LE(2n ** 20n, 8) }, 'damaged'],
    'has entries out of order': [
      { directory: (entries) => entries.splice(0, 2, ...entries.slice(0, 2).toReversed()) },
      'damaged',
    ],
    'has a tile twice': [
      { directory: (entries, index) => index > 0 && entries.forEach((entry) => (entry.run += 1)) },
      'damaged',
    ],
    'has a tile behind its end': [
      { directory: (entries, index) => index > 0 && entries.forEach((entry) => (entry.offset += 1e12)) },
      'damaged',
    ],
    'has an empty tile': [
      { directory: (entries, index) => index > 0 && entries.forEach((entry) => (entry.length = 0)) },
      'damaged',
    ],
    'has a directory behind its end': [
      { directory: (entries, index) => index === 0 && entries.forEach((entry) => (entry.offset += 1e12)) },
      'damaged',
    ],
    'has a directory in itself': [
      {
        directory: (entries, index) =>
          index > 0 && entries.forEach((entry) => Object.assign(entry, { run: 0, offset: 0, length: 10 })),
      },
      'damaged',
    ],
    'has a directory that is no gzip': [{ leaf: (packed) => Buffer.alloc(packed.length, 1) }, 'damaged'],
    'has a directory that unpacks to gigabytes': [{ leaf: () => BOMB }, 'damaged'],
  }
  test.each(Object.entries(damages))('%s is refused', async (_name, [damage, problem]) => {
    server.bytes = writePlanet(4, 'damaged', isLand, damage).bytes
    expect(await refusalOf(start({ bounds: [-170, -80, 170, 80], maxZoom: 4 }))).toBe(
      `409 map_refused: ${PROBLEMS[problem].text}`,
    )
    expect(existsSync(path('region.pmtiles.part'))).toBe(false)
  })

  test.each([
    ['no gzip', (packed: Buffer) => packed.map((byte, index) => (index === packed.length - 5 ? byte ^ 1 : byte))],
    ['a bomb', () => BOMB],
  ])('has a tile that is %s ends the download', async (_name, tile) => {
    server.bytes = writePlanet(4, 'damaged', isLand, {
      tile: (packed, z, x, y) => (z === 4 && x === 9 && y === 4 ? Buffer.from(tile(packed)) : packed),
    }).bytes
    await fetchAll({ bounds: [-170, -80, 170, 80], maxZoom: 4 })
    expect(await state()).toMatchObject({ state: 'failed', problem: PROBLEMS.damagedTile.text, bounds: null })
    expect(readdirSync(join(dir, 'maps')).filter((name) => !name.startsWith('.'))).toEqual(['region.json'])
  })
})

function etagOfAnswer(answer: Response): string {
  void answer.body?.cancel()
  return answer.headers.get('etag') ?? ''
}

test('a planet that changes during the download is fetched anew; one that always changes is given up', async () => {
  let sent = 0
  server.lie = (_answer, { first }, honest) => {
    if (first >= planet.tilesAt && sent++ === 2) server.bytes = other.bytes
    honest()
  }
  await fetchAll()
  expect(await state()).toMatchObject({ state: 'ready' })
  await expectTiles(other)

  server.lie = (_answer, { first }, honest) => {
    if (first >= planet.tilesAt) server.bytes = server.bytes === other.bytes ? planet.bytes : other.bytes
    honest()
  }
  await fetchAll({ ...AREA, maxZoom: 5 })
  expect(await state()).toMatchObject({ state: 'failed', problem: PROBLEMS.unstable.text, bounds: AREA.bounds })
})

describe('the disk', () => {
  test('that is too small is told before anything is fetched, and the preview tells what may be used', async () => {
    free = [129 * 1024 * 1024]
    const measured = Object(await (await admin.send('POST', '/api/map/region/preview', SMALL)).json())
    expect(measured.free).toBe(1024 * 1024)
    free = [128 * 1024 * 1024 + measured.bytes - 1]
    expect(await refusalOf(start(SMALL))).toBe(`409 map_refused: ${PROBLEMS.noRoom.text}`)
    free = [128 * 1024 * 1024 + measured.bytes]
    await fetchAll(SMALL)
    expect(await state()).toMatchObject({ state: 'ready' })
  })

  test('that others fill meanwhile ends the download, and gets back what it took', async () => {
    free = [1e12, 1e12, 1e12, 128 * 1024 * 1024]
    await fetchAll()
    expect(await state()).toMatchObject({ state: 'failed', problem: PROBLEMS.noRoom.text })
    expect(existsSync(path('region.pmtiles.part'))).toBe(false)
    expect((await admin.send('DELETE', '/api/map/region?what=download')).status).toBe(204)
    expect(await state()).toMatchObject({ state: 'none', problem: null })
  })

  test('a map larger than the limit is refused', async () => {
    app.close()
    server.bytes = writePlanet(2, 'large', isLand, {
      tile: (_packed, z) =>
        gzipSync(Buffer.from(Array.from({ length: z === 2 ? 90_000 : 9 }, (_, i) => (i * i * 7919) >>> 7)), {
          level: 0,
        }),
    }).bytes
    await open({ MAP_ARCHIVE_MAX_MB: '1' })
    expect(
      await refusalOf(admin.send('POST', '/api/map/region/preview', { bounds: [-180, -85, 180, 85], maxZoom: 2 })),
    ).toBe(`409 map_refused: ${PROBLEMS.tooLarge.text}`)
    await fetchAll({ bounds: [-180, -85, 180, 85], maxZoom: 1 })
    expect(await state()).toMatchObject({ state: 'ready', maxZoom: 1 })
  })
})

describe('an interrupted download', () => {
  /** The ranges of tiles that were asked for. */
  const tileRanges = () => server.asked.filter(({ first }) => first >= planet.tilesAt).map(({ first }) => first)

  test('of a process that was killed continues where it was', async () => {
    const { held, release } = holdTiles(3)
    const program = fileURLToPath(new URL('../../support/maps/fetch-region.ts', import.meta.url))
    const child = spawn(process.execPath, [program, dir, `${server.url}/planet.pmtiles`, JSON.stringify(AREA)], {
      stdio: 'inherit',
    })
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the process has ended')))
    await Promise.race([held, ended])
    ended.catch(() => {})
    await endProcess(child, 'SIGKILL')
    release()
    const before = tileRanges().slice(0, 3)
    expect(await state()).toMatchObject({ state: 'loading', wanted: AREA })
    server.asked.length = 0
    await regions.resume()
    await regions.idle()
    expect(await state()).toMatchObject({ state: 'ready', bounds: AREA.bounds })
    expect(tileRanges().filter((first) => before.includes(first))).toEqual([])
    await expectTiles(planet)
    expect(steps()).toEqual(['system finished'])
  })

  test('continues after the service stopped, anew if the planet has changed', async () => {
    const { held, release } = holdTiles(2)
    await start()
    await held
    await regions.close()
    release()
    server.bytes = other.bytes
    await regions.resume()
    await regions.idle()
    expect(await state()).toMatchObject({ state: 'ready' })
    await expectTiles(other)
  })

  test('that was complete but for its note is not fetched again', async () => {
    const { held, release } = holdTiles(2)
    await start()
    await held
    copyFileSync(path('region.json'), path('kept'))
    release()
    await regions.idle()
    copyFileSync(path('kept'), path('region.json'))
    server.asked.length = 0
    await regions.resume()
    await regions.idle()
    expect(tileRanges()).toEqual([])
    expect(await state()).toMatchObject({ state: 'ready' })
  })

  test('whose note is damaged counts as none', async () => {
    await fetchAll(SMALL)
    writeFileSync(path('region.json'), '{"state":"loading"')
    await regions.resume()
    expect(await state()).toMatchObject({ state: 'ready', wanted: null })
  })
})

test('{date} is the latest day that is there; its host is looked up once, and asked for that one file', async () => {
  app.close()
  // START is the 15th.
  server.paths = ['/20260113.pmtiles', '/20260112.pmtiles']
  const host = `planet.lan:${new URL(server.url).port}`
  await open({ MAP_ARCHIVE_URL: `http://${host}/{date}.pmtiles` })
  await fetchAll()
  expect(Object(auditRows(app).at(-2)?.details)).toMatchObject({ step: 'started', source: host })
  // Two days are missing.
  expect(resolved).toEqual(['planet.lan', 'planet.lan', 'planet.lan'])
  server.paths = ['/20260101.pmtiles']
  expect(await refusalOf(start(SMALL))).toBe(`409 map_refused: ${PROBLEMS.gone.text}`)
})

test('an interrupted download from an address that is no longer configured begins anew at the configured one', async () => {
  const { held, release } = holdTiles(2)
  await start()
  await held
  await regions.close()
  release()
  app.close()
  server.asked.length = 0
  await open({ MAP_ARCHIVE_URL: `${server.url}/elsewhere.pmtiles` })
  await regions.resume()
  await regions.idle()
  expect(await state()).toMatchObject({ state: 'ready', bounds: AREA.bounds })
  expect(new Set(server.asked.map(({ path: asked }) => asked))).toEqual(new Set(['/elsewhere.pmtiles']))
})

test('a region without tiles is refused', async () => {
  server.bytes = writePlanet(1, 'small', isLand, {
    directory: (entries, index) =>
      index > 0 && entries.splice(0, entries.length, { id: 1, offset: 0, length: 9, run: 1 }),
    header: (header) => header.writeUInt8(1, 101),
  }).bytes
  expect(await refusalOf(start({ bounds: [100, -60, 120, -50], maxZoom: 1 }))).toContain(PROBLEMS.empty.text)
})
