/** What a node reports about itself and can change. `restarted`: its uptime fell; the values are in seconds. */
export const CHANGED_FIELDS = [
  'longName',
  'shortName',
  'role',
  'hwModel',
  'firmwareVersion',
  'publicKey',
  'restarted',
] as const

export type ChangedField = (typeof CHANGED_FIELDS)[number]
