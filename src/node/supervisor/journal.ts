import { fstatSync } from 'node:fs'
import type { LogLevel } from '../../app/base/log.ts'

/** The priorities of the journal, which are those of syslog: sd-daemon(3). */
const PRIORITIES = { error: 3, warn: 4, info: 6, debug: 7 } as const satisfies Record<LogLevel, number>

/**
 * How text is written to a descriptor: if the journal of systemd reads it, each line begins with its priority, and
 * otherwise the text stays as it is. JOURNAL_STREAM names what the journal reads, because a child process whose output
 * goes elsewhere has that variable as well: systemd.exec(5).
 */
export function forJournal(fd: number, env: NodeJS.ProcessEnv): (level: LogLevel, text: string) => string {
  if (!isJournal(fd, env['JOURNAL_STREAM'] ?? '')) return (_level, text) => text
  return (level, text) => text.replaceAll(/^(?=.)/gm, `<${PRIORITIES[level]}>`)
}

function isJournal(fd: number, stream: string): boolean {
  if (stream === '') return false
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    // A closed descriptor.
    return false
  }
}
