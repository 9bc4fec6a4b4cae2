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

const parts = new Map<string, Row[]>()
let rows: Row[] = []

/** Further lines belong to this part. */
export function beginPart(name: string): void {
  rows = []
  parts.set(name, rows)
  console.error(`\n${name}, ${new Date().toTimeString().slice(0, 8)}`)
}

/** Adds a line, and reports the progress on standard error. */
export function report(work: string, measured: string, target: string, ok: boolean | null): void {
  rows.push({ work, measured, target, ok })
  console.error(`${verdict(ok).padEnd(10)} ${work.padEnd(60)} ${measured.padEnd(50)} ${target}`)
}

/** As `report`, for work that could not be measured: it counts as missed. */
export function reportFailure(work: string, error: unknown): void {
  report(work, `failed: ${(error instanceof Error ? error.message : String(error)).split('\n')[0]}`, '', false)
}

function verdict(ok: boolean | null): string {
  return ok === null ? '' : ok ? 'ok' : '**missed**'
}

function machine(): string {
  const [cpu] = cpus()
  const load = loadavg()[0]?.toFixed(1)
  const memory = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${memory} GB, Node ${process.versions.node}, load ${load} at the end, ${new Date().toISOString().slice(0, 10)}`
}

/** Prints the tables, as Markdown or JSON; returns the number of missed targets. */
export function printTables(asJson: boolean): number {
  const missed = [...parts.values()].flat().filter(({ ok }) => ok === false).length
  if (asJson) console.log(JSON.stringify({ machine: machine(), missed, parts: Object.fromEntries(parts) }, null, 2))
  else {
    for (const [name, shown] of parts) console.log(`\n${name}\n\n${markdown(shown.map(lineOf))}`)
    console.log(
      `\n${missed === 0 ? 'No target' : `${missed} target${missed === 1 ? '' : 's'}`} missed, on ${machine()}`,
    )
  }
  return missed
}

const lineOf = ({ work, measured, target, ok }: Row) => `| ${work} | ${measured} | ${target} | ${verdict(ok)} |`

const markdown = (lines: readonly string[]) =>
  ['| work | measured | target | |', '| --- | --- | --- | --- |', ...lines].join('\n')

/** What users feel: the eight rows of the README. */
function isShort(work: string): boolean {
  return /^(?:GET .api.nodes, 500 nodes, unch|GET .api.messages, first|search of \*the|longest wait for|reads while 50|events of them|memory, after|start, cold, 10,)/.test(
    work,
  )
}

function rewrite(name: string, change: (text: string) => string): void {
  const file = fileURLToPath(new URL(`../${name}`, import.meta.url))
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

function between(text: string, mark: string, inner: string): string {
  const marks = new RegExp(`(<!-- ${mark} -->)[^]*?(<!-- end of ${mark} -->)`)
  if (!marks.test(text)) throw new Error(`found no marks for the table: ${mark}`)
  return text.replace(marks, (_, begin, end) => `${begin}\n\n${inner}\n\n${end}`)
}

/** Throws before hours are spent. */
export function checkMarks(names: readonly string[]): void {
  const text = readFileSync(fileURLToPath(new URL('../docs/performance.md', import.meta.url)), 'utf8')
  for (const name of names) between(text, `measured: ${name}`, '')
}

/** What stands in the page for rows that no run has measured in their present form; the README has none of them. */
const NOT_MEASURED = 'not measured yet'

/** Writes the tables of the parts that ran into docs/performance.md, and eight rows of that page into README.md. */
export function writeTables(scale: number): void {
  for (const { file, mark, lines } of tables) rewrite(file, (text) => between(text, mark, lines.join('\n')))
  rewrite('docs/performance.md', (text) => {
    const table = (shown: readonly Row[]) =>
      `${machine()}${scale === 1 ? '' : `, ${scale} of the large size`}:\n\n${markdown(shown.map(lineOf))}`
    const all = [...parts].reduce((page, [name, shown]) => between(page, `measured: ${name}`, table(shown)), text)
    const short = [...all.matchAll(/^\| (.+) \|.*\|.*\|.*\|$/gm)].filter(
      ([line, work = '']) => isShort(work) && !line.includes(NOT_MEASURED),
    )
    rewrite('README.md', (readme) => between(readme, 'measured', markdown(short.map(([line]) => line))))
    return all
  })
}

const tables: { readonly file: string; readonly mark: string; readonly lines: readonly string[] }[] = []

/** A table of another page, for `writeTables`, between the marks there. */
export function tableOf(file: string, mark: string, lines: readonly string[]): void {
  tables.push({ file, mark, lines })
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
