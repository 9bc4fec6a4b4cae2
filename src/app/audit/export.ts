import type { Store } from '../../db/store.ts'
import { nextTurn } from '../http/next-turn.ts'
import { type AuditFilters, type AuditRow, listRows } from './audit.ts'

export const EXPORT_FORMATS = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

const COLUMNS = ['id', 'timestamp', 'userId', 'username', 'action', 'resource', 'details', 'ip', 'requestId'] as const

const PAGE = 500

/** All matching entries, newest first, a page of rows in memory at a time. */
export function exportAudit(store: Store, filters: AuditFilters, format: ExportFormat): Response {
  const line = format === 'csv' ? csvLine : jsonLine
  const utf8 = new TextEncoder()
  let cursor: number | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (format === 'csv') controller.enqueue(utf8.encode(`${COLUMNS.join(',')}\r\n`))
    },
    pull: async (controller) => {
      await nextTurn()
      const { rows, nextCursor } = await listRows(store, filters, { limit: PAGE, cursor })
      if (rows.length > 0) controller.enqueue(utf8.encode(rows.map(line).join('')))
      cursor = nextCursor ?? undefined
      if (nextCursor === null) controller.close()
    },
  })
  return new Response(body, {
    headers: {
      'Content-Type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
      'Content-Disposition': `attachment; filename="audit.${format}"`,
    },
  })
}

// The details go in as they are stored: parsing them only to write them again would double the cost of a line.
function jsonLine(row: AuditRow): string {
  const { details, ip, requestId, ...rest } = row
  const head = JSON.stringify(rest).slice(0, -1)
  return `${head},"details":${oneLine(details)},"ip":${JSON.stringify(ip)},"requestId":${JSON.stringify(requestId)}}\n`
}

// JSON may have line breaks between its parts; what the service writes has none.
function oneLine(json: string): string {
  return /[\r\n]/.test(json) ? JSON.stringify(JSON.parse(json)) : json
}

function csvLine(row: AuditRow): string {
  return `${COLUMNS.map((column) => csvCell(String(row[column] ?? ''))).join(',')}\r\n`
}

/**
 * RFC 4180, and a cell that a spreadsheet would run as a formula begins with an apostrophe (OWASP, CSV injection: with
 * some keyboards the full-width signs begin one too).
 */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
