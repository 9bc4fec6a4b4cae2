import { type AnchorItem, textOf } from './line.ts'

/** Facility 13 (log audit), severity 5 (notice); RFC 5424, section 6.2.1. */
const PRIORITY = 13 * 8 + 5

/** A message by RFC 5424. `host` names this service; null: unknown. */
export function syslogMessage(item: AnchorItem, host: string | null): string {
  const time = new Date(item.kind === 'anchor' ? item.anchor.time : item.row.timestamp).toISOString()
  const name = host === null || !/^[\x21-\x7e]{1,255}$/.test(host) ? '-' : host
  return `<${PRIORITY}>1 ${time} ${name} mesh-monitoring - ${item.kind} - ${textOf(item)}`
}
