import type { Settings } from '../../../app/settings/settings.ts'

export const settings = {
  title: 'Settings',
  saved: 'Settings saved',
  readOnly: 'You can read the settings but not change them.',
  retention: 'How long data is kept',
  retentionHelp: 'Older data is deleted gradually. Accounts, nodes and the audit log are kept.',
  activity: 'Activity',
  names: {
    telemetryRetentionDays: 'Single measurements',
    telemetryHourlyRetentionDays: 'Hourly summaries of measurements',
    packetRetentionDays: 'Packet log',
    positionRetentionDays: 'Tracks of nodes',
    messageRetentionDays: 'Messages',
    nodeActiveSeconds: 'A node is active if heard in the last',
  } satisfies Partial<Record<keyof Settings, string>>,
  other: 'Other',
  days: 'days',
  minutes: 'minutes',
} as const
