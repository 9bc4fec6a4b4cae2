import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { D1Database, R2Bucket } from '@cloudflare/workers-types'
import { createTestHarness } from 'wrangler'
import type { Service } from '../contract/service.ts'
import { buildOnce, buildSite } from '../support/built/built-service.ts'
import { withFewRounds } from '../support/few-rounds.ts'
import { prebuiltConfig } from './prebuilt.ts'

// No test contacts another host, neither for usage statistics nor for the simulated location of a client.
process.env['WRANGLER_SEND_METRICS'] = 'false'
process.env['CLOUDFLARE_CF_FETCH_ENABLED'] = 'false'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export type Workerd = Service & {
  /** The D1 database itself. */
  readonly database: D1Database
  /** The bucket of its backups. */
  readonly bucket: R2Bucket
  /** The log lines of the worker. */
  logged(): string[]
  /** Sends a request for any origin straight to the worker. */
  dispatch(url: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<Response>
  /** Brings the database to this version's schema. */
  migrate(): Promise<void>
  /** Fires the cron trigger of each ten minutes, or this one, as if at this time. */
  runSchedule(at?: Date, cron?: string): Promise<void>
}

/**
 * Runs the worker, bundled as for a deployment, on workerd with an empty D1, as wrangler does. `hasFewRounds`: its
 * sign-ins take no time.
 */
export async function openWorkerd(
  env: Record<string, string>,
  { migrated = true, hasFewRounds = false }: { migrated?: boolean; hasFewRounds?: boolean } = {},
): Promise<Workerd> {
  const dir = hasFewRounds ? buildFewRounds() : buildWorker()
  const built = { configPath: join(dir, 'wrangler.toml'), prebuiltWorkerDir: join(dir, 'out'), secrets: env }
  const harness = createTestHarness({ workers: [built] })
  const { url } = await harness.listen()
  const worker = harness.getWorker<{ DB: D1Database; BACKUPS: R2Bucket }>()
  if (migrated) await worker.applyD1Migrations('DB')
  const { DB: database, BACKUPS: bucket } = await worker.getEnv()
  return {
    url,
    addressHeader: 'cf-connecting-ip',
    database,
    bucket,
    sql: async (query) => (await database.prepare(query).all()).results,
    logged: () => harness.getLogs().map(({ message }) => message),
    dispatch: (url, init) => worker.fetch(url, init),
    migrate: () => worker.applyD1Migrations('DB'),
    runSchedule: async (at = new Date(), cron = '*/10 * * * *') => {
      const { outcome } = await worker.scheduled({ cron, scheduledTime: at })
      if (outcome !== 'ok') throw new Error(`the scheduled run ended with ${outcome}`)
    },
    close: () => harness.close(),
  }
}

/** The worker as `wrangler deploy` builds it, with the pages beside it. */
function buildWorker(): string {
  const { files } = buildSite()
  return buildOnce('worker', (dir) => {
    symlinkSync(join(ROOT, 'drizzle'), join(dir, 'drizzle'))
    cpSync(files, join(dir, 'dist/web'), { recursive: true })
    execFileSync(process.execPath, ['scripts/edge.js', '--worker', join(dir, 'dist')], { cwd: ROOT, stdio: 'pipe' })
    // Not rebuilt in the source folder.
    writeFileSync(join(dir, 'wrangler.toml'), prebuiltConfig())
    const wrangler = join(ROOT, 'node_modules/wrangler/bin/wrangler.js')
    execFileSync(process.execPath, [wrangler, 'deploy', '--dry-run', '--outdir', 'out'], { cwd: dir, stdio: 'pipe' })
  })
}

/** The same worker, whose bcrypt takes few rounds. */
function buildFewRounds(): string {
  const built = buildWorker()
  return buildOnce('worker-few-rounds', (dir) => {
    cpSync(built, dir, { recursive: true, verbatimSymlinks: true })
    const file = join(dir, 'out/worker.js')
    writeFileSync(file, withFewRounds(readFileSync(file, 'utf8')))
  })
}
