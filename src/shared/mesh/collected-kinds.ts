/** Kinds of data to which a collector can be limited. */
export const COLLECTED_KINDS = ['messages', 'positions', 'telemetry', 'nodes', 'routes', 'other'] as const
export type CollectedKind = (typeof COLLECTED_KINDS)[number]
