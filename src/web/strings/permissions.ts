import type { Action, Resource } from '../session.ts'

export const resources = {
  dashboard: 'Dashboard',
  nodes: 'Nodes and map',
  messages: 'Messages',
  settings: 'Settings',
  configuration: 'Radio configuration',
  info: 'Radio data',
  automation: 'Automation',
} as const satisfies Record<Resource, string>

export const actions = { read: 'read', write: 'write' } as const satisfies Record<Action, string>

export const scopes = {
  ingest: 'Deliver what a collector hears',
  backup: 'Make and fetch backups',
  metrics: 'Read metrics',
} as const
