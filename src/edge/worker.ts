import manifest from '../../package.json' with { type: 'json' }
import { createApp } from '../app/app.ts'
import { sealAudit } from '../app/audit/chain.ts'
import { databaseSessions } from '../app/accounts/sessions/database-sessions.ts'
import { createProviders } from '../app/accounts/oidc/oidc.ts'
import type { Config } from '../app/config/config.ts'
import { assetTranslations } from './translations.ts'
import { NO_PORTS, type Ports } from '../app/base/context.ts'
import type { Events } from '../app/mesh/live/event.ts'
import { memoryBuckets } from '../app/http/limits/buckets.ts'
import { AppError, toAppError } from '../app/http/errors.ts'
import { nextTurn } from '../app/base/pacing/next-turn.ts'
import { createLog, type Log } from '../app/base/log.ts'
import { findFrame } from '../app/accounts/access/embed-profiles.ts'
import { tileOrigins } from '../app/mesh/map/tiles.ts'
import { isApi } from '../app/http/pages.ts'
import { newRequestId } from '../app/http/request-id.ts'
import { makeFirstAdmin } from '../app/accounts/users/first-admin.ts'
import { warnIfNobodyEnters } from '../app/accounts/recovery/ways-in.ts'
import { lazyBackups } from './backups.ts'
import { d1Store } from './d1.ts'
import { keepFiles } from './described-settings.ts'
import { serveNearest } from './reading/own-writes.ts'
import { type Client, openReplicas } from './reading/replicas.ts'
import { type Env, readEnvironment } from './environment.ts'
import { findNewerMigration, HalfRestored, latestMigration } from './migrations.ts'
import { refuse, servePages } from './pages.ts'
import { scriptPasswordHasher } from './passwords.ts'
import { fetchOutbound } from './outbound.ts'
import type { Serving } from './live/protocol.ts'
import { openTelling, type Telling } from './live/telling.ts'
import { deliverSoon, runAlerts, runAnchor, runRetention, runSchedule, runSurvey, runWatching } from './schedule.ts'
import { expireCommands } from '../app/mesh/downlink/commands.ts'
import { noteRun, type Job } from '../app/system/status/runs.ts'
import { discardBody } from './unread-body.ts'

/** The trigger of wrangler.toml that only handles alerts. */
const EACH_MINUTE = '* * * * *'
/** The trigger of wrangler.toml that deletes old data: a run of its own may make as many queries as another one. */
const RETENTION = '5-55/10 * * * *'
/** The trigger of wrangler.toml for what is known about the whole mesh, in a run of its own for the same reason. */
const SURVEY = '8-58/10 * * * *'

/** The trigger of wrangler.toml for backups. */
const BACKUPS = '1-59/2 * * * *'

/** State that an isolate keeps between requests. */
type Service =
  | {
      readonly ok: true
      readonly ports: Ports
      /** Null: no live events, because wrangler.toml has no binding LIVE. */
      readonly telling: Telling | null
      readonly fetch: (request: Request, execution: ExecutionContext) => Promise<Response>
      readonly ensureReady: () => Promise<void>
      /** Whether it has written to the audit log since the last call. */
      takeEntries(): boolean
    }
  | { readonly ok: false; readonly log: Log; readonly problems: readonly string[] }

const services = new WeakMap<Env, Service>()

function serviceOf(env: Env): Service {
  const known = services.get(env)
  if (known !== undefined) return known
  const started = start(env)
  services.set(env, started)
  return started
}

function start(env: Env): Service {
  const environment = readEnvironment(env)
  if (!environment.ok) return { ok: false, log: consoleLog(null), problems: environment.problems }
  const { config, ignored, unknown } = environment
  const log = consoleLog(config)
  for (const { name, hint } of unknown) {
    log.warn(`The variable ${name} is unknown and has no effect${hint === null ? '' : `; ${hint}`}`)
  }
  if (ignored.length > 0) log.warn('These variables have no effect on the edge', { variables: ignored })
  let hasEntries = false
  const telling = env.LIVE === undefined ? null : openTelling(env.LIVE, log)
  const onEntry = () => (hasEntries = true)
  const replicas = openReplicas(env.DB, Date.now)
  const ports = portsFrom(env, { config, log, database: replicas.primary, events: telling?.events ?? null, onEntry })
  return {
    ok: true,
    ports,
    telling,
    fetch: serveNearest(env, ports, replicas, onEntry),
    ensureReady: readyOnce(ports),
    takeEntries() {
      const had = hasEntries
      hasEntries = false
      return had
    },
  }
}

