import type { AuditRow } from './entry.ts'
import type { Ctx } from '../base/context.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { type AuditFilters, listRows } from './audit.ts'
import type { ExportFormat } from '../../shared/access/audit-actions.ts'
import { csvCell } from '../../shared/csv.ts'
import { FIRST_SHARE, nextShare, partOf } from '../base/pacing/slice-share.ts'

export const EXPORT_COLUMNS = [
  'id',
  'timestamp',
  'userId',
  'username',
  'action',
  'resource',
  'details',
  'ip',
  'requestId',
  'previousHash',
  'hash',
] as const

/** Rows of a full page. */
const PAGE = 500

/** A page of an export as text. The first one begins with the header of a CSV table. */
export function exportPage(rows: readonly AuditRow[], format: ExportFormat, isFirst: boolean): string {
  const heading = isFirst && format === 'csv' ? `${EXPORT_COLUMNS.join(',')}\r\n` : ''
  return heading + rows.map(format === 'csv' ? csvLine : jsonLine).join('')
}

/** All matching entries, newest first. One page at a time is in memory; on a slow disk a page is small. */
export function exportAudit(
  { store, now }: Pick<Ctx, 'store' | 'now'>,
  filters: AuditFilters,
  format: ExportFormat,
): Response {
  const utf8 = new TextEncoder()
  let cursor: number | undefined
  let isFirst = true
  let share = FIRST_SHARE
  const reading = new AbortController()
  const { signal } = reading
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      let text = ''
      let next: number | null = null
      // A page may be empty although more follow, and a pull that enqueues nothing is not repeated.
      do {
        await nextTurn()
        const begun = now()
        const { rows, nextCursor } = await listRows(store, filters, { limit: partOf(PAGE, share), cursor, signal })
        share = nextShare(share, now() - begun)
        text = exportPage(rows, format, isFirst)
        isFirst = false
        next = nextCursor
        cursor = nextCursor ?? undefined
      } while (text === '' && next !== null && !signal.aborted)
      if (signal.aborted) return
      if (text !== '') controller.enqueue(utf8.encode(text))
      if (next === null) controller.close()
    },
    cancel: () => reading.abort(),
  })
  return new Response(body, {
    headers: {
      'Content-Type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
      'Content-Disposition': `attachment; filename="audit.${format}"`,
    },
  })
}

/** One line of JSON. The details are copied as stored: parsing and writing them again would double the cost of a line. */
export function jsonLine(row: AuditRow): string {
  const { details, ip, requestId, previousHash, hash, ...rest } = row
  const head = JSON.stringify(rest).slice(0, -1)
  const tail = JSON.stringify({ ip, requestId, previousHash, hash }).slice(1)
  return `${head},"details":${oneLine(details)},${tail}\n`
}

// JSON may contain line breaks between its parts; the service itself writes none.
function oneLine(json: string): string {
  return /[\r\n]/.test(json) ? JSON.stringify(JSON.parse(json)) : json
}

function csvLine(row: AuditRow): string {
  return `${EXPORT_COLUMNS.map((column) => csvCell(String(row[column] ?? ''))).join(',')}\r\n`
}
