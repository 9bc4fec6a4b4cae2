import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { D1Database, DurableObjectNamespace, R2Bucket, Rpc } from '@cloudflare/workers-types'
import { createTestHarness } from 'wrangler'
import type { Service } from '../contract/service.ts'
import { buildOnce, buildSite } from '../support/built/built-service.ts'
import { withFewRounds } from '../support/few-rounds.ts'
import { makeScratch } from './migrated.ts'
import { prebuiltConfig } from './prebuilt.ts'

// No test contacts another host, neither for usage statistics nor for the simulated location of a client.
process.env['WRANGLER_SEND_METRICS'] = 'false'
process.env['CLOUDFLARE_CF_FETCH_ENABLED'] = 'false'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What a test may do to an object with live events. */
export interface BreakableObject extends Rpc.DurableObjectBranded {
  /** From now on all calls fail, or none. */
  fail(isFailing: boolean): Promise<void>
  /** It loses its memory and its connections, as when the platform moves it. */
  die(): Promise<void>
  /** So many of its alarms fail after their work. */
  failAlarms(count: number): Promise<void>
  /** How often its alarm rang, since it last died, and when it will; null: it is not set. */
  alarms(): Promise<{ rings: number; next: number | null }>
}

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
  /** The first object with live events, if it is `isBreakable`. */
  readonly live: BreakableObject
  /** Fires the cron trigger of each ten minutes, or this one, as if at this time. */
  runSchedule(at?: Date, cron?: string): Promise<void>
}

/**
 * Runs the worker, bundled as for a deployment, on workerd with an empty D1, as wrangler does. Its sign-ins take no time,
 * unless it `hasAllRounds`. `isBreakable`: its live events fail when told to.
 */
export async function openWorkerd(
  env: Record<string, string>,
  {
    migrated = true,
    hasAllRounds = false,
    isBreakable = false,
  }: { migrated?: boolean; hasAllRounds?: boolean; isBreakable?: boolean } = {},
): Promise<Workerd> {
  const dir = isBreakable ? buildBreakable() : hasAllRounds ? buildWorker() : buildFewRounds()
  const built = { configPath: join(dir, 'wrangler.toml'), prebuiltWorkerDir: join(dir, 'out'), secrets: env }
  const harness = createTestHarness({ workers: [built] })
  const scratch = makeScratch()
  const { url } = await scratch.start(() => harness.listen())
  type Bindings = { DB: D1Database; LIVE: DurableObjectNamespace<BreakableObject>; BACKUPS: R2Bucket }
  const worker = harness.getWorker<Bindings>()
  if (migrated) await scratch.migrated('harness', () => worker.applyD1Migrations('DB'))
  const { DB: database, LIVE, BACKUPS: bucket } = await worker.getEnv()
  return {
    url,
    addressHeader: 'cf-connecting-ip',
    streamsOfAccount: 30,
    database,
    bucket,
    sql: async (query) => (await database.prepare(query).all()).results,
    logged: () => harness.getLogs().map(({ message }) => message),
    dispatch: (url, init) => worker.fetch(url, init),
    migrate: () => worker.applyD1Migrations('DB'),
    get live() {
      return LIVE.get(LIVE.idFromName('live-0'))
    },
    runSchedule: async (at = new Date(), cron = '*/10 * * * *') => {
      const { outcome } = await worker.scheduled({ cron, scheduledTime: at })
      if (outcome !== 'ok') throw new Error(`the scheduled run ended with ${outcome}`)
    },
    close: async () => {
      await harness.close()
      scratch.remove()
    },
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
    const file = join(dir, 'out/parts/start.js')
    writeFileSync(file, withFewRounds(readFileSync(file, 'utf8')))
  })
}

const BREAKABLE = `import { LiveObject as Live } from './worker.js'
export { default } from './worker.js'
export class LiveObject extends Live {
  isFailing = false
  refuse() { if (this.isFailing) throw new Error('the test made it fail') }
  async fetch(request) { this.refuse(); return super.fetch(request) }
  async tell(told) { this.refuse(); return super.tell(told) }
  async fail(isFailing) { this.isFailing = isFailing }
  async die() { this.ctx.abort('the test ended it') }
  failing = 0
  rings = 0
  async failAlarms(count) { this.failing = count }
  async alarms() { return { rings: this.rings, next: await this.ctx.storage.getAlarm() } }
  async alarm() {
    await super.alarm()
    this.rings += 1
    if (this.failing-- > 0) throw new Error('the test made the alarm fail')
  }
}
`

/** The same with few rounds, and objects that tests can break. */
function buildBreakable(): string {
  const built = buildFewRounds()
  return buildOnce('worker-breakable', (dir) => {
    cpSync(built, dir, { recursive: true, verbatimSymlinks: true })
    writeFileSync(join(dir, 'out/breakable.js'), BREAKABLE)
    const config = prebuiltConfig().replace('/worker.js"', '/breakable.js"')
    const rules = config.includes('ESModule') ? '' : '[[rules]]\ntype = "ESModule"\nglobs = ["**/*.js"]\n'
    writeFileSync(join(dir, 'wrangler.toml'), `${config}${rules}`)
  })
}