function consoleLog(config: Config | null): Log {
  return createLog({
    level: config?.LOG_LEVEL ?? 'info',
    format: config?.LOG_FORMAT ?? 'json',
    now: Date.now,
    write: (line) => console.log(line),
  })
}

type Given = {
  readonly config: Config
  readonly log: Log
  readonly database: Client
  readonly events: Ports['events']
  onEntry(): void
}

function portsFrom(env: Env, { config, log, database, events, onEntry }: Given): Ports {
  const store = d1Store(database, onEntry)
  keepFiles(store, env.ASSETS)
  const { version } = manifest
  const needs = { config, store, log, version, now: Date.now, schema: () => latestMigration(store.db) }
  return {
    config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords: scriptPasswordHasher(Date.now),
    log,
    ...NO_PORTS,
    events,
    backups: env.BACKUPS === undefined ? null : lazyBackups({ ...needs, bucket: env.BACKUPS }),
    providers: createProviders({ config, log, now: Date.now }),
    outbound: fetchOutbound(),
    translations: assetTranslations(env.ASSETS),
    version,
    startedAt: Date.now(),
    now: Date.now,
    // Cloudflare sets this header itself; no other header with the client's address is trusted.
    clientIp: (c) => c.req.header('cf-connecting-ip') ?? null,
    // No proxy can be identified by its address here, so none is trusted.
    proxyUser: () => null,
    origin: (c) => new URL(c.req.url).origin,
  }
}

/** The database belongs to a newer version. The message is one line for the log. */
class NewerDatabase extends Error {
  override name = 'NewerDatabase'
}

async function refuseNewer({ store }: Ports): Promise<void> {
  const name = await findNewerMigration(store.db)
  if (name !== null) {
    throw new NewerDatabase(`DB: found the migration ${name} of a newer version, expected this version or an older one`)
  }
}

/**
 * Checks the database and creates the first administrator before the isolate's first request. Simultaneous requests
 * share no promise: if the runtime dropped the request that owns it, it would never settle. The database lets one of
 * them win.
 */
function readyOnce(ports: Ports): () => Promise<void> {
  let done = false
  return async () => {
    if (done) return
    await refuseNewer(ports)
    const admin = await makeFirstAdmin(ports)
    await warnIfNobodyEnters(ports)
    done = true
    if (!admin.made) return
    ports.log.info('First administrator created', { username: admin.username })
    if (admin.randomPassword === null) return
    // A Worker has no console but its log.
    console.log(`Sign in as "${admin.username}" with the temporary password ${admin.randomPassword} (shown only once)`)
  }
}

/** Answers for the app when it could not start. */
function refuseStart(log: Log, error: AppError, fields: Record<string, unknown>): Response {
  const requestId = newRequestId()
  log.error('The service could not start', { requestId, ...fields })
  return refuse(error, requestId)
}

function misconfigured(log: Log, problems: readonly string[]): Response {
  return refuseStart(log, new AppError('internal', 'The service is not configured; its log says what is missing'), {
    problems,
  })
}

function refuseWithoutAdmin(log: Log, error: unknown): Response {
  if (error instanceof AppError && error.code === 'weak_password') return misconfigured(log, [error.message])
  if (error instanceof NewerDatabase || error instanceof HalfRestored) return misconfigured(log, [error.message])
  if (isMissingTable(error)) {
    return misconfigured(log, ['DB: found no tables, expected the result of: wrangler d1 migrations apply DB --remote'])
  }
  const known = toAppError(error)
  return refuseStart(log, known, known.code === 'rate_limited' ? {} : { error })
}

function isMissingTable(error: unknown): boolean {
  return error instanceof Error && (/no such table/.test(error.message) || isMissingTable(error.cause))
}

/** Starts after the answer is sent. The next request or the schedule repeats failed work. */
async function seal({ store, log }: Ports): Promise<void> {
  try {
    await nextTurn()
    await sealAudit(store)
  } catch (error) {
    log.error('Sealing the audit log failed; retrying', { error })
  }
}

