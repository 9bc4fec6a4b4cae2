import * as z from 'zod'
import type { Ports } from '../../base/context.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { keepState, readState } from './state.ts'

/** The time between two samples, and how many are kept: a week. */
const EVERY_MS = 3 * HOUR_MS
export const MAX_SAMPLES = 56
/** A shorter time says nothing: a backup or an upgrade may fill the disk within hours, and never again. */
const LEAST_MS = DAY_MS
/** A later end is no forecast. */
const MOST_MS = 3650 * DAY_MS
/** A file system may change its size a little. One that differs by more is another disk. */
const SAME_DISK = 0.2

/** In bytes. `room`: for new rows; `total`: the size of the disk, or of the database that the platform allows. */
export type Sample = {
  readonly at: number
  readonly database: number
  readonly room: number
  readonly total: number
}

const bytes = z.number().min(0)
export const samplesSchema = z
  .array(
    z.tuple([z.int(), bytes, bytes, bytes]).transform(([at, database, room, total]) => ({ at, database, room, total })),
  )
  .max(MAX_SAMPLES)

export type Storage = {
  readonly databaseBytes: number | null
  readonly disk: { readonly totalBytes: number; readonly freeBytes: number; readonly isFull: boolean } | null
  readonly limitBytes: number | null
  /** For new rows; null: unknown. */
  readonly roomBytes: number | null
}

export async function readStorage({ store, disk }: Pick<Ports, 'store' | 'disk'>): Promise<Storage> {
  const databaseBytes = await store.sizeBytes()
  if (disk !== null) {
    const { total, free, spare } = disk.space()
    const known = { totalBytes: total, freeBytes: free, isFull: disk.isFull() }
    return { databaseBytes, limitBytes: null, disk: known, roomBytes: free + spare }
  }
  const { usedBytes = 0, limitBytes = null } = (await store.space()) ?? {}
  return { databaseBytes, limitBytes, disk: null, roomBytes: limitBytes === null ? null : limitBytes - usedBytes }
}

/** Measures the storage, unless that was done less than three hours ago. */
export async function sampleStorage(ports: Pick<Ports, 'store' | 'disk' | 'now'>): Promise<void> {
  const at = ports.now()
  const known = ((await readState(ports.store, 'storage', samplesSchema)) ?? []).filter((each) => each.at <= at)
  const last = known.at(-1)
  if (last !== undefined && at - last.at < EVERY_MS) return
  const { databaseBytes, disk, limitBytes, roomBytes } = await readStorage(ports)
  const total = disk?.totalBytes ?? limitBytes
  if (databaseBytes === null || roomBytes === null || total === null) return
  const samples = [...known, { at, database: databaseBytes, room: roomBytes, total }].slice(-MAX_SAMPLES)
  const rows = samples.map((each) => [each.at, each.database, each.room, each.total])
  await keepState(ports.store, 'storage', rows, at)
}

export type Forecast = {
  /** By how much the room shrinks; negative: it grows. */
  readonly bytesPerDay: number
  /** When no room is left; null: not within ten years. */
  readonly fullAt: number | null
}

/**
 * When the present room ends if it goes on shrinking as in the samples: by the median of the slopes between any two of them, which
 * a single backup or deletion does not move (Theil–Sen). Null: less than a day is known of this disk.
 */
export function forecastRoom(samples: readonly Sample[], room: number | null, now: number): Forecast | null {
  const latest = samples.at(-1)
  if (latest === undefined || room === null) return null
  const isSameDisk = ({ total }: Sample) => Math.abs(total - latest.total) <= SAME_DISK * latest.total
  const known = samples.filter((each) => each.at <= now && isSameDisk(each))
  const first = known[0]
  if (first === undefined || latest.at - first.at < LEAST_MS) return null
  const slopes = known.flatMap((later, index) =>
    known.slice(0, index).flatMap((earlier) => {
      const ms = later.at - earlier.at
      return ms > 0 ? [(earlier.room - later.room) / ms] : []
    }),
  )
  const perMs = medianOf(slopes)
  const left = perMs > 0 ? room / perMs : Number.POSITIVE_INFINITY
  return {
    bytesPerDay: Math.round(perMs * DAY_MS),
    fullAt: left <= MOST_MS ? Math.round(now + left) : null,
  }
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2
}
