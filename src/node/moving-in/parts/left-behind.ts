import type { Loss } from '../../../shared/moving-in.ts'
import type { Job } from '../job.ts'
import { flagIn, integerIn, type Row, textIn } from '../source/row.ts'

/** Counts, with their owners, what no import can take along. */
export function countLeftBehind(job: Job): void {
  const { source, tally } = job
  const names = new Map(
    Array.from(source.rows('users', ['id', 'username']), (row) => [integerIn(row, 'id'), textIn(row, 'username')]),
  )
  const ownerOf = (row: Row, column = 'user_id') => names.get(integerIn(row, column)) ?? 'nobody'
  for (const row of source.rows('api_tokens', ['user_id', 'name', 'is_active'])) {
    if (flagIn(row, 'is_active')) tally.lost('api_tokens', `${ownerOf(row)}: ${textIn(row, 'name') ?? 'API token'}`)
  }
  for (const row of source.rows('sessions', ['sess'])) {
    const owner = names.get(ownerOfSession(textIn(row, 'sess')))
    if (owner !== undefined) tally.lost('sessions', owner)
  }
  const byOwner: readonly (readonly [string, Loss])[] = [
    ['push_subscriptions', 'push_subscriptions'],
    ['user_notification_preferences', 'notification_preferences'],
  ]
  for (const [table, loss] of byOwner) {
    for (const row of source.rows(table, ['user_id'])) tally.lost(loss, ownerOf(row))
  }
  countAutomations(job)
  tally.lost('packet_log', null, source.count('packet_log') + source.count('mqtt_packet_log'))
  for (const prefix of ['meshcore', 'reticulum']) {
    const rows = ['nodes', 'messages', 'destinations'].reduce((n, end) => n + source.count(`${prefix}_${end}`), 0)
    tally.lost('other_protocols', prefix, rows)
  }
}

function ownerOfSession(text: string | null): number | null {
  try {
    const session: unknown = JSON.parse(text ?? '')
    const isOwned = typeof session === 'object' && session !== null && 'userId' in session
    return isOwned && typeof session.userId === 'number' ? session.userId : null
  } catch {
    return null
  }
}

/** Settings that switch something on which sends by itself, by the end of their name. */
const SWITCHES = /^(?:source:[^:]+:)?((?:auto|remoteAdmin|localStats|timerTrigger|geofenceTrigger)\w*)Enabled$/

function countAutomations({ source, tally }: Job): void {
  for (const row of source.rows('automations', ['name'])) tally.lost('automations', textIn(row, 'name'))
  for (const row of source.rows('settings', ['key', 'value'])) {
    const name = SWITCHES.exec(textIn(row, 'key') ?? '')?.[1]
    const isWhole = name !== undefined && WHOLE.has(name)
    if (isWhole && textIn(row, 'value') === 'true') tally.lost('automations', name)
  }
}

/** The others only say how one of these works. */
const WHOLE: ReadonlySet<string> = new Set([
  'autoAck',
  'autoAnnounce',
  'autoWelcome',
  'autoResponder',
  'autoTimeSync',
  'autoFavorite',
  'autoKeyManagement',
  'autoDeleteByDistance',
  'autoHeapManagement',
  'autoPing',
  'autoTraceroute',
  'remoteAdminScanner',
])
