import { AppError, DISK_FULL } from '../../app/http/errors.ts'
import type { Log, LogLevel } from '../../app/base/log.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import { systemClock } from '../clock.ts'
import { isBrokenDisk, isDiskFull } from './error-code.ts'

const QUIET_MS = MINUTE_MS

/** A log that a full disk does not flood. */
export type FullDiskLog = Log & {
  /** To be told at each look whether the disk has room. Logs when that changes. */
  noteRoom(
    hasRoom: boolean,
    fields: { readonly freeBytes: number; readonly file: string; readonly remedy: string },
  ): void
}

/**
 * While the disk is full, all that fails because of it is one entry a minute, whoever logs it, and the first one has the
 * stack trace. The end is one entry with the number of those that were left out. `monotonic` is in milliseconds.
 */
export function calmWhileFull(log: Log, monotonic: () => number = systemClock.monotonic): FullDiskLog {
  let isFull = false
  let isAnnounced = false
  let announcedAt = Number.NEGATIVE_INFINITY
  let failedAt = Number.NEGATIVE_INFINITY
  let writtenAt = Number.NEGATIVE_INFINITY
  let hasTrace = false
  let suppressed = 0

  const isQuiet = (since: number) => monotonic() - since < QUIET_MS
  // SQLite calls it an input or output error when its shared memory finds no room.
  const isAbout = (value: unknown) => isFullDiskError(value) || (isFull && isBrokenDisk(value))
  const at =
    (level: LogLevel): Log[LogLevel] =>
    (message, fields = {}) => {
      if (!Object.values(fields).some(isAbout)) return log[level](message, fields)
      failedAt = monotonic()
      if (isQuiet(writtenAt)) {
        suppressed += 1
        return
      }
      writtenAt = failedAt
      const shown = hasTrace ? withoutTraces(fields, isAbout) : fields
      hasTrace = true
      log[level](message, { ...shown, ...(suppressed > 0 && { suppressed }) })
    }
  const end = (freeBytes: number) => {
    log.info('The disk has space again', { freeBytes, suppressed })
    isAnnounced = false
    hasTrace = false
    suppressed = 0
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    noteRoom(hasRoom, fields) {
      isFull = !hasRoom
      if (isFull && !isAnnounced && !isQuiet(announcedAt)) {
        isAnnounced = true
        announcedAt = writtenAt = monotonic()
        log.error('Disk full: packets are not stored', fields)
      } else if (hasRoom && (isAnnounced || (hasTrace && !isQuiet(failedAt)))) end(fields.freeBytes)
    },
  }
}

function isFullDiskError(value: unknown): boolean {
  return isDiskFull(value) || (value instanceof AppError && value.message === DISK_FULL.text)
}

/** Each error with its own words only. */
function withoutTraces(fields: object, isAbout: (value: unknown) => boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]: [string, unknown]) => [name, isAbout(value) ? wordsOf(value) : value]),
  )
}

/** The words of the innermost cause: those around it may be a query. */
function wordsOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? wordsOf(error.cause) : String(error)
}
