// node bench/decisions/runs.ts: measurements as rows and as packed runs, on SQLite and on workerd's D1: rows that D1
// charges and bytes, CPU of a packet in its life, time of a chart. docs/decisions/packed-on-the-edge.md has the figures.
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { wholeSlices } from '../../src/app/base/pacing/slice-share.ts'
import { eachTurn } from '../../src/app/base/pacing/slices.ts'
import { writeTelemetry } from '../../src/app/mesh/ingest/rows/history.ts'
import { rollUp } from '../../src/app/mesh/telemetry/roll-up.ts'
import { listMetrics, readSeries } from '../../src/app/mesh/telemetry/telemetry.ts'
import { sweepCharts } from '../../src/app/upkeep/charts.ts'
import { DAY_MS, HOUR_MS } from '../../src/shared/time.ts'
import { costOfPacket, cpuMs, measureForms, medianMs } from './both-forms.ts'

/** Each node sends five measurements four times an hour, as half of the mixture does; 20 packets a delivery. */
const NODES = 250
const AN_HOUR = 4
const DELIVERY = 20
const SQLITE_DAYS = Number(process.env['BENCH_RUNS_DAYS'] ?? 10)
const D1_DAYS = Number(process.env['BENCH_RUNS_D1_DAYS'] ?? 1)
const BEGUN = Date.UTC(2026, 0, 1)
const NAMES = ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx', 'uptimeSeconds'].map(
  (name) => `deviceMetrics.${name}`,
)

await measureForms('runs', { sqlite: SQLITE_DAYS, d1: D1_DAYS }, async ({ name, store, written }, days) => {
  await store.db.run(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})
    insert into nodes (node_num, first_heard) select n, 1 from i`)
  const packets = days * 24 * AN_HOUR * NODES
  const at = (n: number) => BEGUN + Math.floor((n / NODES) * (HOUR_MS / AN_HOUR))
  const deliver = async (from: number) => {
    const rows = Array.from({ length: DELIVERY }, (_, n) => {
      const id = from + n
      const values = [id % 101, Math.fround(3 + (id % 7) / 10), Math.fround((id % 37) / 3), Math.fround(1.25), id]
      return {
        nodeNum: 1 + (id % NODES),
        t: at(id),
        channel: 0,
        values: Object.fromEntries(NAMES.map((each, index) => [each, values[index] ?? 0])),
      }
    })
    const [first, ...others] = writeTelemetry(store, rows, new Set())
    if (first !== undefined) await store.atomic([first, ...others])
  }
  const summarise = (until: number) => rollUp(store, eachTurn, wholeSlices, until)
  let summaries = 0
  const stored = await costOfPacket(written, packets, async () => {
    for (let from = 0; from < packets; from += DELIVERY) {
      await deliver(from)
      const hour = Math.floor(at(from) / HOUR_MS) * HOUR_MS
      if (at(from + DELIVERY) < hour + HOUR_MS) continue
      summaries += await cpuMs(() => summarise(hour + HOUR_MS))
    }
  })
  const end = BEGUN + days * DAY_MS
  const bytes = (await store.sizeBytes()) ?? 0
  const reader = Object({ store, viewer: { view: WHOLE_VIEW } })
  const range = { nodeNum: 7, metric: NAMES[1] ?? '', to: end, points: 2000 }
  const time = async (work: () => Promise<unknown>) => `${(await medianMs(work, 15)).toFixed(2)} ms`
  const read = [
    await time(() => readSeries(reader, { ...range, from: end - DAY_MS })),
    await time(() => readSeries(reader, { ...range, from: end - 10 * DAY_MS })),
    await time(() => readSeries(reader, { ...range, from: end - 400 * DAY_MS })),
    await time(() => listMetrics(reader, 7)),
  ]
  const deleted = await costOfPacket(written, packets, () =>
    sweepCharts(store, { table: 'telemetry', cutoff: end, restMs: 0 }, { pause: eachTurn, share: wholeSlices }),
  )
  const rows = written === null ? '–' : `${stored.rows.toFixed(2)} + ${deleted.rows.toFixed(2)}`
  console.log(`${name}: ${packets} packets, ${(bytes / packets).toFixed(0)} bytes a packet, rows written ${rows} (stored with summaries, deleted)
  CPU of a packet: stored with summaries ${stored.cpu}, of which summaries ${((summaries * 1000) / packets).toFixed(0)} µs, deleted ${deleted.cpu}
  charts of a day, 10 days and all: ${read.slice(0, 3).join(', ')}; list of metrics: ${read[3]}`)
})
