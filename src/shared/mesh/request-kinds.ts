/** What a node can be asked for, in the firmware's own words for measurements. */
export const REQUEST_KINDS = [
  'position',
  'node-info',
  'device',
  'environment',
  'air-quality',
  'power',
  'health',
  'local-stats',
  'host',
] as const
export type RequestKind = (typeof REQUEST_KINDS)[number]
