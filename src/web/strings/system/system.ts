import { catalog } from '../../language.ts'
import { numberFormat, quantity } from '../quantity.ts'

export const systemTexts = catalog('systemTexts', {
  title: 'System',
  noProblems: 'Nothing needs attention',
  noProblemsHelp: 'Storage, retention, backups, links, queues and instances were looked at.',
  problems: 'What needs attention',
  openBackups: 'Open backups',
  openSettings: 'Open settings',
  openAlerts: 'Open alerts',
  openAudit: 'Open audit log',
  storage: 'Storage',
  database: 'Database',
  limit: 'Limit of the platform',
  usedOf: (free: string, total: string) => `${free} of ${total} free`,
  room: 'Room for new data',
  growth: 'Change per day',
  shrinks: (size: string) => `${size} less room`,
  grows: (size: string) => `${size} more room`,
  steady: 'none',
  fullIn: 'Full in',
  notSoon: 'not within ten years',
  days: (n: number) => (n < 1 ? 'less than a day' : quantity(n, 'day', 'days')),
  forecastLater: 'known after a day of measuring',
  week: 'Room in the last week',
  retention: 'Retention',
  retentionHelp: 'How long data is kept, and whether it is deleted in time.',
  kept: (days: number) => quantity(days, 'day', 'days'),
  keptShorter: (days: number, set: number, reason: 'disk' | 'rows') =>
    `${quantity(days, 'day', 'days')} of ${set}: ${reason === 'disk' ? 'the disk has no room for more' : 'the service keeps no more rows'}`,
  late: (time: string) => `deleted ${time} late`,
  backups: 'Backups',
  last: 'Latest',
  next: 'Next',
  off: 'no schedule',
  lastRun: 'Last scheduled run',
  succeeded: 'succeeded',
  failed: (why: string) => `failed: ${why}`,
  never: 'not yet',
  all: 'All together',
  together: (n: number, size: string) => `${quantity(n, 'backup', 'backups')}, ${size}`,
  running: 'A backup is being made.',
  links: 'Links',
  noLinks: 'No radio or broker is configured.',
  noLinksHere: 'Radios connect to a Node service, which delivers the received packets here.',
  lastHeard: 'last heard',
  delivery: (target: string) => `Delivery to ${target}`,
  lastDelivery: 'last delivery',
  queues: 'Queues',
  ingest: 'Heard, not stored yet',
  sending: 'To be sent by a radio',
  alerts: 'Alert messages',
  collector: 'To be delivered',
  anchor: 'Audit log, to be anchored',
  atLeast: (n: number, most: number) => (n >= most ? `${numberFormat.format(most)} or more` : numberFormat.format(n)),
  instances: 'Instances',
  onDuty: 'has the radios and the schedules',
  standby: 'ready to take over',
  thisOne: 'answers this page',
  seen: 'seen',
  jobs: 'Jobs of the platform',
  service: 'Service',
  version: 'Version',
  started: 'Started',
  clock: 'Clock',
  signIns: 'Failed sign-ins, last 24 hours',
  release: 'Newer version',
  claims: (host: string, version: string) => `${version}, says ${host}`,
  newest: (host: string) => `none, says ${host}`,
  unasked: (host: string) => `${host} is asked soon`,
  noAnswer: (host: string, why: string) => `${host}: ${why}`,
  unproven: 'Nothing proves what it says.',
  notAsked: 'nobody is asked',
})

/** By the tables of the API. */
export const tableNames = catalog('tableNames', {
  telemetry: 'Single measurements',
  telemetry_hourly: 'Hourly summaries',
  positions: 'Tracks of nodes',
  messages: 'Messages',
  packets: 'Packet log',
})

export const jobNames = catalog('jobNames', {
  upkeep: 'Roll-ups and limits',
  retention: 'Deleting old data',
  survey: 'Findings, coverage, topology',
})

export const clockStates = catalog('clockStates', {
  confirmed: 'right',
  ahead: 'ahead of the stored times',
  behind: 'behind the stored times',
})

const nameOfTable = (table: string): string => Object.entries(tableNames).find(([name]) => name === table)?.[1] ?? table

/** What is wrong, and what to do about it. */
export const problemTexts = catalog('problemTexts', {
  disk_full: () => 'The disk is full: packets are not stored. Delete backups, keep data for fewer days, or free space.',
  disk_filling: () => 'The room for new data ends soon. Keep data for fewer days, or make more room.',
  retention_late: (table: string) =>
    `${nameOfTable(table)}: old data is deleted more than a day later than the settings say.`,
  retention_short: (table: string) =>
    `${nameOfTable(table)}: kept for fewer days than the settings say. Make more room, or keep other data for fewer days.`,
  backup_failed: () => 'The last scheduled backup failed.',
  restore_failed: () => 'A backup could not be restored: the database is as it was.',
  backup_overdue: () => 'No scheduled backup succeeded for more than a day.',
  backup_off: () => 'There is no recent backup, and no schedule makes any.',
  link_down: (name: string) => `${name} is not connected.`,
  collector_failing: (target: string) => `Nothing can be delivered to ${target}.`,
  anchor_failing: () => 'The audit log cannot be delivered to the address of AUDIT_ANCHOR_URL.',
  alerts_waiting: () => 'Alert messages could not be sent for a quarter of an hour.',
  clock_wrong: () => 'The clock of this machine may be wrong. Old data is kept until another clock confirms it.',
  nobody_on_duty: () => 'No instance has the radios and the schedules.',
  job_late: (job: string) =>
    `${Object.entries(jobNames).find(([name]) => name === job)?.[1] ?? job}: the last run failed or is late.`,
  release_newer: (version: string) => `A newer version may be available: ${version}.`,
})
