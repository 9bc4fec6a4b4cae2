import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pauseAfter } from '../../../app/base/outgoing/pauses.ts'
import type { Log } from '../../../app/base/log.ts'
import type { Config } from '../../../app/config/config.ts'
import { AppError } from '../../../app/http/errors.ts'
import type { Area } from '../../../app/mesh/map/region/area.ts'
import type { MapRegions, RecordRegion, RegionState } from '../../../app/mesh/map/region/port.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { type Lock, lockExclusively } from '../../backup/folder/lock.ts'
import { type Clock, createTimer, type systemClock } from '../../clock.ts'
import { hasCode } from '../../disk/error-code.ts'
import { freeBytes } from '../../disk/reserve.ts'
import { NotPmtiles, openFile } from '../archive.ts'
import { createInUse } from './in-use.ts'
import { type Plan, planRegion } from './plan.ts'
import {
  isFrom,
  openPlanet,
  type Planet,
  PlanetChanged,
  type PlanetNeeds,
  reopenPlanet,
  SourceSilent,
} from './planet.ts'
import { PROBLEMS, RegionFailed } from './problems.ts'
import { requestedBytes } from './requests.ts'
import { readSaved, removeSaved, type Saved, writeSaved } from './saved.ts'
import { writeRegion } from './write.ts'

/** What a map never takes: the database needs it. */
const MARGIN_BYTES = 128 * 1024 * 1024
/** Failures in a row after which a download ends. It can be continued. */
const MAX_FAILURES = 5
/** New planets during one download. */
const MAX_CHANGES = 3
/** Until the directories of the planet are read for somebody who waits. */
const MEASURE_MS = 120_000
const MEGABYTE = 1_000_000
/** How often it is looked for a download that nobody continues. */
const LOOK_MS = MINUTE_MS

type Options = {
  readonly config: Pick<Config, 'DATA_DIR' | 'MAP_ARCHIVE_URL' | 'MAP_ARCHIVE_MAX_MB'>
  readonly log: Log
  readonly clock: Pick<typeof systemClock, 'now' | 'monotonic' | 'after'>
  /** Writes to the audit log what the service itself does. */
  readonly record: RecordRegion
  readonly source?: Pick<PlanetNeeds, 'stallMs' | 'resolve'>
  /** Free bytes of a directory's disk. */
  readonly free?: (directory: string) => number
}

export type NodeRegions = MapRegions & {
  /** Continues a download that an earlier process began. Never throws. */
  resume(): Promise<void>
  /** Waits for the download of this process. */
  idle(): Promise<void>
  /** Interrupts it, so that another process or a later one can continue. */
  close(): Promise<void>
}

type Prepared = { readonly planet: Planet; readonly plan: Plan; readonly totalBytes: number }
type Running = {
  readonly area: Area
  readonly stop: AbortController
  readonly lock: Lock
  fetchedBytes: number
  totalBytes: number
  work: Promise<void>
}

/** Why a download is aborted. */
class Stopped extends Error {
  override name = 'Stopped'
}

