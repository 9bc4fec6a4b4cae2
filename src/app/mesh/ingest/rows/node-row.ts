import type { NodeRow as StoredNode, ReportedColumn } from '../../nodes/columns.ts'

/**
 * New data about a node: values of columns, of which absent or null ones change nothing. `isLicensed` comes with `role`,
 * `nameAltered` with the names, `spoofClaim` with `spoofSuspected`, and a position, a status and metrics with their time
 * and their channel. `snr` and `rssi` are only those of a node that was heard directly; `firstHeard`, `isFavorite`,
 * `isIgnored` and `isMuted` count only for a new node.
 */
export type NodeRow = {
  readonly nodeNum: number
  /** The source of the data. */
  readonly source: string
  /** When this reached the service, in milliseconds. */
  readonly seenAt: number
} & { readonly [Name in ReportedColumn]?: StoredNode[Name] }
