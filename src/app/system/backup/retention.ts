import type { Backup } from './backup.ts'
import type { BackupSettings } from './schedule.ts'
import { DAY_MS } from '../../../shared/time.ts'

/** A backup, or a copy of one. */
type Kept = Pick<Backup, 'name' | 'kind' | 'createdAt'>
type Keep = Pick<BackupSettings, 'maxBackups' | 'keepWeekly' | 'keepMonthly'>

/**
 * Names of scheduled backups that no rule keeps: they are neither among the newest `maxBackups`, nor the newest of one
 * of the latest weeks and months with backups. A backup from the future comes from a wrong clock. It is deleted first
 * and counts for no week.
 */
export function expiredBackups(backups: readonly Kept[], keep: Keep, now: number, timeZone: string): string[] {
  const age = ({ createdAt }: Kept) => (createdAt > now ? Infinity : now - createdAt)
  const scheduled = backups.filter(({ kind }) => kind === 'scheduled').toSorted((a, b) => age(a) - age(b))
  const past = scheduled.filter(({ createdAt }) => createdAt <= now)
  const day = dayIn(timeZone)
  const kept = new Set([
    ...scheduled.slice(0, keep.maxBackups),
    ...newestOfEach(past, (backup) => weekOf(day(backup.createdAt))).slice(0, keep.keepWeekly),
    ...newestOfEach(past, (backup) => day(backup.createdAt).slice(0, 7)).slice(0, keep.keepMonthly),
  ])
  return scheduled.filter((backup) => !kept.has(backup)).map(({ name }) => name)
}

/** The newest backup of each period. `backups`: newest first. */
function newestOfEach(backups: readonly Kept[], period: (backup: Kept) => string | number): Kept[] {
  const seen = new Set<string | number>()
  return backups.filter((backup) => {
    const one = period(backup)
    const isFirst = !seen.has(one)
    seen.add(one)
    return isFirst
  })
}

/** The date of a moment, YYYY-MM-DD. */
function dayIn(timeZone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone })
  return (at) => format.format(at)
}

/** Weeks since the first Monday of 1970, the fifth of January. */
function weekOf(day: string): number {
  return Math.floor((Date.parse(day) / DAY_MS - 4) / 7)
}
