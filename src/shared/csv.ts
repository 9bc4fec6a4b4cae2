/**
 * A cell of a table in the form of RFC 4180. A cell that a spreadsheet would execute as a formula begins with an
 * apostrophe (OWASP, CSV injection: with some keyboards the full-width signs begin one too).
 */
export function csvCell(text: string): string {
  const safe = isFormula(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Whether a spreadsheet would execute a cell. */
export function isFormula(text: string): boolean {
  return /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text)
}