/** The map of a region in DATA_DIR/maps. */
export function openRegions(options: Options): NodeRegions {
  const { config, log, clock, record, free = freeBytes } = options
  const directory = join(config.DATA_DIR, 'maps')
  const file = join(directory, 'region.pmtiles')
  const draft = `${file}.part`
  const gone = `${file}.gone`
  const savedFile = join(directory, 'region.json')
  const inUse = createInUse(file)
  let running: Running | null = null
  let measuring: Promise<void> = Promise.resolve()

  const sourceFor = (signal: AbortSignal): PlanetNeeds => ({
    template: config.MAP_ARCHIVE_URL,
    now: clock.now,
    signal,
    ...options.source,
  })
  const usable = () => Math.max(0, free(existsSync(directory) ? directory : config.DATA_DIR) - MARGIN_BYTES)
  const demandRoom = (bytes: number) => {
    if (bytes > usable()) throw new RegionFailed('noRoom')
  }
  const prepare = async (area: Area, saved: Saved | null, signal: AbortSignal): Promise<Prepared> => {
    const needs = sourceFor(signal)
    const planet = await openSame(saved, needs)
    try {
      const plan = await planRegion(planet, area)
      if (plan.bytes > config.MAP_ARCHIVE_MAX_MB * MEGABYTE) throw new RegionFailed('tooLarge')
      return { planet, plan, totalBytes: await requestedBytes(plan.contents) }
    } catch (error) {
      planet.close()
      throw error
    }
  }
  /** Repeats a read while the planet is silent, with pauses. */
  const persistently =
    (signal: AbortSignal) =>
    async <T>(read: () => Promise<T>): Promise<T> => {
      for (let failures = 0; ; failures++) {
        try {
          return await read()
        } catch (error) {
          if (!(error instanceof SourceSilent)) throw error
          if (failures >= MAX_FAILURES) throw new RegionFailed('silent', error)
          log.warn('The planet archive does not answer; the download of the map waits', { error: error.cause ?? error })
          await pause(pauseAfter(failures), signal)
        }
      }
    }
  const pause = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const end = () => reject(new Stopped())
      if (signal.aborted) return end()
      const cancel = clock.after(ms, () => {
        signal.removeEventListener('abort', end)
        resolve()
      })
      signal.addEventListener(
        'abort',
        () => {
          cancel()
          end()
        },
        { once: true },
      )
    })

  const download = async (own: Running, first: Prepared | null): Promise<Plan> => {
    const { signal } = own.stop
    const insist = persistently(signal)
    let next = first
    for (let changes = 0; ; changes++) {
      try {
        const saved = await readSaved(savedFile)
        const { planet, plan, totalBytes } = next ?? (await insist(() => prepare(own.area, saved, signal)))
        own.totalBytes = totalBytes
        const note = (from: Saved['from'], fetchedBytes: number) =>
          writeSaved(savedFile, { state: 'loading', area: own.area, from, fetchedBytes, totalBytes, problem: null })
        const { fingerprint } = plan
        const isSame = saved?.from?.fingerprint === fingerprint
        try {
          await writeRegion({
            planet,
            plan,
            draft,
            file,
            done: isSame ? (saved?.from?.done ?? null) : null,
            signal,
            monotonic: clock.monotonic,
            persistently: insist,
            demandRoom,
            onFetched: ({ fetchedBytes }) => {
              own.fetchedBytes = fetchedBytes
            },
            onWritten: ({ done, fetchedBytes }) => note({ identity: planet.identity, fingerprint, done }, fetchedBytes),
          })
          return plan
        } finally {
          planet.close()
        }
      } catch (error) {
        if (!(error instanceof PlanetChanged)) throw error
        if (changes >= MAX_CHANGES) throw new RegionFailed('unstable', error)
        log.info('The planet archive has changed; the download of the map starts again')
        next = null
      }
    }
  }
  const conclude = async (own: Running, first: Prepared | null): Promise<void> => {
    try {
      const plan = await download(own, first)
      await removeSaved(savedFile)
      log.info('The map of the region is complete', { bytes: plan.bytes, tiles: plan.tiles })
      await record('finished', { ...plan.area, bytes: plan.bytes, tiles: plan.tiles }).catch((error: unknown) => {
        log.error('The new map of the region could not be recorded', { error })
      })
    } catch (error) {
      if (own.stop.signal.aborted) return
      const failed = error instanceof RegionFailed ? error : new RegionFailed('failed', error)
      log.warn('The download of the map failed', { problem: failed.message, error: failed.cause ?? failed })
      await giveUp(own, failed.problem)
    } finally {
      if (running === own) running = null
      own.lock.release()
    }
  }
  const giveUp = async (own: Running, problem: keyof typeof PROBLEMS): Promise<void> => {
    try {
      const saved = await readSaved(savedFile)
      // Only what was cut off by the network is worth continuing. The rest would take the disk for nothing.
      const from = problem === 'silent' ? (saved?.from ?? null) : null
      if (from === null) await rm(draft, { force: true })
      await writeSaved(savedFile, {
        state: 'failed',
        area: own.area,
        from,
        fetchedBytes: own.fetchedBytes,
        totalBytes: own.totalBytes,
        problem,
      })
      await record('failed', { ...own.area, problem: PROBLEMS[problem].text })
    } catch (error) {
      log.error('The failure of the download of the map could not be recorded', { error })
    }
  }
  const begin = async (area: Area, prepareFirst: (own: Running) => Promise<Prepared | null>): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const lock = running === null ? lockExclusively(join(directory, '.lock')) : null
    if (lock === null) throw new AppError('map_in_progress')
    const own: Running = {
      area,
      stop: new AbortController(),
      lock,
      fetchedBytes: 0,
      totalBytes: 0,
      work: Promise.resolve(),
    }
    running = own
    try {
      const preparing = prepareFirst(own)
      own.work = settled(preparing)
      own.work = conclude(own, await preparing)
    } catch (error) {
      running = null
      lock.release()
      throw error
    }
  }
  const savedFor = async (area: Area): Promise<Saved | null> => {
    const saved = await readSaved(savedFile)
    return JSON.stringify(saved?.area) === JSON.stringify(area) ? saved : null
  }

  return {
    async state() {
      const [map, saved] = await Promise.all([inUse(), readSaved(savedFile)])
      return stateOf({ source: hostOf(config.MAP_ARCHIVE_URL), map, saved, running })
    },
    async measure(area) {
      const signal = AbortSignal.timeout(MEASURE_MS)
      // One at a time, because the directories of a large region take memory.
      const measured = measuring.then(() => refusing(() => prepare(area, null, signal)))
      measuring = settled(measured)
      const { planet, plan } = await measured
      planet.close()
      return { bytes: plan.bytes, tiles: plan.tiles, free: usable() }
    },
    start: (area, recordStart) =>
      begin(area, async ({ stop }) => {
        const saved = await savedFor(area)
        const first = await refusing(() => prepare(area, saved, stop.signal))
        try {
          const isKept = saved?.from?.fingerprint === first.plan.fingerprint
          if (!isKept) await rm(draft, { force: true })
          if (!isKept) await refusing(async () => demandRoom(first.plan.bytes))
          const { bytes, tiles } = first.plan
          await recordStart('started', { ...area, bytes, tiles, source: hostOf(first.planet.identity.url) })
          const from = isKept ? saved.from : null
          await writeSaved(savedFile, {
            state: 'loading',
            area,
            from,
            fetchedBytes: isKept ? saved.fetchedBytes : 0,
            totalBytes: first.totalBytes,
            problem: null,
          })
          return first
        } catch (error) {
          first.planet.close()
          throw error
        }
      }),
    async cancel(recordEnd) {
      const own = running
      const saved = await readSaved(savedFile)
      if (own === null && saved === null) throw new AppError('not_found')
      own?.stop.abort(new Stopped())
      await own?.work
      const lock = lockExclusively(join(directory, '.lock'))
      if (lock === null) throw new AppError('map_in_progress', PROBLEMS.elsewhere)
      try {
        // It may have become complete meanwhile.
        if ((await readSaved(savedFile)) === null) throw new AppError('not_found')
        await recordEnd('cancelled', { ...(own?.area ?? saved?.area) })
        await removeSaved(savedFile)
        await rm(draft, { force: true })
      } finally {
        lock.release()
      }
    },
    async remove(recordEnd) {
      const map = await inUse()
      if (map === null && !existsSync(file)) throw new AppError('not_found')
      await rename(file, gone)
      try {
        await recordEnd('removed', map === null ? {} : { bounds: map.bounds, maxZoom: map.maxZoom, bytes: map.bytes })
      } catch (error) {
        await rename(gone, file)
        throw error
      }
      await rm(gone, { force: true })
    },
    async open() {
      try {
        return await openFile(file)
      } catch (error) {
        if (hasCode(error, 'ENOENT')) throw new AppError('not_found')
        if (!(error instanceof NotPmtiles) && !hasCode(error, 'EACCES', 'EPERM', 'EIO')) throw error
        throw new AppError('map_unavailable', undefined, { cause: error })
      }
    },
    async resume() {
      try {
        // Of a process that ended while it deleted.
        await rm(gone, { force: true })
        const saved = await readSaved(savedFile)
        if (saved?.state !== 'loading' || running !== null) return
        await begin(saved.area, async () => null)
        log.info('The download of the map of the region continues')
      } catch (error) {
        // Another process is at it.
        if (error instanceof AppError && error.code === 'map_in_progress') return
        log.error('The download of the map of the region could not be continued', { error })
      }
    },
    idle: async () => running?.work,
    async close() {
      running?.stop.abort(new Stopped())
      await running?.work
    },
  }
}

