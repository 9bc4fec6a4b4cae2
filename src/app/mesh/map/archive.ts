import type { ByteRange } from './byte-range.ts'
import type { PmtilesHeader } from './pmtiles-header.ts'

/** A map in one file, which may be replaced while the service runs. */
export interface MapArchive {
  /** The current file. Throws `map_unavailable`. */
  open(): Promise<OpenMapArchive>
}

export type OpenMapArchive = {
  readonly header: PmtilesHeader
  /** Bytes. */
  readonly size: number
  /** With its quotes; differs between files. */
  readonly etag: string
  /** Reads in chunks, and closes the file at its end or when the reader stops. */
  stream(range: ByteRange): ReadableStream<Uint8Array<ArrayBuffer>>
  close(): Promise<void>
}
