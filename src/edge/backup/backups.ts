import type { Asking, Backup, BackupKind, Backups } from '../../app/system/backup/backup.ts'
import { type BackupContext, entryOfBackup } from '../../app/system/backup/backups.ts'
import { dueAt, messageOf, pruneBackups } from '../../app/system/backup/scheduled.ts'
import { recordScheduledRun } from '../../app/system/backup/settings.ts'
import { backupNameAt } from '../../app/system/backup/format/names.ts'
import { BackupDamage, RestoreRefused } from '../../app/system/backup/format/damage.ts'
import { describeBackup, parseManifest } from '../../app/system/backup/format/manifest.ts'
import { audit, type AuditContext } from '../../app/audit/audit.ts'
import type { Ports } from '../../app/base/context.ts'
import { AppError } from '../../app/http/errors.ts'
import { DAY_MS } from '../../shared/time.ts'
import {
  type Bucket,
  demandParts,
  hasManifest,
  hideBackup,
  listManifests,
  readContents,
  readManifestText,
  removeParts,
  sweepParts,
} from './bucket.ts'
import { beginBackup, endings, goOn, type MakingNeeds } from './making.ts'
import { archiveOf } from './reading.ts'
import { verifyBackup } from './verify.ts'
import { type Claim, claimWork, progressOf, readWork, releaseWork, type State } from './work.ts'

/**
 * Slices of one invocation of the worker, which may make 1000 queries and use 30 s of the processor
 * (developers.cloudflare.com/workers/platform/limits): a slice is one query and 35 ms. Beginning and ending take about 600.
 */
const SLICES = 320
const SLICES_AFTER_BEGINNING = 220
/** Failures in a row after which a backup is given up. */
const MAX_FAILURES = 5
/** After which one is given up that nobody goes on with, or that is too large. */
const MAX_AGE_MS = DAY_MS

export type EdgeNeeds = MakingNeeds & Pick<Ports, 'log' | 'version'>

/** What giving up a backup needs: no bucket. */
type EndingNeeds = Pick<EdgeNeeds, 'store' | 'now' | 'log'> & { readonly bucket: Bucket | null }

const timeZoneOf = ({ config }: EdgeNeeds) => config.TZ ?? 'UTC'

/** The backups in a bucket of R2. */
export function edgeBackups(needs: EdgeNeeds): Backups {
  const { bucket, store } = needs
  const demand = async (name: string) => {
    const text = await readManifestText(bucket, name)
    const manifest = text === null ? null : unlessDamaged(() => parseManifest(text))
    if (text === null || manifest === null) throw new AppError('backup_not_found')
    return { text, manifest }
  }
  return {
    list: () => listManifests(bucket),
    find: async (name) => describeBackup(name, (await demand(name)).manifest),
    running: async () => {
      const work = await readWork(store)
      // One that will not be completed is in nobody's way.
      return work === null || whyStuck(work, needs.now()) !== null ? null : progressOf(work)
    },
    create: (kind, _, by) => create(needs, kind, by),
    remove: async (name, record) => {
      if (!(await hasManifest(bucket, name))) throw new AppError('backup_not_found')
      await hideBackup(bucket, name, record)
      await removeParts(bucket, name)
    },
    verify: (name) => verifyBackup(needs, name),
    download: async (name) => {
      const found = await demand(name)
      const contents = await whole(() => readContents(bucket, name))
      await whole(() => demandParts(bucket, name, contents.objects))
      return streamOf(archiveOf(bucket, name, { ...found, contents }))
    },
    nextRun: (schedule) => dueAt(schedule, needs.now(), timeZoneOf(needs)),
    reschedule: () => {},
  }
}

function unlessDamaged<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof BackupDamage || error instanceof RestoreRefused) return null
    throw error
  }
}

async function whole<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof BackupDamage) throw new AppError('backup_unusable', error.message, { cause: error })
    throw error
  }
}

