import type { SQLOutputValue } from 'node:sqlite'

/** A row of a table of another program: any value may be missing or of another type. */
export type Row = Readonly<Record<string, SQLOutputValue | undefined>>

/** A finite number; null for anything else. */
export function numberIn(row: Row, column: string): number | null {
  const value = row[column]
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'string' || value.trim() === '') return null
  const parsed = Number(value)
  return Number.isFinite(parsed) ? parsed : null
}

/** An integer of at most 2^53; null for anything else. */
export function integerIn(row: Row, column: string): number | null {
  const value = numberIn(row, column)
  return value !== null && Number.isSafeInteger(value) ? value : null
}

/** A number of a node: an unsigned 32-bit integer above 0; null for anything else. */
export function nodeNumIn(row: Row, column: string): number | null {
  const value = integerIn(row, column)
  return value !== null && value > 0 && value <= 0xff_ff_ff_ff ? value : null
}

/** A text without its zero characters; null if it is empty or missing. */
export function textIn(row: Row, column: string): string | null {
  const value = row[column]
  if (typeof value !== 'string') return null
  const text = value.replaceAll('\0', '')
  return text === '' ? null : text
}

export function flagIn(row: Row, column: string): boolean {
  const value = row[column]
  return value === 1 || value === 1n || value === 'true' || value === '1'
}
