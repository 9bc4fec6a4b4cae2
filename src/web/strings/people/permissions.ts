import { catalog } from '../../language.ts'
import type { Action, Resource } from '../../../shared/access/resources.ts'
import type { SpecialScope } from '../../../shared/access/token-scopes.ts'

/** In the order in which people read them. */
export const resources: Readonly<Record<Resource, string>> = catalog('resources', {
  dashboard: 'Dashboard',
  nodes: 'Nodes and map',
  messages: 'Messages',
  info: 'Radio data',
  automation: 'Automation',
  configuration: 'Radio configuration',
  settings: 'Settings',
})

export const actions = catalog('actions', { read: 'read', write: 'write' } satisfies Record<Action, string>)

export const scopes = catalog('scopes', {
  ingest: 'Deliver what a collector hears',
  radio: 'Send with the radios of a collector',
  backup: 'Make and fetch backups',
  metrics: 'Read metrics',
} satisfies Record<SpecialScope, string>)
