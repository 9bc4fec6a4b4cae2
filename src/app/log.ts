import { failedQuery } from './query-error.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export const LOG_FORMATS = ['pretty', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

type Fields = Record<string, unknown>

/** Structured log: a fixed message and fields. Never a password, token, code, verifier, secret, cookie or e-mail. */
export type Log = Record<LogLevel, (message: string, fields?: Fields) => void>

/** A log that writes one line an entry, whatever the fields hold. */
export function createLog(options: {
  level: LogLevel
  format: LogFormat
  now(): number
  write(line: string): void
}): Log {
  const least = LOG_LEVELS.indexOf(options.level)
  const line = options.format === 'json' ? jsonLine : prettyLine
  const at = (level: LogLevel) => (message: string, fields?: Fields) => {
    if (LOG_LEVELS.indexOf(level) >= least) options.write(line(level, options.now(), message, fields ?? {}))
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(level: LogLevel, now: number, message: string, fields: Fields): string {
  return JSON.stringify({ time: new Date(now).toISOString(), level, message, ...plainFields(fields) })
}

function prettyLine(level: LogLevel, now: number, message: string, fields: Fields): string {
  const tail = Object.entries(plainFields(fields)).map(
    ([key, value]) =>
      `${key}=${typeof value === 'string' && /^[\w.:/@!-]+$/.test(value) ? value : JSON.stringify(value)}`,
  )
  return [new Date(now).toISOString(), level.toUpperCase().padEnd(5), printable(message), ...tail].join(' ')
}

function plainFields(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? errorText(value) : value]),
  )
}

function errorText(error: Error): string {
  const cause = error.cause instanceof Error ? ` <- ${errorText(error.cause)}` : ''
  const query = failedQuery(error)
  return `${query === null ? (error.stack ?? String(error)) : `Failed query: ${query}`}${cause}`
}

function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what must not reach a terminal
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}
