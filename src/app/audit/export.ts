import type { Store } from '../../db/store.ts'
import { type AuditEntry, type AuditFilters, listAudit } from './audit.ts'

export const EXPORT_FORMATS = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

const COLUMNS = ['id', 'timestamp', 'userId', 'username', 'action', 'resource', 'details', 'ip', 'requestId'] as const

const PAGE = 500

/** All matching entries, newest first, a page of rows in memory at a time. */
export function exportAudit(store: Store, filters: AuditFilters, format: ExportFormat): Response {
  const line = format === 'csv' ? csvLine : (entry: AuditEntry) => `${JSON.stringify(entry)}\n`
  const utf8 = new TextEncoder()
  let cursor: number | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (format === 'csv') controller.enqueue(utf8.encode(`${COLUMNS.join(',')}\r\n`))
    },
    pull: async (controller) => {
      const { entries, nextCursor } = await listAudit(store, filters, { limit: PAGE, cursor })
      if (entries.length > 0) controller.enqueue(utf8.encode(entries.map(line).join('')))
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

function csvLine(entry: AuditEntry): string {
  const cells = COLUMNS.map((column) => {
    const value = entry[column]
    return csvCell(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''))
  })
  return `${cells.join(',')}\r\n`
}

/**
 * RFC 4180, and a cell that a spreadsheet would run as a formula begins with an apostrophe (OWASP, CSV injection: with
 * some keyboards the full-width signs begin one too).
 */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
