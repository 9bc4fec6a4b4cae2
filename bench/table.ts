import { cpus, loadavg, totalmem } from 'node:os'

/** One line of the result; `ok` is null for a figure without a target. */
export type Row = {
  readonly work: string
  readonly measured: string
  readonly target: string
  readonly ok: boolean | null
}

const rows: Row[] = []

/** Adds a line, and tells on standard error how far the run is. */
export function report(work: string, measured: string, target: string, ok: boolean | null): void {
  rows.push({ work, measured, target, ok })
  console.error(`${verdict(ok).padEnd(6)} ${work.padEnd(60)} ${measured.padEnd(50)} ${target}`)
}

/** As `report`, for work that could not be measured: it counts as missed. */
export function reportFailure(work: string, error: unknown): void {
  report(work, `failed: ${error instanceof Error ? error.message : String(error)}`, '', false)
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

/** Prints the table, as Markdown or JSON; answers how many targets were missed. */
export function printTable(asJson: boolean): number {
  const missed = rows.filter(({ ok }) => ok === false).length
  if (asJson) console.log(JSON.stringify({ machine: machine(), missed, rows }, null, 2))
  else {
    const lines = rows.map(({ work, measured, target, ok }) => `| ${work} | ${measured} | ${target} | ${verdict(ok)} |`)
    console.log(['', machine(), '', '| work | measured | target | |', '| --- | --- | --- | --- |', ...lines].join('\n'))
    console.log(`\n${missed === 0 ? 'No target' : `${missed} target${missed === 1 ? '' : 's'}`} missed`)
  }
  return missed
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
