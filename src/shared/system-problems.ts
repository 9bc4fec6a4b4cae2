import { namesOf } from './names.ts'

/** What the page System can find wrong, with its severity. */
export const SYSTEM_PROBLEMS = {
  disk_full: 'error',
  disk_filling: 'warning',
  retention_late: 'warning',
  retention_short: 'warning',
  backup_failed: 'error',
  restore_failed: 'error',
  backup_overdue: 'error',
  backup_off: 'warning',
  link_down: 'error',
  collector_failing: 'error',
  anchor_failing: 'warning',
  alerts_waiting: 'warning',
  clock_wrong: 'warning',
  nobody_on_duty: 'error',
  job_late: 'error',
  release_newer: 'info',
} as const satisfies Record<string, 'error' | 'warning' | 'info'>

export type SystemProblem = keyof typeof SYSTEM_PROBLEMS
export const SYSTEM_PROBLEM_NAMES = namesOf(SYSTEM_PROBLEMS)
