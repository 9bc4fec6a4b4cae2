import type { Family } from '../metrics/exposition.ts'
import type { Target } from './settings.ts'

/** A copy that is being made: bytes of its encrypted archive; 0 of 0 while that is being written. */
export type CopyProgress = {
  readonly placeId: number
  readonly name: string
  readonly sentBytes: number
  readonly totalBytes: number
}

export type Probed = {
  /** Why no copies can be kept there, as one sentence in English; null: they can. */
  readonly problem: string | null
  /** Whether the service may delete there what it wrote. */
  readonly canDelete: boolean
  /** A folder on the disk that also has the database: no protection against its loss. */
  readonly isSameDisk: boolean
}

/** Keeps encrypted copies of backups at other places. */
export interface Copies {
  /** Writes, reads and deletes a small file. Nothing is saved. */
  probe(target: Target): Promise<Probed>
  /** Marks the place as this service's. Throws a failure with one sentence in English, such as that it is another's. */
  claim(target: Target): Promise<void>
  /** What this process copies now. */
  running(): CopyProgress | null
  /** Call it when places or recipients have changed, or an attempt shall not wait. */
  wake(): void
  families(): Promise<Family[]>
}
