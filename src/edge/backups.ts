import type { Backups } from '../app/system/backup/backup.ts'
import type { EdgeNeeds } from './backup/backups.ts'

/** The backups in a bucket. Their code is loaded when it is needed: most isolates answer other requests. */
export function lazyBackups(needs: EdgeNeeds): Backups {
  const load = async () => (await import('./backup/backups.ts')).edgeBackups(needs)
  return {
    list: async () => (await load()).list(),
    find: async (name) => (await load()).find(name),
    running: async () => (await load()).running(),
    create: async (kind, record, by) => (await load()).create(kind, record, by),
    remove: async (name, record) => (await load()).remove(name, record),
    verify: async (name) => (await load()).verify(name),
    download: async (name) => (await load()).download(name),
    nextRun: async (schedule) => (await load()).nextRun(schedule),
    reschedule: () => {},
  }
}
