import { closeSync, createReadStream, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { isDeepStrictEqual } from 'node:util'
import { gte, sql } from 'drizzle-orm'
import { readAnchorLine } from '../../app/audit/anchor/line.ts'
import { readChain, rowsAfter, sealAudit, withPreviousHashes } from '../../app/audit/chain.ts'
import { exportPage } from '../../app/audit/export.ts'
import { type Trimmed, trimAudit } from '../../app/audit/trim.ts'
import { type ChainPart, verifyChain } from '../../app/audit/verify.ts'
import type { Ctx } from '../../app/base/context.ts'
import { AppError } from '../../app/http/errors.ts'
import type { Store } from '../../db/store.ts'
import { auditLog } from '../../db/schema.ts'
import { FileDamage, type FileProof, formatOf, readExport } from './audit-file.ts'

export const AUDIT_USAGE = `  audit verify                whether the audit log is unchanged, and up to which entry
  audit verify --export FILE  whether an exported file is unchanged and belongs to this log
  audit verify --anchor LINE|FILE
                              whether anchor lines kept elsewhere fit the audit log
  audit trim --before YYYY-MM-DD --export FILE
                              write all entries before that day (UTC) into a new file, then delete them from the log
`

/** Runs on a database; returns the exit code: 0 intact or done, 1 broken or refused. */
type AuditCommand = (ctx: Ctx) => Promise<number>

/** The command in the arguments after `audit`; null if they are invalid. */
export function readAuditCommand(args: readonly string[]): AuditCommand | null {
  const [name, ...rest] = args
  const options = new Map<string, string>()
  for (let i = 0; i < rest.length; i += 2) options.set(rest[i] ?? '', rest[i + 1] ?? '')
  const names = [...options.keys()].toSorted().join()
  const [file, before] = [options.get('--export') ?? '', options.get('--before') ?? '']
  if (rest.length !== options.size * 2 || [...options.values()].includes('')) return null
  if (name === 'verify' && names === '') return verifyLog
  if (name === 'verify' && names === '--export') return (ctx) => verifyFile(ctx, file)
  if (name === 'verify' && names === '--anchor') return (ctx) => verifyAnchors(ctx, options.get('--anchor') ?? '')
  if (name === 'trim' && names === '--before,--export') return (ctx) => trim(ctx, before, file)
  return null
}

function print(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

async function verifyLog({ store }: Ctx): Promise<number> {
  await sealAudit(store)
  const found = await verifyChain(store, { after: 0, limit: Number.MAX_SAFE_INTEGER })
  print(...describeChain(found))
  return found.broken === null ? 0 : 1
}

const BREAKS = {
  changed: 'does not match its seal',
  missing: 'is missing',
  unsealed: 'has lost its seal',
  trim_unrecorded: 'was the last one trimmed, but the trim is not recorded',
} as const

function describeBreak({ id, reason }: NonNullable<ChainPart['broken']>): string {
  return `Broken: entry ${id} ${BREAKS[reason]}`
}

function describeChain({ entries, until, unsealed, broken, trimmed }: ChainPart): string[] {
  const proven = until === null ? 'no entry' : `entry ${until.id} of ${new Date(until.timestamp).toISOString()}`
  return [
    broken === null
      ? `Intact: ${entries} entries, up to ${proven}`
      : `${describeBreak(broken)}; intact up to ${proven}`,
    ...(until === null ? [] : [`Hash of entry ${until.id}: ${until.hash}`]),
    ...(unsealed === 0 ? [] : [`Not sealed yet: ${unsealed} newer entries`]),
    ...(trimmed === null ? [] : [`Trimmed: entries up to ${trimmed.id}, of hash ${trimmed.hash}`]),
  ]
}

async function verifyFile(ctx: Ctx, file: string): Promise<number> {
  if (!existsSync(file)) throw new AppError('invalid_request', `${file} does not exist`)
  const foreign: number[] = []
  try {
    const isOfLog = await compareWithLog(ctx.store)
    const proof = await readExport(file, async (id, hash) => {
      if (foreign.length === 0 && !(await isOfLog(id, hash))) foreign.push(id)
    })
    print(...(proof === null ? ['Intact: no entries'] : describeFile(proof)))
  } catch (error) {
    if (!(error instanceof FileDamage)) throw error
    print(error.message)
    return 1
  }
  if (foreign.length > 0)
    print(`From another log: entry ${foreign[0]} has another hash in the database, or is missing there`)
  return foreign.length > 0 ? 1 : 0
}

/** The maximum number of matching lines to name: the last ones of the file. Lines that do not match are all named. */
const MAX_NAMED = 20

/** Compares lines that AUDIT_ANCHOR_URL has received with the log, which must be intact up to them. */
async function verifyAnchors({ store }: Ctx, given: string): Promise<number> {
  await sealAudit(store)
  const found = await verifyChain(store, { after: 0, limit: Number.MAX_SAFE_INTEGER })
  const { trimmedId, trimmedHash } = await readChain(store)
  const provenId = found.until?.id ?? trimmedId
  const isOfLog = await compareWithLog(store)
  const fitting: string[] = []
  let [fits, misfits, trimmed] = [0, 0, 0]
  for await (const line of existsSync(given) ? createInterface({ input: createReadStream(given) }) : [given]) {
    const anchor = readAnchorLine(line)
    if (anchor === null) continue
    const { id, hash } = anchor
    if (id < trimmedId) trimmed++
    else if (id > provenId || !(await isOfLog(id, hash)) || (id === trimmedId && hash !== trimmedHash)) {
      misfits++
      print(`Does not fit: entry ${id} of hash ${hash}${id > provenId ? '; the log is not intact up to it' : ''}`)
    } else {
      fits++
      fitting.push(`Fits: entry ${id} of hash ${hash}`)
      if (fitting.length > MAX_NAMED) fitting.shift()
    }
  }
  print(...fitting, `Anchors: ${fits} fit, ${misfits} do not fit, ${trimmed} are of trimmed entries`)
  if (found.broken !== null) print(...describeChain(found))
  return misfits > 0 || fits + misfits + trimmed === 0 || found.broken !== null ? 1 : 0
}

function describeFile({ entries, firstId, lastId, previousHash, lastHash, isComplete }: FileProof): string[] {
  return [
    `Intact: ${entries} entries, from ${firstId} to ${lastId}, ${isComplete ? 'none left out' : 'a selection'}`,
    `Hash before entry ${firstId}: ${previousHash}`,
    `Hash of entry ${lastId}: ${lastHash}`,
  ]
}

/** Whether the log has this hash for an entry. Of the trimmed entries, it knows only the hash of the last one. */
async function compareWithLog(store: Store): Promise<(id: number, hash: string) => Promise<boolean>> {
  const { trimmedId, trimmedHash } = await readChain(store)
  const hashes = store.db
    .select({ hash: auditLog.hash })
    .from(auditLog)
    .where(sql`id = ${sql.placeholder('id')}`)
    .prepare()
  return async (id, hash) => {
    if (id <= trimmedId) return id < trimmedId || hash === trimmedHash
    return (await hashes.get({ id }))?.hash === hash
  }
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

async function trim(ctx: Ctx, before: string, file: string): Promise<number> {
  const at = DAY.test(before) ? Date.parse(`${before}T00:00:00Z`) : Number.NaN
  if (!(at <= ctx.now())) throw new AppError('invalid_request', 'Expected --before with a past day, such as 2026-01-31')
  await sealAudit(ctx.store)
  const { trimmedId, trimmedHash } = await readChain(ctx.store)
  const lastId = await lastBefore(ctx.store, at)
  if (lastId <= trimmedId) {
    print(`Nothing to trim: no entry is from before ${before}`)
    return 0
  }
  const entries = lastId - trimmedId
  const { broken, until } = await verifyChain(ctx.store, { after: 0, limit: entries })
  if (broken !== null || until === null) {
    const why = broken === null ? 'The log is not sealed yet' : describeBreak(broken)
    throw new AppError('invalid_request', `${why}; nothing was trimmed`)
  }
  const trimmed = { firstId: trimmedId + 1, lastId, entries, previousHash: trimmedHash, lastHash: until.hash }
  await writeExport(ctx.store, file, trimmed)
  await trimAudit(ctx, trimmed, basename(file))
  print(`Trimmed: ${entries} entries, from ${trimmed.firstId} to ${lastId}, are in ${file} and no longer in the log`)
  return 0
}

/** The last entry before the first one that is not older. */
async function lastBefore({ db }: Store, at: number): Promise<number> {
  const [newer] = await db
    .select({ id: sql<number | null>`min(${auditLog.id})` })
    .from(auditLog)
    .where(gte(auditLog.timestamp, at))
  if (typeof newer?.id === 'number') return newer.id - 1
  const [newest] = await db.select({ id: sql<number | null>`max(${auditLog.id})` }).from(auditLog)
  return newest?.id ?? 0
}

const PAGE = 500

/** Writes the entries to a new file, flushes it to the disk and reads it again. */
async function writeExport(store: Store, file: string, trimmed: Trimmed): Promise<void> {
  const handle = create(file)
  try {
    try {
      for (let after = trimmed.firstId - 1; after < trimmed.lastId;) {
        const rows = await rowsAfter(store, after, Math.min(PAGE, trimmed.lastId - after))
        const last = rows.at(-1)
        if (last === undefined) throw new FileDamage('The log was changed meanwhile; nothing was trimmed')
        const isFirst = after < trimmed.firstId
        writeFileSync(handle, exportPage(await withPreviousHashes(store, rows), formatOf(file), isFirst))
        after = last.id
      }
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    syncDirectory(dirname(file))
    const { isComplete, ...proof } = (await readExport(file)) ?? { isComplete: false }
    if (!isComplete || !isDeepStrictEqual(proof, trimmed)) {
      throw new FileDamage(`${file} does not contain what was written to it; nothing was trimmed`)
    }
  } catch (error) {
    rmSync(file, { force: true })
    throw error instanceof FileDamage ? new AppError('invalid_request', error.message) : error
  }
}

function create(file: string): number {
  try {
    return openSync(file, 'wx', 0o600)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown'
    throw new AppError('invalid_request', `${file} cannot be created: ${why}`)
  }
}

function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
