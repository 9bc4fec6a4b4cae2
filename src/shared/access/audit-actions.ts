/** Everything that is recorded, and the resource it belongs to. */
export const AUDIT_ACTIONS = {
  login_success: 'auth',
  login_failed: 'auth',
  logout: 'auth',
  password_changed: 'auth',
  session_revoked: 'auth',
  second_factor_added: 'auth',
  second_factor_removed: 'auth',
  recovery_codes_created: 'auth',
  reauthenticated: 'auth',
  oidc_login_failed: 'auth',
  user_created: 'users',
  oidc_user_created: 'users',
  user_updated: 'users',
  user_deleted: 'users',
  admin_status_changed: 'users',
  admin_bootstrapped: 'users',
  password_reset: 'users',
  second_factor_reset: 'users',
  permissions_updated: 'permissions',
  token_created: 'tokens',
  token_revoked: 'tokens',
  settings_updated: 'settings',
  public_access_updated: 'permissions',
  view_started: 'permissions',
  system_restored: 'system_backup',
  restore_reapplied: 'system_backup',
  restore_accepted: 'system_backup',
  backup_created: 'system_backup',
  backup_failed: 'system_backup',
  backup_deleted: 'system_backup',
  backup_downloaded: 'system_backup',
  backup_settings_updated: 'system_backup',
  node_updated: 'nodes',
  node_deleted: 'nodes',
  message_sent: 'messages',
  configuration_updated: 'configuration',
  automation_updated: 'automation',
  alert_rule_updated: 'alerts',
  alert_destination_updated: 'alerts',
  alert_acknowledged: 'alerts',
  audit_trimmed: 'audit',
} as const

export type AuditAction = keyof typeof AUDIT_ACTIONS
export type AuditResource = (typeof AUDIT_ACTIONS)[AuditAction]

/** Of an export of the audit log. */
export const EXPORT_FORMATS = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]
