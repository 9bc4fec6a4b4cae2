/** Columns of text that hold JSON, as `table.column`. */
export const JSON_COLUMNS: ReadonlySet<string> = new Set([
  'alert_destinations.settings',
  'alert_rules.rule',
  'api_tokens.scopes',
  'audit_log.details',
  'automation_runs.packets',
  'automations.rule',
  'device_config.secrets',
  'device_config.values',
  'device_config_changes.differing',
  'device_config_changes.fields',
  'packets.payload',
  'passkeys.transports',
  'provider_roles.permissions',
  'settings.value',
  'traceroutes.route',
  'users.channels',
])
