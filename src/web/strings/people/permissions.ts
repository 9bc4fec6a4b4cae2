import type { Action, Resource } from '../../../shared/access/resources.ts'
import type { SpecialScope } from '../../../shared/access/token-scopes.ts'

/** In the order in which people read them. */
export const resources: Readonly<Record<Resource, string>> = {
  dashboard: 'Dashboard',
  nodes: 'Nodes and map',
  messages: 'Messages',
  info: 'Radio data',
  automation: 'Automation',
  configuration: 'Radio configuration',
  settings: 'Settings',
}

export const actions = { read: 'read', write: 'write' } as const satisfies Record<Action, string>

export const scopes = {
  ingest: 'Deliver what a collector hears',
  backup: 'Make and fetch backups',
  metrics: 'Read metrics',
} as const satisfies Record<SpecialScope, string>