function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: async (sink) => {
        const { done, value } = await chunks.next()
        if (done === true) sink.close()
        else sink.enqueue(value)
      },
      cancel: async () => {
        await chunks.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Begins a backup and goes on with it as far as one invocation may. */
async function create(needs: EdgeNeeds, kind: BackupKind, by: Asking): Promise<Backup | null> {
  const { claim, slices } = await begin(needs, kind, by).catch((error: unknown) => {
    throw error instanceof AppError ? error : failed(error)
  })
  try {
    return await advance(needs, claim, slices)
  } catch (error) {
    needs.log.error('The backup failed', { name: claim.state.name, error })
    await giveUp(needs, claim, null)
    throw failed(error)
  }
}

const failed = (error: unknown) =>
  new AppError('internal', `The backup failed: ${messageOf(error)}. Nothing was changed`, { cause: error })

/** Begins a backup, in place of one that will not be completed. `slices`: how many of it this invocation may still make. */
async function begin(
  needs: EdgeNeeds,
  kind: BackupKind,
  by: Asking,
): Promise<{ readonly claim: Claim; readonly slices: number }> {
  const { bucket, store, now, log, version } = needs
  const work = await readWork(store)
  if (work !== null && !(await endStuck(needs, work))) throw new AppError('backup_in_progress')
  await sweepParts(bucket, log)
  const { name, createdAt } = await freeName(needs)
  const user = by.viewer?.user ?? { id: null, username: null }
  const who = { id: user.id, username: user.username, ip: by.ip, requestId: by.requestId }
  const claim = await beginBackup(needs, { name, createdAt, kind, appVersion: version, by: who })
  if (claim === null) throw new AppError('backup_in_progress')
  log.info('Backup started', { name, kind, at: now() })
  return { claim, slices: work === null ? SLICES_AFTER_BEGINNING : 0 }
}

/** The name for the current second; waits for the next one if it is taken. */
async function freeName(needs: EdgeNeeds): Promise<{ name: string; createdAt: number }> {
  for (;;) {
    const createdAt = needs.now()
    const name = backupNameAt(createdAt, timeZoneOf(needs))
    if (!(await hasManifest(needs.bucket, name))) return { name, createdAt }
    await new Promise((resolve) => setTimeout(resolve, 1000 - (createdAt % 1000)))
  }
}

/** Goes on with a backup; null: there is more to do. */
async function advance(needs: EdgeNeeds, claim: Claim, slices: number): Promise<Backup | null> {
  const backup = await goOn(needs, claim, slices)
  if (backup === null) return null
  const { state } = claim
  const [first, ...others] = await endings(needs, claim)
  // The entry and the end are one step: an invocation that ends between them does neither.
  if (first !== undefined) await needs.store.atomic([first, entryOf(needs, state, backup), ...others])
  const { name, kind, tables, rows, sizeBytes } = backup
  needs.log.info('Backup completed', { name, kind, tables, rows, sizeBytes, ms: needs.now() - state.createdAt })
  return backup
}

const asSystem = ({ store, now }: EndingNeeds): AuditContext => ({
  store,
  now,
  ip: null,
  requestId: null,
  viewer: null,
})

function entryOf(needs: EdgeNeeds, { by }: State, backup: Backup) {
  const { id, username, ip, requestId } = by
  const context = { ...asSystem(needs), ip, requestId }
  return entryOfBackup(context, backup, username === null ? {} : { actor: { id, username } })
}

/** Forgets a backup that cannot be finished, and deletes its parts. `error`: recorded, because nobody waits for an answer. */
async function giveUp(needs: EndingNeeds, claim: Claim, error: string | null): Promise<void> {
  const { state } = claim
  const ctx = asSystem(needs)
  const [first, ...others] = await endings(needs, claim)
  // The schedule records its own failures.
  const isSaid = error !== null && state.kind === 'manual'
  const entry = isSaid ? [audit(ctx, 'backup_failed', { kind: state.kind, name: state.name, error })] : []
  if (first !== undefined) await needs.store.atomic([first, ...entry, ...others])
  if (error !== null && state.kind === 'scheduled') {
    await recordScheduledRun(ctx, { at: state.createdAt, ok: false, error })
  }
  if (needs.bucket === null) return
  // The next backup sweeps what the bucket does not delete now.
  await removeParts(needs.bucket, state.name).catch((failure: unknown) => {
    needs.log.warn('Parts of a failed backup could not be deleted', { name: state.name, error: failure })
  })
}

/** Goes on with the backup that is being made. Returns whether there is one. */
export async function continueBackup(needs: EdgeNeeds): Promise<boolean> {
  const claim = await claimWork(needs.store, needs.now())
  if (claim === null) return (await readWork(needs.store)) !== null
  const stuck = whyStuck(claim.state, needs.now())
  if (stuck !== null) {
    await giveUpStuck(needs, claim, stuck)
    return true
  }
  await advanceScheduled(needs, claim, SLICES)
  return true
}

/** Gives up the backup that is being made if it will not be completed. Returns whether it did, which is 300 queries. */
export async function endStuck(needs: EndingNeeds, work: State): Promise<boolean> {
  const { store, now } = needs
  const stuck = whyStuck(work, now())
  const claim = stuck === null ? null : await claimWork(store, now())
  if (stuck === null || claim === null) return false
  await giveUpStuck(needs, claim, stuck)
  return true
}

/** Why a backup will not be completed; null: it may be. `failures`: of all runs before this one. */
function whyStuck({ createdAt, failures }: State, now: number): string | null {
  if (createdAt === 0) return 'what was noted of it cannot be read'
  if (failures > MAX_FAILURES) return 'its runs ended without a word'
  return now - createdAt > MAX_AGE_MS ? 'it was not complete after a day' : null
}

async function giveUpStuck(needs: EndingNeeds, claim: Claim, error: string): Promise<void> {
  needs.log.error('The backup failed', { name: claim.state.name, error })
  await giveUp(needs, claim, error)
}

/** Begins a scheduled backup. Throws `backup_in_progress`. */
export async function beginScheduled(needs: EdgeNeeds): Promise<void> {
  const { claim, slices } = await begin(needs, 'scheduled', asSystem(needs))
  await advanceScheduled(needs, claim, slices)
}

async function advanceScheduled(needs: EdgeNeeds, claim: Claim, slices: number): Promise<void> {
  const { kind, createdAt, name } = claim.state
  try {
    if ((await advance(needs, claim, slices)) === null) return
  } catch (error) {
    needs.log.error('The backup failed', { name, error })
    await (claim.state.failures >= MAX_FAILURES
      ? giveUp(needs, claim, messageOf(error))
      : releaseWork(needs.store, claim))
    return
  }
  if (kind !== 'scheduled') return
  const context: BackupContext = { ...asSystem(needs), backups: edgeBackups(needs) }
  const error = await pruneBackups(context, needs.log, timeZoneOf(needs))
  await recordScheduledRun(context, { at: createdAt, ok: true, error })
}
