// node bench/large.ts: at 15,000,000 metric rows, how long one slice of retention, of roll-ups or of the history of
// forgotten nodes holds the writer, and what a chart costs against a raw look-up of the same range. Seeding takes a
// minute or two and 600 MB.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sweepForgotten } from '../src/app/mesh/nodes/forgotten.ts'
import { deleteExpired } from '../src/app/upkeep/retention.ts'
import { rollUp } from '../src/app/mesh/telemetry/roll-up.ts'
import { readSeries } from '../src/app/mesh/telemetry/telemetry.ts'
import { openDatabase, type SqliteStore } from '../src/node/database.ts'
import { createPace, type Pace } from '../src/node/upkeep/pace.ts'
import { median } from './load.ts'
import { HOUR_MS } from '../src/shared/time.ts'

const ROWS = Number(process.env['BENCH_LARGE_ROWS'] ?? 15_000_000)
const NODES = 250
const METRICS = 20
const ROWS_A_CHART = ROWS / NODES / METRICS
const DAY_MS = 24 * HOUR_MS
const SPAN_MS = 30 * DAY_MS
const NOW = Date.now()

let missed = 0
function report(work: string, measured: string, target: string, ok: boolean): void {
  if (!ok) missed++
  console.log(`${ok ? 'ok  ' : 'MISS'} ${work.padEnd(52)} ${measured.padEnd(44)} target ${target}`)
}

/** 30 days of measurements of 250 nodes, in the order of their keys; the hours of the last 12 hours wait. */
function seed({ sqlite }: SqliteStore): void {
  sqlite.exec('begin')
  sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})
    insert into nodes (id, node_num, first_heard) select n, 1000 + n, 1 from i`)
  sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${METRICS})
    insert into metrics (id, name) select n, 'benchMetrics.m' || n from i`)
  const step = Math.floor(SPAN_MS / ROWS_A_CHART)
  const fill =
    sqlite.prepare(`with recursive i(n) as (select 0 union all select n + 1 from i where n < ${ROWS_A_CHART - 1})
    insert into telemetry (node_id, metric, t, v) select ?, m.id, ${NOW - SPAN_MS} + n * ${step}, (n * 37 % 1000) / 9.0 from metrics m, i`)
  for (let node = 1; node <= NODES; node++) {
    fill.run(node)
    if (node % 10 === 0) sqlite.exec('commit; begin')
  }
  sqlite.exec(`insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last) select node_id, metric, t - t % ${HOUR_MS}, count(*), min(v), max(v), sum(v), max(v)
    from telemetry group by 1, 2, 3`)
  sqlite.exec(
    `insert into telemetry_dirty select node_id, metric, t from telemetry_hourly where t > ${NOW - 12 * HOUR_MS}`,
  )
  sqlite.exec('commit')
  sqlite.pragma('wal_checkpoint(TRUNCATE)')
}

/** Milliseconds on the clock, and of work: on a busy machine the first has in it what others did. */
type Slice = { readonly ms: number; readonly cpuMs: number }

/** Runs `work` and answers how long each slice held the event loop, in order of length. */
async function time(work: (pace: Pace) => Promise<unknown>): Promise<Slice[]> {
  const slices: Slice[] = []
  const own = createPace(() => true)
  let begun = performance.now()
  let cpu = process.cpuUsage()
  await work({
    share: own.share,
    async pause() {
      const { user, system } = process.cpuUsage(cpu)
      slices.push({ ms: performance.now() - begun, cpuMs: (user + system) / 1000 })
      const goesOn = await own.pause()
      begun = performance.now()
      cpu = process.cpuUsage()
      return goesOn
    },
  })
  return slices.toSorted((a, b) => a.ms - b.ms)
}

function reportSlices(work: string, slices: readonly Slice[]): void {
  const longest = slices.at(-1)?.ms ?? Number.NaN
  const p99 = slices[Math.floor(slices.length * 0.99)]?.ms ?? Number.NaN
  const busiest = Math.max(...slices.map(({ cpuMs }) => cpuMs))
  const detail = `longest ${longest.toFixed(1)} ms (work ${busiest.toFixed(1)}), p99 ${p99.toFixed(1)} of ${slices.length}`
  report(work, detail, '≤ 50 ms', longest <= 50)
}

/** Microseconds of one look-up, the median over many charts. */
async function look(read: (node: number, metric: number) => unknown): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < 1000; n++) {
    const [node, metric] = [1 + ((n * 7) % NODES), 1 + ((n * 13) % METRICS)]
    const begun = performance.now()
    await read(node, metric)
    times.push(performance.now() - begun)
  }
  return median(times) * 1000
}

async function chart(store: SqliteStore, days: number, table: string): Promise<void> {
  const [from, to] = [NOW - days * DAY_MS, NOW]
  const raw = store.sqlite
    .prepare(`select t, v from ${table} where node_id = ? and metric = ? and t between ? and ? order by t`)
    .raw()
  const own = (node: number, metric: number) =>
    readSeries(store, { nodeNum: 1000 + node, metric: `benchMetrics.m${metric}`, from, to, points: 5000 })
  const ratios: number[] = []
  let last = ''
  for (let round = 0; round < 3; round++) {
    const limit = await look((node, metric) => JSON.stringify(raw.all(node, metric, from, to)))
    const ours = await look(async (node, metric) => JSON.stringify(await own(node, metric)))
    ratios.push(limit / ours)
    last = `${ours.toFixed(0)} µs against ${limit.toFixed(0)} µs`
  }
  const value = median(ratios)
  report(`chart of ${days} days, one node, one metric`, `${value.toFixed(2)} (${last})`, '≥ 0.5', value >= 0.5)
}

const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
try {
  const store = openDatabase(join(scratch, 'mesh.db'))
  console.log(`Seeding ${ROWS} metric rows`)
  seed(store)
  // The limit reads what was measured, also where the service reads its hours.
  await chart(store, 7, 'telemetry')
  await chart(store, 1, 'telemetry')
  reportSlices('slices of roll-ups', await time(({ pause, share }) => rollUp(store, pause, share)))
  const cutoff = NOW - SPAN_MS + DAY_MS / 2
  const cutoffs = { telemetry: cutoff, positions: cutoff, messages: cutoff }
  reportSlices('slices of retention', await time(({ pause, share }) => deleteExpired(store, cutoffs, pause, share)))
  const begun = performance.now()
  store.sqlite.exec('delete from nodes where id <= 5')
  const ms = performance.now() - begun
  report('forgetting five nodes', `${ms.toFixed(1)} ms`, '≤ 50 ms', ms <= 50)
  reportSlices('slices of their history', await time(({ pause, share }) => sweepForgotten(store, pause, share)))
  store.close()
} finally {
  rmSync(scratch, { recursive: true })
}
process.exitCode = missed === 0 ? 0 : 1
