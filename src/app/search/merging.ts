import { sql } from 'drizzle-orm'
import { built, type Statement, type Store } from '../../db/store.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { readParts } from './text-index.ts'

/** Rows of a full slice: a few milliseconds, including the pages merged with it. */
export const SLICE = 250
/** One page of the index is merged for this many changed rows, so that the index keeps few pieces. */
const ROWS_PER_PAGE = 12
/** Merges per index in one run, in addition to new rows. */
const MERGES = 10

/**
 * FTS5 takes its commands as rows, in a column named after the table. Virtual tables are not in the schema, because
 * backups and migrations are made from it.
 */
export const command = ({ db }: Store, index: string, name: string, rank: number): Statement =>
  built(db, sql.raw(`insert into ${index} (${index}, rank) values ('${name}', ${rank})`))

/** Merges the pieces that new rows have left in the indexes; the older parts of messages have no new ones. */
export async function mergeTextIndexes(store: Store, pause: Pause, share: Share = wholeSlices): Promise<void> {
  const parts = (await readParts(store)).slice(0, 2)
  for (const { name } of [...parts, { name: 'nodes_text' }, { name: 'audit_log_text' }]) {
    for (let n = 0; n < MERGES; n++) {
      await store.atomic([merge(store, name, partOf(SLICE, share()))], 'lazily')
      if (!(await pause())) return
    }
  }
}

/**
 * Merges some pieces of an index, if there are enough of them, in proportion to changed rows. Fewer are searched faster;
 * and each transaction adds one, until FTS5 merges 64 of a size at once, however long that takes.
 */
export function merge(store: Store, index: string, rows: number): Statement {
  return command(store, index, 'merge', Math.ceil(rows / ROWS_PER_PAGE))
}

/** Keeps the index of the audit log in few pieces. Call it after each transaction that deletes so many entries. */
export async function mergeAfter(store: Store, rows: number): Promise<void> {
  // D1 serves other requests meanwhile, and there the schedule merges.
  if (store.batch !== undefined || rows === 0) return
  // A merge takes about as long as the deletion before it.
  await nextTurn()
  await store.atomic([merge(store, 'audit_log_text', rows)], 'lazily')
}
