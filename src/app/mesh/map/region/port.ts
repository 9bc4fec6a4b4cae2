import type { OpenMapArchive } from '../archive.ts'
import type { Area, Bounds } from './area.ts'

export const REGION_STATES = ['none', 'loading', 'ready', 'failed'] as const

/** The map of the region on this machine, and the latest download of one. */
export type RegionState = {
  /** `loading` and `failed`: the latest download. The map that was there before is in use meanwhile. */
  readonly state: (typeof REGION_STATES)[number]
  /** The host of the planet archive. */
  readonly source: string
  /** Of the map in use; null: there is none. */
  readonly bounds: Bounds | null
  readonly maxZoom: number
  readonly bytes: number
  /** When it was completed, in milliseconds. */
  readonly t: number | null
  /** Plain text. */
  readonly attribution: string | null
  /** The area of the download that runs or failed. */
  readonly wanted: Area | null
  readonly fetchedBytes: number
  readonly totalBytes: number
  /** Why the download failed, as one sentence in English. */
  readonly problem: string | null
}

export type RegionSize = {
  /** Of the finished file. */
  readonly bytes: number
  readonly tiles: number
  /** Bytes that the map may take on the disk. */
  readonly free: number
}

/** What happens to the map of the region. */
export type RegionStep = 'started' | 'finished' | 'cancelled' | 'removed' | 'failed'
export type RecordRegion = (step: RegionStep, details: Readonly<Record<string, unknown>>) => Promise<void>

/** Extracts a region from a planet archive into one file. */
export interface MapRegions {
  state(): Promise<RegionState>
  /** How large a region would be. Throws `map_refused`. */
  measure(area: Area): Promise<RegionSize>
  /**
   * Begins a download, or continues an interrupted one of the same area. `record` runs before its first byte. Throws
   * `map_in_progress`, `map_refused`.
   */
  start(area: Area, record: RecordRegion): Promise<void>
  /** Ends the download and deletes what it fetched. Throws `not_found`, `map_in_progress`. */
  cancel(record: RecordRegion): Promise<void>
  /** Deletes the map in use. Throws `not_found`, `map_in_progress`. */
  remove(record: RecordRegion): Promise<void>
  /** The map in use. Throws `not_found`, `map_unavailable`. */
  open(): Promise<OpenMapArchive>
}
