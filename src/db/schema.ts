export * from './schema/accounts/accounts.ts'
export * from './schema/accounts/factors.ts'
export * from './schema/accounts/identities.ts'
export * from './schema/accounts/letters.ts'
export * from './schema/alerts.ts'
export * from './schema/automation.ts'
export * from './schema/copies.ts'
export * from './schema/derived/retention-plans.ts'
export * from './schema/derived/row-counts.ts'
export * from './schema/derived/text-indexes.ts'
export * from './schema/derived/traffic-hours.ts'
export * from './schema/idempotency.ts'
export * from './schema/mesh/boards.ts'
export * from './schema/mesh/channels.ts'
export * from './schema/mesh/collector.ts'
export * from './schema/mesh/connections.ts'
export * from './schema/mesh/device-config.ts'
export * from './schema/mesh/downlink.ts'
export * from './schema/mesh/findings.ts'
export * from './schema/mesh/history.ts'
export * from './schema/mesh/messages.ts'
export * from './schema/mesh/nodes.ts'
export * from './schema/mesh/overlays.ts'
export * from './schema/mesh/packet-pages.ts'
export * from './schema/mesh/packets.ts'
export * from './schema/mesh/proven-packets.ts'
export * from './schema/mesh/requests.ts'
export * from './schema/mesh/remote.ts'
export * from './schema/mesh/sources.ts'
export * from './schema/mesh/survey.ts'
export * from './schema/mesh/telemetry.ts'
export * from './schema/mesh/topology.ts'
export * from './schema/service-state.ts'
export * from './schema/settings.ts'
export * from './schema/sweeps.ts'

// Every timestamp is an integer: milliseconds since the Unix epoch.

/** Tables that a backup leaves out. After a restore they contain what the migrations put there. */
export const EPHEMERAL_TABLES = [
  'sessions',
  'provider_sessions',
  'provider_logouts',
  'provider_cutoffs',
  'invitations',
  'mail_links',
  'account_letters',
  'reset_requests',
  'rate_limits',
  'revisions',
  'collector_outbox',
  'radio_listeners',
  'taken_commands',
  'clock_marks',
  'text_indexes',
  'text_parts',
  'sweeps',
  'service_state',
  'retention_plans',
  'alert_marks',
  'alert_deliveries',
  'alert_delivery_items',
] as const
