import { fileURLToPath } from 'node:url'
import type { D1Database } from '@cloudflare/workers-types'
import { createTestHarness } from 'wrangler'
import type { Service } from '../contract/service.ts'

// Nothing of a test reaches another host: neither usage statistics nor the made-up location of a client.
process.env['WRANGLER_SEND_METRICS'] = 'false'
process.env['CLOUDFLARE_CF_FETCH_ENABLED'] = 'false'

const CONFIG = fileURLToPath(new URL('../../wrangler.toml', import.meta.url))

export type Workerd = Service & {
  /** The D1 database itself. */
  readonly database: D1Database
  /** What the worker logged. */
  logged(): string[]
  /** Sends a request for any origin straight to the worker. */
  dispatch(url: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<Response>
  /** Brings the database to this version's schema. */
  migrate(): Promise<void>
  /** Fires the cron trigger, as if at this time. */
  runSchedule(at?: Date): Promise<void>
}

/** Bundles the worker as wrangler.toml says and runs it on workerd with an empty D1, as wrangler does. */
export async function openWorkerd(
  env: Record<string, string>,
  options: { migrated: boolean } = { migrated: true },
): Promise<Workerd> {
  const harness = createTestHarness({ workers: [{ configPath: CONFIG, secrets: env }] })
  const { url } = await harness.listen()
  const worker = harness.getWorker<{ DB: D1Database }>()
  if (options.migrated) await worker.applyD1Migrations('DB')
  const { DB: database } = await worker.getEnv()
  return {
    url,
    addressHeader: 'cf-connecting-ip',
    database,
    sql: async (query) => (await database.prepare(query).all()).results,
    logged: () => harness.getLogs().map(({ message }) => message),
    dispatch: (url, init) => worker.fetch(url, init),
    migrate: () => worker.applyD1Migrations('DB'),
    runSchedule: async (at = new Date()) => {
      const { outcome } = await worker.scheduled({ cron: '*/10 * * * *', scheduledTime: at })
      if (outcome !== 'ok') throw new Error(`the scheduled run ended with ${outcome}`)
    },
    close: () => harness.close(),
  }
}
