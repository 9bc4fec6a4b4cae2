/** What is looked for in the mesh. */
export const FINDING_RULES = [
  'one_way',
  'depends',
  'routers',
  'chatty',
  'battery',
  'restarts',
  'clock',
  'key',
  'hops',
  'busy',
  'only_gateway',
  'region_silent',
  'firmware',
  'precise',
] as const

export type FindingRule = (typeof FINDING_RULES)[number]
