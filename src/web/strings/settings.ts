import type { Settings } from '../../app/settings/settings.ts'

export const settings = {
  title: 'Settings',
  saved: 'Settings saved',
  readOnly: 'You may read the settings, not change them.',
  retention: 'How long data is kept',
  retentionHelp: 'Older data is deleted bit by bit. Accounts, nodes and the audit log are kept.',
  activity: 'Activity',
  names: {
    telemetryRetentionDays: 'Measurements, one by one',
    telemetryHourlyRetentionDays: 'Measurements by the hour',
    packetRetentionDays: 'The packet log',
    positionRetentionDays: 'Tracks of nodes',
    messageRetentionDays: 'Messages',
    nodeActiveSeconds: 'A node is active when heard in the last',
  } satisfies Partial<Record<keyof Settings, string>>,
  other: 'Other',
  days: 'days',
  minutes: 'minutes',
} as const
