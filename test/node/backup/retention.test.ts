import type { Backup, BackupKind } from '../../../src/app/system/backup/backup.ts'
import { expect, test } from 'vitest'
import { expiredBackups } from '../../../src/app/system/backup/retention.ts'

const DAY = 86_400_000

function backupAt(createdAt: number, kind: BackupKind = 'scheduled'): Backup {
  const name = new Date(createdAt).toISOString().slice(0, 16)
  return { name, createdAt, kind, appVersion: '1', schema: '0000_x', tables: 1, rows: 1, sizeBytes: 1 }
}

type Keep = Parameters<typeof expiredBackups>[1]
const kept = (all: readonly Backup[], keep: Keep, now: number, timeZone = 'UTC') => {
  const expired = expiredBackups(all, keep, now, timeZone)
  return all.map(({ name }) => name).filter((name) => !expired.includes(name))
}

test('of two years of backups, 7 daily, 4 weekly and 12 monthly ones remain, however often they are pruned', () => {
  const keep = { maxBackups: 7, keepWeekly: 4, keepMonthly: 12 }
  const first = Date.UTC(2024, 0, 1, 3)
  let all: Backup[] = []
  let day = first
  for (; day <= Date.UTC(2026, 0, 15, 3); day += DAY) {
    all = [...all, backupAt(day)]
    const names = kept(all, keep, day + 1000)
    all = all.filter(({ name }) => names.includes(name))
  }
  expect(all.map(({ name }) => name.slice(0, 10))).toStrictEqual([
    '2025-02-28',
    '2025-03-31',
    '2025-04-30',
    '2025-05-31',
    '2025-06-30',
    '2025-07-31',
    '2025-08-31',
    '2025-09-30',
    '2025-10-31',
    '2025-11-30',
    '2025-12-28',
    '2025-12-31',
    '2026-01-04',
    '2026-01-09',
    '2026-01-10',
    '2026-01-11',
    '2026-01-12',
    '2026-01-13',
    '2026-01-14',
    '2026-01-15',
  ])
})

test('without weeks and months the newest are kept, up to the limit, and manual ones are never deleted', () => {
  const all = Array.from({ length: 10 }, (_, i) => backupAt(i * DAY, i === 0 ? 'manual' : 'scheduled'))
  const names = kept(all, { maxBackups: 2, keepWeekly: 0, keepMonthly: 0 }, 10 * DAY)
  expect(names).toStrictEqual(['1970-01-01T00:00', '1970-01-09T00:00', '1970-01-10T00:00'])
})

test('a week begins on Monday and a month on the first, in the time zone of the service', () => {
  const sunday = backupAt(Date.UTC(2026, 10, 1, 22, 30))
  const monday = backupAt(Date.UTC(2026, 10, 1, 23, 30))
  const all = [backupAt(Date.UTC(2026, 9, 31, 22, 30)), sunday, monday]
  const keep = { maxBackups: 1, keepWeekly: 2, keepMonthly: 0 }
  expect(kept(all, keep, monday.createdAt, 'Europe/Berlin')).toStrictEqual([sunday.name, monday.name])
  expect(kept(all, keep, monday.createdAt, 'UTC')).toStrictEqual([monday.name])
  const months = { maxBackups: 1, keepWeekly: 0, keepMonthly: 2 }
  expect(kept(all, months, monday.createdAt, 'America/New_York')).toStrictEqual([all[0]?.name, monday.name])
})

test('a backup dated in the future counts for no week and is deleted first', () => {
  const future = backupAt(100 * DAY)
  const all = [backupAt(DAY), backupAt(2 * DAY), future]
  expect(kept(all, { maxBackups: 1, keepWeekly: 5, keepMonthly: 5 }, 3 * DAY)).toStrictEqual([all[1]?.name])
})
