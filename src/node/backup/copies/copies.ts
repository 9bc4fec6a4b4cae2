import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditContext } from '../../../app/audit/audit.ts'
import { SendFailure } from '../../../app/base/outgoing/ports.ts'
import type { Ports } from '../../../app/base/context.ts'
import type { Backup } from '../../../app/system/backup/backup.ts'
import { readBackupSchedule } from '../../../app/system/backup/settings.ts'
import {
  copiesAt,
  type CopyRow,
  forgetCopies,
  keepUpload,
  noteBack,
  noteMissing,
  noteProblem,
  noteSending,
  recordFailed,
  recordMade,
  recordPruned,
  RETRIES,
  uploadOf,
} from '../../../app/system/copies/attempts.ts'
import { readCopyKeys } from '../../../app/system/copies/keys.ts'
import { copyFamilies } from '../../../app/system/copies/metrics.ts'
import { readPlaces, type StoredPlace } from '../../../app/system/copies/places.ts'
import type { Copies, CopyProgress } from '../../../app/system/copies/port.ts'
import { readServiceMark } from '../../../app/system/copies/service-mark.ts'
import type { Target } from '../../../app/system/copies/settings.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { type Clock, createTimer } from '../../clock.ts'
import { isDiskFull } from '../../disk/error-code.ts'
import { backupsDirectory, findManifest, listBackups } from '../folder/directory.ts'
import type { Files } from '../folder/files.ts'
import { JobFailed } from '../jobs.ts'
import { expiredBackups } from '../../../app/system/backup/retention.ts'
import type { Encrypted, EncryptionJob } from './encrypt.ts'
import { openOutgoing } from './outgoing.ts'
import { fileNameOf } from './places/listed.ts'
import { placeOpener, type PlaceOptions } from './places/open-place.ts'
import type { Place, Upload } from './places/place.ts'
import { CopyFailure, PROBLEMS } from './places/problems.ts'
import { probePlace } from './probe.ts'

/** How often to look for backups and attempts that are due. */
const LOOK_MS = 15_000
/** For how long a copy is shown that is not at its place any more. */
const SHOWN_MISSING_MS = 30 * DAY_MS

export type CopiesOptions = Pick<Ports, 'store' | 'config' | 'log'> & {
  readonly dataDir: string
  readonly timeZone: string
  readonly clock: Clock
  readonly files: Files
  readonly encrypt: (job: EncryptionJob, signal: AbortSignal) => Promise<Encrypted>
  readonly places: Omit<PlaceOptions, 'signal' | 'dataDir'>
  readonly partSize?: number
  /** Whether this instance makes copies. */
  readonly mayRun: () => boolean
}

export type NodeCopies = {
  readonly port: Copies
  /** Copies what is due, and waits for more. */
  start(): void
  /** Ends a copy that is being made; the next start goes on. */
  stop(): Promise<void>
  /** One look: every attempt that is due. */
  round(): Promise<void>
}

