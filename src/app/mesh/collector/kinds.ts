/** What a collector can be told to deliver alone. */
export const COLLECTED_KINDS = ['messages', 'positions', 'telemetry', 'nodes', 'routes', 'other'] as const
export type CollectedKind = (typeof COLLECTED_KINDS)[number]
