/**
 * A cell of a table as RFC 4180 writes it. One that a spreadsheet would run as a formula begins with an apostrophe
 * (OWASP, CSV injection: with some keyboards the full-width signs begin one too).
 */
export function csvCell(text: string): string {
  const safe = isFormula(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Whether a spreadsheet would run a cell. */
export function isFormula(text: string): boolean {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text)
}
