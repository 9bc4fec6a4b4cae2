import type { AuditRow } from '../../app/audit/entry.ts'
import { createReadStream } from 'node:fs'
import * as z from 'zod'
import { hashEntry, type Sealed } from '../../app/audit/chain.ts'
import { EXPORT_COLUMNS } from '../../app/audit/export.ts'
import { isFormula } from '../../shared/csv.ts'
import type { ExportFormat } from '../../shared/access/audit-actions.ts'
import { parseLine, splitLines } from '../disk/lines.ts'

/** The format of a file according to its name. */
export function formatOf(file: string): ExportFormat {
  return file.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson'
}

/** An entry of a file and its hashes. In a table, empty cells and null look the same. */
type Line = { readonly hash: string | null; readonly previousHash: string | null; readonly readings: Sealed[] }

/** The evidence that a file provides. */
export type FileProof = {
  readonly entries: number
  readonly firstId: number
  readonly lastId: number
  /** The hash of the entry before the first one. */
  readonly previousHash: string | null
  readonly lastHash: string | null
  /** Whether no entry between the first and the last one is missing. */
  readonly isComplete: boolean
}

/** The file is not an export, or was changed. The message is for people. */
export class FileDamage extends Error {
  override name = 'FileDamage'
}

/**
 * Reads an export, in either order, and checks each entry against its hash and its neighbours. `onEntry` is called with
 * each. Throws FileDamage.
 */
export async function readExport(
  file: string,
  onEntry: (id: number, hash: string) => Promise<void> = async () => {},
): Promise<FileProof | null> {
  const lines = formatOf(file) === 'csv' ? readTable(file) : readLines(file)
  let first: Line | null = null
  let last: Line | null = null
  let entries = 0
  for await (const line of lines) {
    const id = idOf(line)
    checkLine(line)
    if (last !== null) checkNeighbours(last, line)
    if (line.hash !== null) await onEntry(id, line.hash)
    first ??= line
    last = line
    entries++
  }
  if (first === null || last === null) return null
  const [low, high] = idOf(first) < idOf(last) ? [first, last] : [last, first]
  return {
    entries,
    firstId: idOf(low),
    lastId: idOf(high),
    previousHash: low.previousHash,
    lastHash: high.hash,
    isComplete: idOf(high) - idOf(low) + 1 === entries,
  }
}

function idOf({ readings }: Line): number {
  return readings[0]?.id ?? 0
}

function checkLine(line: Line): void {
  const { hash, previousHash, readings } = line
  if (hash === null || previousHash === null) {
    throw new FileDamage(`Entry ${idOf(line)} is not sealed: export the log again in a few seconds`)
  }
  if (!readings.some((reading) => hashEntry(previousHash, reading) === hash)) {
    throw new FileDamage(`Broken: entry ${idOf(line)} does not match its seal`)
  }
}

function checkNeighbours(a: Line, b: Line): void {
  const [low, high] = idOf(a) < idOf(b) ? [a, b] : [b, a]
  if (idOf(low) === idOf(high)) throw new FileDamage(`Broken: entry ${idOf(low)} occurs twice`)
  if (idOf(low) + 1 === idOf(high) && high.previousHash !== low.hash) {
    throw new FileDamage(`Broken: entry ${idOf(high)} does not follow entry ${idOf(low)}`)
  }
}

const text = z.string().nullable()
const lineSchema = z.object({
  id: z.int(),
  timestamp: z.int(),
  userId: z.int().nullable(),
  username: text,
  action: z.string(),
  resource: z.string(),
  details: z.unknown(),
  ip: text,
  requestId: text,
  previousHash: text,
  hash: text,
})

async function* readLines(file: string): AsyncGenerator<Line> {
  let number = 0
  for await (const json of splitLines(file)) {
    number++
    if (json.trim() === '') continue
    const parsed = lineSchema.safeParse(parseLine(json))
    if (!parsed.success) throw new FileDamage(`Line ${number} is not an entry of an export with hashes`)
    const { hash, previousHash, ...reading } = parsed.data
    yield { hash, previousHash, readings: [reading] }
  }
}

async function* readTable(file: string): AsyncGenerator<Line> {
  let number = 0
  for await (const cells of readRecords(file)) {
    number++
    if (number === 1) {
      if (cells.join() === EXPORT_COLUMNS.join()) continue
      throw new FileDamage(`The columns are not those of an export: ${EXPORT_COLUMNS.join(', ')}`)
    }
    const [id, timestamp, userId, username, action, resource, details, ip, requestId, previousHash, hash] = cells
    const values = { id: Number(id), timestamp: Number(timestamp), userId: userId === '' ? null : Number(userId) }
    const read = (reading: Pick<AuditRow, 'username' | 'action' | 'ip' | 'requestId'>) =>
      lineSchema.safeParse({ ...values, ...reading, resource, details: parseLine(details ?? ''), previousHash, hash })
    const readings: Sealed[] = []
    for (const name of readingsOf(username)) {
      for (const what of readingsOf(action)) {
        for (const address of readingsOf(ip)) {
          for (const request of readingsOf(requestId)) {
            const { data } = read({ username: name, action: what ?? '', ip: address, requestId: request })
            if (data !== undefined) readings.push(data)
          }
        }
      }
    }
    if (cells.length !== EXPORT_COLUMNS.length || readings.length === 0) {
      throw new FileDamage(`Record ${number} is not an entry of an export`)
    }
    yield { hash: hash || null, previousHash: previousHash || null, readings }
  }
}

/** The values that a cell may represent: empty or null, with or without the apostrophe before a formula. */
function readingsOf(cell = ''): (string | null)[] {
  if (cell === '') return [null, '']
  return cell.startsWith("'") && isFormula(cell.slice(1)) ? [cell.slice(1), cell] : [cell]
}

/** The records of a CSV table (RFC 4180). */
async function* readRecords(file: string): AsyncGenerator<string[]> {
  let cells: string[] = []
  let cell = ''
  let state: 'plain' | 'quoted' | 'closing' = 'plain'
  for await (const chunk of createReadStream(file, 'utf8')) {
    for (const character of String(chunk)) {
      if (state === 'quoted') {
        if (character === '"') state = 'closing'
        else cell += character
      } else if (character === '"') {
        if (state === 'closing') cell += '"'
        state = 'quoted'
      } else if (character === ',' || character === '\n') {
        state = 'plain'
        cells.push(cell)
        cell = ''
        if (character === ',') continue
        yield cells
        cells = []
      } else if (character !== '\r') cell += character
    }
  }
  if (cell !== '' || cells.length > 0) yield [...cells, cell]
}