async function respond(request: Request, env: Env, execution: ExecutionContext): Promise<Response> {
  const service = serviceOf(env)
  if (!isApi(new URL(request.url).pathname)) {
    if (!service.ok) return servePages(request, env, null)
    const { ports } = service
    return servePages(request, env, {
      config: ports.config,
      // If the database does not answer, pages may not be shown in frames.
      findFrame: (query) => findFrame(ports, query).catch(() => null),
      tileOrigins: () => tileOrigins(ports),
    })
  }
  if (!service.ok) return misconfigured(service.log, service.problems)
  try {
    await service.ensureReady()
  } catch (error) {
    return refuseWithoutAdmin(service.ports.log, error)
  }
  // Before the handler begins: if the client goes, the platform lets only this go on after what was stored.
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  execution.waitUntil(ended.then(() => (service.telling?.isDue() ? service.telling.tell() : undefined)))
  try {
    return await service.fetch(request, execution)
  } finally {
    end()
    if (service.takeEntries()) execution.waitUntil(seal(service.ports))
  }
}

/** The same service where the streams of live events are. Throws if it is not configured. */
export function serveLive(env: Env, events: Events): Serving {
  const environment = readEnvironment(env)
  if (!environment.ok) throw new Error(environment.problems.join('; '))
  const { config } = environment
  const ports = portsFrom(env, { config, log: consoleLog(config), database: env.DB, events, onEntry() {} })
  const app = createApp(() => ports)
  return { ports, fetch: async (request) => app.fetch(request, env) }
}

/**
 * Sends the alerts that are due, where the alarm of an object rings. Returns when it should ring again; null: not by
 * itself. The trigger does the same each minute.
 */
export async function deliverAlerts(env: Env): Promise<number | null> {
  const service = serviceOf(env)
  if (!service.ok) return null
  const { ports } = service
  try {
    await refuseNewer(ports)
    return await deliverSoon(ports)
  } catch (error) {
    ports.log.error('Sending alerts failed', { error })
    // As in `scheduled`: the platform lets the alarm ring again, and logs what it gets.
    // oxlint-disable-next-line preserve-caught-error
    throw new Error('Sending alerts failed; the log says why')
  }
}

async function backUp({ BACKUPS: bucket }: Env, ports: Ports): Promise<void> {
  if (bucket === undefined) return
  const { runBackups } = await import('./backup/cron.ts')
  await runBackups({ ...ports, bucket, schema: () => latestMigration(ports.store.db) })
}

async function isBackingUp({ BACKUPS: bucket }: Env, ports: Ports): Promise<boolean> {
  return (await import('./backup/cron.ts')).isBackingUp({ ...ports, bucket: bucket ?? null })
}

/** Runs a job and remembers when, and whether it failed. */
async function noted({ store, now }: Ports, job: Job, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    // The first error counts: if the database is the cause, this fails too.
    await noteRun(store, job, false, now()).catch(() => {})
    throw error
  }
  await noteRun(store, job, true, now())
}

export default {
  async fetch(request, env, execution) {
    const response = await respond(request, env, execution)
    await discardBody(request)
    return response
  },
  /** The cron trigger of wrangler.toml: deletes expired data, and summarises data that collectors delivered. */
  async scheduled({ scheduledTime, cron }, env, execution) {
    const service = serviceOf(env)
    if (!service.ok) throw new Error(service.problems.join('; '))
    const { ports } = service
    try {
      await refuseNewer(ports)
      if (cron === BACKUPS) return await backUp(env, ports)
      if (cron === RETENTION && (await isBackingUp(env, ports))) return
      if (cron === RETENTION) return await noted(ports, 'retention', () => runRetention(ports, scheduledTime))
      if (cron === SURVEY) return await noted(ports, 'survey', () => runSurvey(ports, scheduledTime))
      if (cron !== EACH_MINUTE) await noted(ports, 'upkeep', () => runSchedule(ports, scheduledTime))
      await expireCommands(ports)
      await runAlerts(ports)
      await runAnchor(ports)
      if (cron !== EACH_MINUTE) await runWatching(ports)
    } catch (error) {
      ports.log.error('The scheduled run failed', { error })
      // The platform logs errors with their cause, and a failed query ends with its bound values.
      // oxlint-disable-next-line preserve-caught-error
      throw new Error('The scheduled run failed; the log says why')
    } finally {
      if (service.telling?.isDue()) execution.waitUntil(service.telling.tell())
    }
  },
} satisfies ExportedHandler<Env>
