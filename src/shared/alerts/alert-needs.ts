import type { Resource } from '../access/resources.ts'

/** What the owner of a rule of each kind needs: read access to these resources, or the rights of an administrator. */
export const ALERT_NEEDS = {
  node_silent: ['nodes'],
  metric: ['nodes', 'info'],
  node_new: ['nodes'],
  node_restarted: ['nodes', 'info'],
  area: ['nodes'],
  message: ['messages'],
  key: ['nodes'],
  finding: ['nodes', 'info'],
  link: ['info'],
  backup: 'admin',
  retention: 'admin',
  sign_in: [],
} as const satisfies Readonly<Record<string, readonly Resource[] | 'admin'>>
