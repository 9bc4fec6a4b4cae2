import { csvCell } from '../shared/csv.ts'

/** A cell of a table: a number unchanged, null as an empty cell. */
export type Value = string | number | null

/** Saves a table as a CSV file with its header as the first row. */
export function saveCsv(name: string, rows: readonly (readonly Value[])[]): void {
  const lines = rows.map((cells) => cells.map(cell).join(','))
  saveBlob(`${name}.csv`, new Blob([[...lines, ''].join('\r\n')], { type: 'text/csv' }))
}

/** Saves a file of this name. */
export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

// A number is never a formula, although a negative one begins like one.
function cell(value: Value): string {
  return typeof value === 'string' ? csvCell(value) : String(value ?? '')
}
