import { type DownlinkKind, LISTENING_MS } from '../../../shared/mesh/downlink.ts'

/** A collector's radio that takes commands. */
export type Collector = {
  readonly sourceId: number
  /** Name of its source. */
  readonly source: string
  readonly nodeNum: number
}

/** Whether a collector asked for commands just now. `now` in milliseconds. */
export function isListeningAt(listenedAt: number, now: number): boolean {
  return listenedAt <= now && listenedAt > now - LISTENING_MS
}

/** What a listener takes, as it is stored. */
export function readKinds(kinds: string): DownlinkKind[] {
  return JSON.parse(kinds)
}
