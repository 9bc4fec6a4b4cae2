// A measure of rows and of the packed form: on SQLite in a file, and on workerd's D1 with what D1 charges.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { D1Database } from '@cloudflare/workers-types'
import { createTestHarness } from 'wrangler'
import type { Store } from '../../src/db/store.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { openDatabase } from '../../src/node/database.ts'
import { type Counted, counting } from '../servers/edge-worker.ts'
import { median } from '../table.ts'

type Written = Pick<Counted, 'written'>

/** An empty database. `written`: what D1 charges, null on SQLite, which charges nothing. */
type Form = { readonly name: string; readonly store: Store; readonly written: Written | null }

/** `packed`: the name of the packed form. A size of 0 leaves a database out. */
export async function measureForms(
  packed: string,
  sizes: { readonly sqlite: number; readonly d1: number },
  measure: (form: Form, size: number) => Promise<void>,
): Promise<void> {
  const nameOf = (packs: boolean) => (packs ? packed : 'rows')
  const scratch = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'mesh-forms-'))
  try {
    for (const packs of sizes.sqlite > 0 ? [false, true] : []) {
      const store = openDatabase(join(scratch, `${packs}.db`))
      await measure({ name: `SQLite, ${nameOf(packs)}`, store: { ...store, packs }, written: null }, sizes.sqlite)
      store.close()
    }
  } finally {
    rmSync(scratch, { recursive: true })
  }
  Object.assign(process.env, { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' })
  for (const packs of sizes.d1 > 0 ? [false, true] : []) {
    const configPath = new URL('../../wrangler.toml', import.meta.url).pathname
    const harness = createTestHarness({ workers: [{ configPath }] })
    try {
      await harness.listen()
      const worker = harness.getWorker<{ DB: D1Database }>()
      await worker.applyD1Migrations('DB')
      const counted = counting((await worker.getEnv()).DB)
      const store = { ...d1Store(counted.database), packs }
      await measure({ name: `D1, ${nameOf(packs)}`, store, written: counted }, sizes.d1)
    } finally {
      await harness.close()
    }
  }
}

/** Processor time of this process, in milliseconds. */
export async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const begun = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1000
}

/** The median of `times`. */
export async function medianMs(work: () => Promise<unknown>, times: number): Promise<number> {
  const all: number[] = []
  for (let n = 0; n < times; n++) all.push(await cpuMs(work))
  return median(all)
}

/** Processor time of a packet, as text, and the rows that were written for it. */
export async function costOfPacket(
  written: Written | null,
  packets: number,
  work: () => Promise<unknown>,
): Promise<{ readonly cpu: string; readonly rows: number }> {
  const before = written?.written ?? 0
  const ms = await cpuMs(work)
  return { cpu: `${((ms * 1000) / packets).toFixed(0)} µs`, rows: ((written?.written ?? 0) - before) / packets }
}
