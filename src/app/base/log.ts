import { failedQuery } from './query-error.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export const LOG_FORMATS = ['pretty', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** Fields cannot replace the entry's own keys, because they may contain text from outsiders. */
type Fields = Record<string, unknown> & { readonly time?: never; readonly level?: never; readonly message?: never }

/** Structured log: a fixed message and fields. Never a password, token, code, verifier, secret, cookie or e-mail. */
export type Log = Record<LogLevel, (message: string, fields?: Fields) => void>

/**
 * A log that writes each entry as one line, even if fields contain line breaks.
 * Decision: docs/decisions/short-decisions.md#logger-metrics-registry-router-of-descriptions-and-load-generator-are-our-own
 */
export function createLog(options: {
  level: LogLevel
  format: LogFormat
  now(): number
  write(line: string, level: LogLevel): void
}): Log {
  const least = LOG_LEVELS.indexOf(options.level)
  const line = options.format === 'json' ? jsonLine : prettyLine
  const at = (level: LogLevel) => (message: string, fields?: Fields) => {
    if (LOG_LEVELS.indexOf(level) >= least) options.write(line(level, options.now(), message, fields ?? {}), level)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(level: LogLevel, now: number, message: string, fields: Fields): string {
  const own = { time: new Date(now).toISOString(), level, message }
  const entries = Object.entries({ ...own, ...fields, ...own })
  const pairs = entries.map(([key, value]) => `${JSON.stringify(key)}:${jsonText(value)}`)
  return escapeUnprintable(`{${pairs.join(',')}}`)
}

function prettyLine(level: LogLevel, now: number, message: string, fields: Fields): string {
  const tail = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' && /^[\w.:/@!-]+$/.test(value) ? value : jsonText(value)}`,
  )
  return escapeUnprintable([new Date(now).toISOString(), level.toUpperCase().padEnd(5), message, ...tail].join(' '))
}

/** JSON of any value. Never throws: otherwise logging an error could cause another one. */
function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value, plain) ?? 'null'
  } catch {
    return '"(not shown: no JSON)"'
  }
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return value instanceof Error ? errorText(value) : value
}

function errorText(error: Error, depth = 0): string {
  const cause = error.cause instanceof Error && depth < 5 ? ` <- ${errorText(error.cause, depth + 1)}` : ''
  const query = failedQuery(error)
  return `${query === null ? (error.stack ?? String(error)) : `Failed query: ${query}`}${cause}`
}

// Control characters, line separators and direction marks: they could move a cursor or make one entry look like two.
function escapeUnprintable(line: string): string {
  return line.replace(
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