async function settled(work: Promise<unknown>): Promise<void> {
  await work.catch(() => {})
}

/** The planet that a download began with, if it is still the same. */
async function openSame(saved: Saved | null, needs: PlanetNeeds): Promise<Planet> {
  // Of an address that is no longer configured, nothing is fetched.
  if (saved === null || saved.from === null || !isFrom(needs.template, saved.from.identity)) return openPlanet(needs)
  return reopenPlanet(saved.from.identity, needs).catch((error: unknown) => {
    if (error instanceof PlanetChanged) return openPlanet(needs)
    throw error
  })
}

/** What somebody who waits is told instead. */
async function refusing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof AppError) throw error
    const isKnown = error instanceof RegionFailed || error instanceof SourceSilent || error instanceof PlanetChanged
    const isLate = error instanceof Error && ['AbortError', 'TimeoutError', 'Stopped'].includes(error.name)
    if (!isKnown && !isLate) throw error
    const problem = error instanceof RegionFailed ? error.problem : 'silent'
    throw new AppError('map_refused', PROBLEMS[problem], { cause: error })
  }
}

function hostOf(url: string): string {
  return new URL(url.replace('{date}', '')).host
}

function stateOf({
  source,
  map,
  saved,
  running,
}: {
  readonly source: string
  readonly map: Awaited<ReturnType<ReturnType<typeof createInUse>>>
  readonly saved: Saved | null
  readonly running: Running | null
}): RegionState {
  const { bounds = null, maxZoom = 0, bytes = 0, t = null, attribution = null } = map ?? {}
  const known = running === null ? saved : { state: 'loading' as const, problem: null, ...running }
  return {
    state: known?.state ?? (map === null ? 'none' : 'ready'),
    source,
    bounds,
    maxZoom,
    bytes,
    t,
    attribution,
    wanted: known?.area ?? null,
    fetchedBytes: known?.fetchedBytes ?? 0,
    totalBytes: known?.totalBytes ?? 0,
    problem: known === null || known.problem === null ? null : PROBLEMS[known.problem].text,
  }
}

/** One instance continues what another process left unfinished, at once and whenever one ended since. */
export function keepResuming(regions: NodeRegions, clock: Clock): { readonly stop: () => Promise<void> } {
  const timer = createTimer(clock)
  const look = () => {
    void regions.resume()
    timer.start(LOOK_MS, look)
  }
  look()
  return {
    stop: () => {
      timer.stop()
      return regions.close()
    },
  }
}
