export * from './schema/accounts.ts'
export * from './schema/alerts.ts'
export * from './schema/automation.ts'
export * from './schema/channels.ts'
export * from './schema/collector.ts'
export * from './schema/device-config.ts'
export * from './schema/factors.ts'
export * from './schema/identities.ts'
export * from './schema/messages.ts'
export * from './schema/nodes.ts'
export * from './schema/packets.ts'
export * from './schema/row-counts.ts'
export * from './schema/settings.ts'
export * from './schema/sources.ts'
export * from './schema/telemetry.ts'
export * from './schema/text-indexes.ts'
export * from './schema/topology.ts'
export * from './schema/traffic-hours.ts'

// Every timestamp is an integer: milliseconds since the Unix epoch.

/** Tables that a backup leaves out: a restored database starts with what its migrations put there. */
export const EPHEMERAL_TABLES = [
  'sessions',
  'provider_sessions',
  'provider_logouts',
  'invitations',
  'rate_limits',
  'revisions',
  'collector_outbox',
  'clock_marks',
  'text_indexes',
  'alert_marks',
  'alert_deliveries',
  'alert_delivery_items',
] as const
