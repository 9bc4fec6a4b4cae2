import type { Ctx } from '../../app/base/context.ts'
import { EARLIEST_MS, MAX_AHEAD_MS } from '../../meshtastic/device-time.ts'
import { isFuture } from '../../shared/time.ts'
import type { SqliteStore } from '../database.ts'
import type { Source } from './source/source.ts'
import type { Tally } from './tally.ts'
import type { Writer } from './writer.ts'

/** What every part of an import works with. */
export type Job = {
  readonly ctx: Ctx & { readonly store: SqliteStore }
  readonly source: Source
  readonly writer: Writer
  readonly tally: Tally
  /** When the import began, in milliseconds. */
  readonly now: number
}

/** A time in milliseconds as the file has it; null if it is missing, before 2020 or in the future. */
export function plausibleTime({ now, tally }: Pick<Job, 'now' | 'tally'>, ms: number | null): number | null {
  if (ms === null || ms < EARLIEST_MS) return null
  if (!isFuture(ms, now, MAX_AHEAD_MS)) return Math.round(ms)
  tally.lost('times_future')
  return null
}