export function openCopies(options: CopiesOptions): NodeCopies {
  const { store, log, clock, dataDir, files, mayRun } = options
  let stopping = new AbortController()
  /** Ends the attempt that is under way. */
  let attempt = new AbortController()
  const openPlace = (target: Target, signal = stopping.signal) =>
    placeOpener({ ...options.places, dataDir, signal })(target)
  const outgoing = openOutgoing({
    dataDir,
    files,
    encrypt: (job) => options.encrypt(job, endOfAttempt()),
    ...(options.partSize !== undefined && { partSize: options.partSize }),
  })
  const endOfAttempt = () => AbortSignal.any([stopping.signal, attempt.signal])
  const directory = backupsDirectory(dataDir)
  const ctx: AuditContext = { store, now: clock.now, ip: null, requestId: null, viewer: null }
  const timer = createTimer(clock)
  /** That of the attempt, where it is one in parts. */
  let upload: Upload | null = null
  let progress: CopyProgress | null = null
  let isStopped = true
  let isWoken = false
  let working: Promise<void> = Promise.resolve()
  let isWorking = false
  let listed: { readonly changedAt: number | null; readonly backups: readonly Backup[] } | null = null

  const look = () => {
    if (isStopped) return
    if (isWorking) {
      isWoken = true
      return
    }
    isWorking = true
    isWoken = false
    working = lookOnce()
  }

  async function lookOnce(): Promise<void> {
    try {
      if (mayRun()) await round()
    } catch (error) {
      log.error('Copying backups failed', { error })
    }
    isWorking = false
    if (!isStopped) timer.start(isWoken ? 0 : LOOK_MS, look)
  }

  async function round(): Promise<void> {
    const places = await placesInUse()
    if (places.length === 0) return outgoing.keepOnly([])
    const backups = await knownBackups()
    const waiting: string[] = []
    for (let place of places) {
      for (let wanted = await nextFor(place, backups); wanted !== null; wanted = await nextFor(place, backups)) {
        if (isEnding()) return
        if (!(await isInUse(place.row.id))) break
        if (!isDue(place) || !(await tryCopy(place, wanted))) {
          waiting.push(wanted.name)
          break
        }
        place = { ...place, row: { ...place.row, failures: 0, nextTryAt: 0 } }
      }
    }
    if (!isEnding()) outgoing.keepOnly(waiting.slice(0, 1))
  }

  const placesInUse = async () =>
    (await readPlaces(options)).filter(({ row: { enabled, heldAt } }) => enabled && heldAt === null)

  const isInUse = async (id: number) => (await placesInUse()).some(({ row }) => row.id === id)

  /** Ends the copy that is being made if its place was removed or switched off. */
  async function endUnwanted(): Promise<void> {
    const [running, its] = [progress, attempt]
    if (running !== null && !(await isInUse(running.placeId))) its.abort()
  }

  /** Read again only after something was added or removed: there may be hundreds of manifests. */
  async function knownBackups(): Promise<readonly Backup[]> {
    const changedAt = statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? null
    if (listed === null || listed.changedAt !== changedAt) listed = { changedAt, backups: await listBackups(directory) }
    return listed.backups
  }

  const isEnding = () => !mayRun() || (isStopped && isWorking)
  // A time far ahead was set by a wrong clock.
  const isDue = ({ row }: StoredPlace) => row.nextTryAt <= clock.now() || row.nextTryAt > clock.now() + RETRIES.mostMs

  /** The newest backup that the place has not, then those made since the place was added. */
  async function nextFor({ row }: StoredPlace, backups: readonly Backup[]): Promise<Backup | null> {
    const copies = await copiesAt(ctx, row.id)
    const named = (state: CopyRow['state']) => copies.filter((one) => one.state === state)
    const [made, missing] = [named('made'), named('missing')].map((all) => new Set(all.map(({ name }) => name)))
    const { settings } = await readBackupSchedule(store)
    // Of both, because what is deleted at the place must not be copied there again.
    const known = [...backups, ...copies.filter(({ name }) => backups.every((one) => one.name !== name))]
    const now = clock.now()
    const past = new Set(expiredBackups(known, settings, now, options.timeZone))
    // What is later was made, or added, while the clock was ahead.
    const newest = backups.find(({ createdAt }) => createdAt <= now)
    const since = Math.min(row.createdAt, now)
    const isSince = ({ name, createdAt }: Backup) =>
      createdAt >= since && !past.has(name) && missing?.has(name) !== true
    const isWanted = (one: Backup) => made?.has(one.name) !== true && (one === newest || isSince(one))
    return backups.find(isWanted) ?? null
  }

  async function tryCopy(stored: StoredPlace, backup: Backup): Promise<boolean> {
    const { row } = stored
    const begun = clock.now()
    attempt = new AbortController()
    try {
      const { size } = await copy(stored, backup)
      log.info('Backup copied', { name: backup.name, place: row.name, sizeBytes: size, ms: clock.now() - begun })
    } catch (error) {
      // The next start begins again; that is no failure of the place.
      if (isEnding()) return false
      if (attempt.signal.aborted) {
        log.info('A copy was ended, as its place is no longer in use', { name: backup.name, place: row.name })
        await cleanRemoved(stored, backup.name)
        return false
      }
      const problem = problemOf(error)
      log.error('A backup was not copied', { name: backup.name, place: row.name, problem, error })
      await recordFailed(ctx, row, backup.name, problem)
      return false
    } finally {
      progress = null
    }
    await tidy(stored, backup.name)
    return true
  }

  /** Removes what is at a place that was removed here; at one that is only switched off it is gone on with. */
  async function cleanRemoved({ row, target }: StoredPlace, name: string): Promise<void> {
    const isKnown = (await readPlaces(options)).some((one) => one.row.id === row.id)
    if (isKnown || target === null) return
    try {
      await openPlace(target).clean(fileNameOf(name), upload)
    } catch (error) {
      log.warn('An unfinished copy could not be deleted', { name, place: row.name, error })
    }
  }

  async function copy({ row, target }: StoredPlace, backup: Backup) {
    const { name } = backup
    // From here on, a place that is removed ends it.
    progress = { placeId: row.id, name, sentBytes: 0, totalBytes: 0 }
    const left = (await copiesAt(ctx, row.id)).find((one) => one.name === name)
    upload = uploadOf(left?.upload ?? null)
    if (target === null) throw new CopyFailure('sealed')
    // Read for each copy: the one before may have taken hours.
    const recipients = (await readCopyKeys(store)).recipients.map(({ recipient }) => recipient)
    if (recipients.length === 0) throw new CopyFailure('noRecipient')
    const place = await openOwn(target)
    await cleanOthers(place, row.id, name)
    const manifest = findManifest(directory, name)
    if (manifest === null) throw new CopyFailure('unreadable')
    const file = await outgoing.prepare({ name, directory: join(directory, name), manifest }, recipients)
    await noteSending(ctx, row.id, backup)
    let sentBytes = 0
    await place.send(fileNameOf(name), file, {
      upload,
      keep(kept) {
        upload = kept
        return keepUpload(ctx, row.id, name, kept)
      },
      onSent: (bytes) => {
        sentBytes = Math.min(file.size, sentBytes + bytes)
        progress = { placeId: row.id, name, sentBytes, totalBytes: file.size }
      },
    })
    await recordMade(ctx, row, name, file)
    return file
  }

  const ownMark = () => readServiceMark(store, clock.now())

  /** A place with the mark of this service. Throws `SendFailure` if it has that of another. */
  async function openOwn(target: Target): Promise<Place> {
    const place = openPlace(target, endOfAttempt())
    const [owner, own] = [await place.owner(), await ownMark()]
    if (owner === null) await place.claim(own)
    else if (owner !== own) throw new CopyFailure('foreign')
    return place
  }

  /** Removes what interrupted attempts left of copies that are not continued. */
  async function cleanOthers(place: Place, placeId: number, name: string): Promise<void> {
    const left = (await copiesAt(ctx, placeId)).filter((one) => one.state === 'sending' && one.name !== name)
    for (const one of left) {
      try {
        await place.clean(fileNameOf(one.name), uploadOf(one.upload))
        // A bucket may have it whole although that was never recorded; a later attempt replaces it.
        await place.remove(fileNameOf(one.name))
      } catch (error) {
        if (!(error instanceof SendFailure)) throw error
        log.warn('An unfinished copy could not be deleted', { name: one.name, place: placeId, error })
        // Tried again, unless the place permits no deleting.
        if (!(error instanceof CopyFailure) || error.isPassing) continue
      }
      await forgetCopies(ctx, [one.id])
    }
  }

  /** Compares the list with the place, and deletes old copies. The copy that was just made stays in any case. */
  async function tidy({ row, target }: StoredPlace, made: string): Promise<void> {
    if (target === null) return
    try {
      const place = await openOwn(target)
      await noteLost(place, row.id, made)
      const { settings } = await readBackupSchedule(store)
      const good = (await copiesAt(ctx, row.id)).filter(({ state }) => state === 'made')
      const expired = new Set(expiredBackups(good, settings, clock.now(), options.timeZone))
      for (const one of good) {
        if (!expired.has(one.name) || one.name === made || isEnding()) continue
        await place.remove(fileNameOf(one.name))
        await recordPruned(ctx, row, one)
        log.info('Copy deleted', { name: one.name, place: row.name, reason: 'retention' })
      }
    } catch (error) {
      if (isEnding()) return
      log.warn('Old copies could not be deleted', { place: row.name, error })
      await noteProblem(ctx, row.id, problemOf(error))
    }
  }

  /** `made` was seen at the place just now, whatever its list says. */
  async function noteLost(place: Place, placeId: number, made: string): Promise<void> {
    const there = new Map((await place.list()).map(({ name, size }) => [name, size]))
    const copies = await copiesAt(ctx, placeId)
    const isThere = ({ name, sizeBytes }: CopyRow) => there.get(fileNameOf(name)) === sizeBytes
    const lost = copies.filter((one) => one.state === 'made' && one.name !== made && !isThere(one))
    await noteMissing(ctx, idsOf(lost))
    const back = copies.filter((one) => one.state === 'missing' && isThere(one))
    await noteBack(ctx, idsOf(back))
    const old = clock.now() - SHOWN_MISSING_MS
    const forgotten = copies.filter(({ state, madeAt }) => state === 'missing' && (madeAt ?? 0) < old)
    await forgetCopies(ctx, idsOf(forgotten.filter((one) => !isThere(one))))
  }

  return {
    port: {
      probe: async (target) => probePlace((one) => openPlace(one), target, dataDir, await ownMark()),
      async claim(target) {
        try {
          await openPlace(target).claim(await ownMark())
        } catch (error) {
          const isWrong = error instanceof CopyFailure && ['foreign', 'unreadableCa'].includes(error.problem)
          // A server that does not answer now is marked before the first copy.
          if (target.kind === 'folder' || isWrong || !(error instanceof SendFailure)) throw error
        }
      },
      running: () => progress,
      wake() {
        endUnwanted().catch((error: unknown) => log.error('Places of copies could not be read', { error }))
        timer.start(0, look)
      },
      families: () => copyFamilies(store),
    },
    start() {
      isStopped = false
      stopping = new AbortController()
      look()
    },
    async stop() {
      isStopped = true
      timer.stop()
      stopping.abort()
      await working
    },
    round,
  }
}

const idsOf = (copies: readonly CopyRow[]) => copies.map(({ id }) => id)

function problemOf(error: unknown): string {
  if (error instanceof SendFailure) return error.message
  if (isDiskFull(error)) return PROBLEMS.ownDisk.text
  return PROBLEMS[error instanceof JobFailed ? 'unreadable' : 'internal'].text
}
