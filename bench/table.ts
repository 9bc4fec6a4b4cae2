import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'

/** One line of the result; `ok` is null for a figure without a target. */
export type Row = {
  readonly work: string
  readonly measured: string
  readonly target: string
  readonly ok: boolean | null
}

const rows: Row[] = []

/** Adds a line, and reports the progress on standard error. */
export function report(work: string, measured: string, target: string, ok: boolean | null): void {
  rows.push({ work, measured, target, ok })
  console.error(`${verdict(ok).padEnd(6)} ${work.padEnd(60)} ${measured.padEnd(50)} ${target}`)
}

/** As `report`, for work that could not be measured: it counts as missed. */
export function reportFailure(work: string, error: unknown): void {
  report(work, `failed: ${(error instanceof Error ? error.message : String(error)).split('\n')[0]}`, '', false)
}

function verdict(ok: boolean | null): string {
  return ok === null ? '' : ok ? 'ok' : 'missed'
}

function machine(): string {
  const [cpu] = cpus()
  const load = loadavg()[0]?.toFixed(1)
  const memory = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${memory} GB, Node ${process.versions.node}, load ${load} at the end, ${new Date().toISOString().slice(0, 10)}`
}

/** Prints the table, as Markdown or JSON; returns the number of missed targets. */
export function printTable(asJson: boolean): number {
  const missed = rows.filter(({ ok }) => ok === false).length
  if (asJson) console.log(JSON.stringify({ machine: machine(), missed, rows }, null, 2))
  else {
    console.log(`\n${markdown(rows)}\n`)
    console.log(`${missed === 0 ? 'No target' : `${missed} target${missed === 1 ? '' : 's'}`} missed`)
  }
  return missed
}

function markdown(shown: readonly Row[]): string {
  const lines = shown.map(({ work, measured, target, ok }) => `| ${work} | ${measured} | ${target} | ${verdict(ok)} |`)
  return [`${machine()}:`, '', '| work | measured | target | |', '| --- | --- | --- | --- |', ...lines].join('\n')
}

/** What users ask about, of all rows: the eight of the README. */
function isShort(work: string): boolean {
  return /^(?:memory, |start, cold, 10,|2,000 packets|events of them|web, first|search of a rare word in m|backup of )/.test(
    work,
  )
}

/** Writes the table between the marks in docs/performance.md, and its short form, eight rows, between those in README.md. */
export function writeTable(): void {
  const places = [
    ['docs/performance.md', rows],
    ['README.md', rows.filter(({ work }) => isShort(work))],
  ] as const
  for (const [name, shown] of places) {
    const file = fileURLToPath(new URL(`../${name}`, import.meta.url))
    const marks = /(<!-- measured -->)[^]*(<!-- end of measured -->)/
    const text = readFileSync(file, 'utf8')
    if (!marks.test(text)) throw new Error(`${name}: found no marks for the table`)
    writeFileSync(
      file,
      text.replace(marks, (_, begin, end) => `${begin}\n\n${markdown(shown)}\n\n${end}`),
    )
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
