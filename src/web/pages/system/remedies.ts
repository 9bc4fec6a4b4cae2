import type { SystemProblem } from '../../../shared/system-problems.ts'
import { systemTexts } from '../../strings/system/system.ts'

/** Where something can be done about a problem. */
export const REMEDIES: Readonly<Partial<Record<SystemProblem, readonly [path: string, name: string]>>> = {
  disk_full: ['/backups', systemTexts.openBackups],
  disk_filling: ['/settings', systemTexts.openSettings],
  retention_late: ['/settings', systemTexts.openSettings],
  retention_short: ['/settings', systemTexts.openSettings],
  backup_failed: ['/backups', systemTexts.openBackups],
  restore_failed: ['/backups', systemTexts.openBackups],
  backup_overdue: ['/backups', systemTexts.openBackups],
  backup_off: ['/backups', systemTexts.openBackups],
  alerts_waiting: ['/alerts', systemTexts.openAlerts],
}
