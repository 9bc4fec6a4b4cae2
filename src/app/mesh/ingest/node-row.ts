/** New data about a node. Absent or null fields change nothing. Times in milliseconds. */
export type NodeRow = {
  readonly nodeNum: number
  /** The source of the data. */
  readonly source: string
  /** The day on which it was heard, as in `dayOf`; counts as evidence for the node. */
  readonly lastHeardDay?: number | null
  readonly heardByRadio?: boolean
  /** When this reached the service. */
  readonly seenAt: number
  /** When the node was last heard. */
  readonly lastHeard?: number | null
  /** For a new node. Absent: when it was last heard, or when its row was written. */
  readonly firstHeard?: number
  readonly longName?: string | null
  readonly shortName?: string | null
  /** Comes with the names. */
  readonly nameAltered?: boolean
  readonly hwModel?: number | null
  readonly firmwareVersion?: string | null
  /** Comes with `isLicensed`. */
  readonly role?: number | null
  readonly isLicensed?: boolean
  readonly publicKey?: string | null
  readonly spoofSuspected?: boolean
  /** Comes with `spoofSuspected`: see `claimOf`. */
  readonly spoofClaim?: string
  /** Announced but not accepted. */
  readonly refusedPublicKey?: string | null
  /** When a signature of the node was verified, and which fields of this row were signed. */
  readonly signedAt?: number
  readonly keySigned?: boolean
  readonly nameSigned?: boolean
  readonly positionSigned?: boolean
  /** Which fields of this row one of our own radios heard. */
  readonly keyHeard?: boolean
  readonly nameHeard?: boolean
  readonly positionHeard?: boolean
  readonly metricsHeard?: boolean
  /** `lastHeard`, by who heard it. */
  readonly lastHeardByRadio?: number | null
  readonly lastHeardByBroker?: number | null
  /** The time in its telemetry, by the node's own clock. */
  readonly telemetryTime?: number
  /** Announced but not accepted. */
  readonly refusedLongName?: string | null
  readonly refusedShortName?: string | null
  /** Comes with any of the refused fields: one of our own radios heard them. */
  readonly refusedHeard?: boolean
  readonly latitude?: number
  readonly longitude?: number
  readonly altitude?: number | null
  readonly precisionBits?: number | null
  readonly positionTime?: number | null
  /** Comes with `latitude`; see `UNKNOWN_CHANNEL`. */
  readonly positionChannel?: number | null
  readonly batteryLevel?: number
  readonly voltage?: number
  readonly channelUtilization?: number
  readonly airUtilTx?: number
  readonly uptimeSeconds?: number
  readonly deviceMetricsTime?: number | null
  /** Comes with any of the metrics; see `UNKNOWN_CHANNEL`. */
  readonly metricsChannel?: number | null
  /** Empty: its earlier status is over. */
  readonly status?: string
  /** Come with `status`; see `UNKNOWN_CHANNEL`. */
  readonly statusTime?: number | null
  readonly statusChannel?: number | null
  readonly statusSigned?: boolean
  readonly statusHeard?: boolean
  /** Only for a node that was heard directly. */
  readonly snr?: number | null
  readonly rssi?: number | null
  readonly hopsAway?: number | null
  readonly viaMqtt?: boolean
  readonly channel?: number | null
  /** Copied from our own radio for a new node; afterwards only the administrator changes it. */
  readonly isFavorite?: boolean
  readonly isIgnored?: boolean
}
