/** The processes that share a data directory. */
export interface Instances {
  /** The one with the lease first; at most a hundred. */
  list(): readonly InstanceInfo[]
}

export type InstanceInfo = {
  /** A short name, new at each start. */
  readonly id: string
  /** The process that answers. */
  readonly isSelf: boolean
  /** It has the radios and the schedules. */
  readonly hasLease: boolean
  /** When it last showed that it runs. */
  readonly seenAt: number
}
