import type { AuditRow } from '../entry.ts'
import { jsonLine } from '../export.ts'

/** The end of the sealed log at a time, in milliseconds. */
export type Anchor = { readonly time: number; readonly id: number; readonly hash: string }

/** An item to deliver: an anchor, or an entry with its hashes. */
export type AnchorItem =
  | { readonly kind: 'anchor'; readonly anchor: Anchor }
  | { readonly kind: 'entry'; readonly row: AuditRow }

/**
 * The maximum number of characters of an entry. The details of a longer one are left out, but its hash still covers
 * them.
 */
export const MAX_OF_ENTRY = 8000

const LINE = /\bmesh-audit-anchor \S+Z (\d{1,15}) ([0-9a-f]{64})\b/

/** One line of ASCII. An entry is JSON as in an export. */
export function textOf(item: AnchorItem): string {
  if (item.kind === 'anchor') {
    const { time, id, hash } = item.anchor
    return `mesh-audit-anchor ${new Date(time).toISOString()} ${id} ${hash}`
  }
  const whole = ascii(jsonLine(item.row).trimEnd())
  if (whole.length <= MAX_OF_ENTRY) return whole
  const { id, timestamp, userId, action, resource, previousHash, hash } = item.row
  return JSON.stringify({ id, timestamp, userId, action, resource, details: null, previousHash, hash })
}

// For other characters syslog would require a byte order mark, which breaks the JSON.
function ascii(json: string): string {
  return json.replaceAll(/[^\x20-\x7e]/g, (c) => String.raw`\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The entry and hash named by a line that was delivered, with anything before it; null: none. */
export function readAnchorLine(line: string): { readonly id: number; readonly hash: string } | null {
  const [, id, hash] = LINE.exec(line) ?? []
  if (id !== undefined && hash !== undefined) return { id: Number(id), hash }
  const at = line.indexOf('{"id":')
  if (at === -1) return null
  try {
    const entry: unknown = JSON.parse(line.slice(at))
    const { id, hash } = Object(entry)
    return Number.isSafeInteger(id) && /^[0-9a-f]{64}$/.test(String(hash)) ? { id, hash: String(hash) } : null
  } catch {
    return null
  }
}
