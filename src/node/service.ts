import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import { createApp } from '../app/app.ts'
import { sweepProviderSessions } from '../app/accounts/oidc/ending.ts'
import { sweepSessions } from '../app/accounts/sessions/sessions.ts'
import { warnWithoutAddress } from '../app/accounts/mail/account-mail.ts'
import { createProviders } from '../app/accounts/oidc/oidc.ts'
import type { Config } from '../app/config/config.ts'
import type { Ports } from '../app/base/context.ts'
import type { Restores } from '../app/system/backup/backup.ts'
import { hashBodiesBy } from '../app/http/compression.ts'
import { AppError } from '../app/http/errors.ts'
import { checkAuditHead } from '../app/audit/head.ts'
import { createLog, type Log } from '../app/base/log.ts'
import { systemClock } from './clock.ts'
import { watchClock } from '../app/base/pacing/clock-watch.ts'
import { recordAs } from '../app/mesh/map/region/region.ts'
import { createMeter } from '../app/system/metrics/meter.ts'
import { makeFirstAdmin } from '../app/accounts/users/first-admin.ts'
import { resealPlaces } from '../app/system/copies/reseal.ts'
import { resealAll } from '../app/system/reseal.ts'
import { giveTurnsBy } from '../app/base/pacing/next-turn.ts'
import { eachTurn } from '../app/base/pacing/slices.ts'
import { warnIfNobodyEnters } from '../app/accounts/recovery/ways-in.ts'
import { RestoreRefused } from '../app/system/backup/format/damage.ts'
import { startAlerting } from './alerts/alerting.ts'
import { openMail } from './alerts/mail.ts'
import { openOutbound } from './alerts/outbound.ts'
import { startAutomation } from './automation.ts'
import { databaseFile, serveBackups, settleDatabase } from './backup/service.ts'
import { lockExclusively, startLockFile } from './backup/folder/lock.ts'
import { calmWhileFull, type FullDiskLog } from './disk/full-log.ts'
import { openReserve } from './disk/reserve.ts'
import { createAddressing } from './http/client-address.ts'
import { readStandby } from '../app/settings/standby.ts'
import { openDatabase, type SqliteStore } from './database.ts'
import { type Flushing, openFlushing } from './flushing/flushing.ts'
import { hasLinks } from './radio/configured.ts'
import { openConnecting } from './radio/connecting.ts'
import { readConfig, unknownVariables } from './start/environment.ts'
import type { Duties } from './instances/instance.ts'
import { openInstances } from './instances/open-instances.ts'
import { openMapArchive } from './map/archive.ts'
import { keepResuming, openRegions } from './map/region/regions.ts'
import { nativePasswordHasher } from './passwords.ts'
import { createProcessMetrics } from './metrics/process.ts'
import { readAuthorities } from './radio/mqtt/mqtt.ts'
import { openRadio } from './radio/radio.ts'
import { startSealing } from './upkeep/sealing.ts'
import { keptSessionSecret } from './start/secret.ts'
import { openSessions } from './sessions.ts'
import { zlibCompressor } from './http/compressor.ts'
import { forJournal } from './supervisor/journal.ts'
import { openSupervisor, type Supervisor } from './supervisor/systemd.ts'
import { findRestarter } from './supervisor/restarter.ts'
import { openSyslog } from './syslog.ts'
import { listen } from './http/server.ts'
import { prepareDataDir, refuseAddress, refuseNetwork, StartRefused } from './start/problems.ts'
import { removeLeftScratch } from './moving-in/source/scratch.ts'
import { startDownlink } from './collector/downlink.ts'
import { startExpiring } from './collector/expiring.ts'
import { builtSite, serveSite } from './http/static.ts'
import { openHomeAssistant } from './home-assistant/home-assistant.ts'
import { memoryGiver, startResting, workedSoFar } from './upkeep/resting.ts'
import { startUpkeep } from './upkeep/upkeep.ts'
import { startWatching } from './upkeep/watching.ts'
import { oneEachRound } from './turns.ts'
import { readTranslation } from './translations.ts'
import { readAppVersion } from './version.ts'
import { MINUTE_MS } from '../shared/time.ts'

/** Passed to every part, so that no other file of this adapter chooses a clock. */
const clock = systemClock

const SWEEP_INTERVAL_MS = 10 * MINUTE_MS
const SHUTDOWN_GRACE_MS = 8000
/** EX_TEMPFAIL of sysexits.h: Restart=on-failure starts only what failed. */
const RESTART_CODE = 75
/** A migration of a large database may take long. */
const START_WAIT_MS = 120_000

/** Reads the environment, starts everything, and stops it on SIGTERM, SIGINT or SIGHUP. Exits with 1 when it can't start. */
export async function run(env: NodeJS.ProcessEnv): Promise<void> {
  // All files contain hashes or messages, even if others can enter the directory.
  process.umask(0o077)
  giveTurnsBy(oneEachRound())
  hashBodiesBy((bytes) => hash('sha256', bytes))
  const parsed = readConfig(env)
  if (!parsed.ok) return refuseStart(parsed.problems, env)
  const forStdout = forJournal(process.stdout.fd, env)
  const config = { ...parsed.config, DATA_DIR: resolve(parsed.config.DATA_DIR) }
  const written = createLog({
    level: config.LOG_LEVEL,
    format: config.LOG_FORMAT ?? (process.stdout.isTTY ? 'pretty' : 'json'),
    now: clock.now,
    write: (line, level) => process.stdout.write(`${forStdout(level, line)}\n`),
  })
  const log = calmWhileFull(written)
  for (const { name, hint } of unknownVariables(env)) {
    log.warn(`The variable ${name} is unknown and has no effect${hint === null ? '' : `; ${hint}`}`)
  }
  try {
    refuseNetwork(parsed.config, log)
    prepareDataDir(parsed.config.DATA_DIR)
    removeCopies(parsed.config.DATA_DIR, log)
    // Before the supervisor's variables are removed.
    const restartBy = config.RESTART_BY ?? findRestarter(env, process)
    await start(withSecret(config), log, openSupervisor(env, log), restartBy)
  } catch (error) {
    if (error instanceof AppError && error.code === 'weak_password') return refuseStart([error.message], env)
    if (error instanceof StartRefused) return refuseStart([error.message], env)
    if (error instanceof RestoreRefused) log.error(error.message)
    else log.error('The service could not start', { error })
    process.exit(1)
  }
}

/** What killed imports left. Without it the service starts as well. */
function removeCopies(dataDir: string, log: Log): void {
  try {
    removeLeftScratch(dataDir)
  } catch (error) {
    log.warn('The copy of an import that was killed is still there', { dataDir, error })
  }
}

function refuseStart(problems: readonly string[], env: NodeJS.ProcessEnv): never {
  const forStderr = forJournal(process.stderr.fd, env)
  for (const line of problems) process.stderr.write(`${forStderr('error', line)}\n`)
  process.exit(1)
}

function withSecret(config: Config): Config {
  return config.SESSION_SECRET.length > 0 ? config : { ...config, SESSION_SECRET: [keptSessionSecret(config.DATA_DIR)] }
}

async function start(
  config: Config,
  log: FullDiskLog,
  supervisor: Supervisor,
  restartBy: Restores['restartBy'],
): Promise<void> {
  const startedAt = clock.now()
  const homeAssistant = openHomeAssistant(config)
  const { lock, report } = await settleDatabase(config, log, supervisor)
  const disk = openReserve({ dataDir: config.DATA_DIR, log })
  disk.makeRoom()
  let flushing: Flushing | null = null
  const store = inTurn(config, () =>
    openDatabase(
      databaseFile(config),
      (done, of) => supervisor.starting('Migrating the database', `${done} of ${of} steps`),
      (sqlite) => (flushing = openFlushing(sqlite, { log, giveUp: () => giveUp(log) })),
    ),
  )
  await report(store)
  await refuseRadiosOfStandby(config, store, log)
  disk.countIn(store.spareBytes)
  const sessions = await openSessions(config, store, log)
  const meter = createMeter({ now: clock.monotonic, process: createProcessMetrics() })
  const clockWatch = await watchClock({ store, log, now: clock.now, monotonic: clock.monotonic })
  const providers = createProviders({ config, log, now: clock.now, clockWatch })
  const outbound = openOutbound()
  const mail = openMail(config)
  // The radios are opened later, by whichever instance has them.
  if (config.MESHTASTIC_MQTT_CA !== null) readAuthorities(config.MESHTASTIC_MQTT_CA)
  const instances = inTurn(config, () => openInstances({ config, log, clock }))
  const { radio, events, isOnDuty: mayWrite } = instances
  const { promise: restarting, resolve: restart } = Promise.withResolvers<void>()
  const backups = serveBackups({ config, store, log, clock, mayRun: mayWrite, restartBy, restart })
  const record = recordAs({ store, now: clock.now, ip: null, requestId: null, viewer: null })
  const regions = openRegions({ config, log, clock, record })
  let phase: ReturnType<Ports['phase']> = 'starting'
  const ports: Ports = {
    config,
    store,
    sessions: sessions.store,
    buckets: sessions.buckets,
    passwords: nativePasswordHasher(),
    log,
    providers,
    backups: backups.port,
    restores: backups.restores,
    copies: backups.copies.port,
    radio,
    connecting: openConnecting({ config, store, clock }),
    events,
    meter,
    compressor: zlibCompressor(),
    outbound,
    mail,
    syslog: openSyslog(),
    mapArchive: await openMapArchive(config),
    mapRegions: regions,
    clockWatch,
    translations: readTranslation,
    version: readAppVersion(),
    disk,
    instances,
    phase: () => phase,
    startedAt,
    now: clock.now,
    ...createAddressing(config.TRUSTED_PROXIES, log, config.PROXY_AUTH_HEADER),
  }
  const app = createApp(() => ports, serveSite(builtSite(), config.PUBLIC_URL))
  // The port is taken before the first password is shown, because it is shown only once. Requests wait until then, except
  // those of the programs that ask for it.
  const { promise: ready, resolve: open } = Promise.withResolvers<void>()
  const answer: typeof app.fetch = (...request) =>
    phase === 'starting' && !isProbe(request[0]) ? ready.then(() => app.fetch(...request)) : app.fetch(...request)
  const server = await listen(answer, config.PORT, config.HOST).catch((error: unknown) => refuseAddress(config, error))
  instances.start({
    begin: () =>
      beginDuties(
        { ...ports, clockWatch, disk, meter, clock, mayWrite, isBackingUp: () => backups.port.running() !== null },
        backups,
        homeAssistant,
        regions,
      ),
    fetch: app.fetch,
  })
  await announceFirstAdmin(ports)
  phase = 'serving'
  open()
  await warnIfNobodyEnters(ports)
  await checkAuditHead(ports)
  void resealAll(ports, eachTurn, resealPlaces).catch((error: unknown) => {
    log.error('What an earlier SESSION_SECRET sealed could not be sealed anew; the next start tries again', { error })
  })
  warnWithoutAddress(ports)
  const sweeper = setInterval(() => sweep({ ...ports, now: clockWatch.trusted }), SWEEP_INTERVAL_MS)
  const sealing = startSealing(ports, clock)
  const resting = startResting({ worked: workedSoFar, giveBack: memoryGiver(store.sqlite) })
  const reserving = disk.keep()
  stopOn(
    restarting,
    async (signal) => {
      phase = 'stopping'
      supervisor.stopping()
      log.info('Stopping', { signal })
      clearInterval(sweeper)
      resting.stop()
      events.close()
      await reserving
      await Promise.all([server.close(SHUTDOWN_GRACE_MS), instances.leave()])
      await instances.close()
      await backups.close()
      await sessions.close()
      await sealing.stop()
      try {
        // What the disk refuses stays in the log, which a normal closing would delete: see `giveUp`.
        await flushing?.close()
        store.close()
      } finally {
        lock.release()
      }
      log.info('Stopped')
    },
    log,
  )
  // Last, because a supervisor that waits for this may stop the service immediately.
  const { HOST: host, DATA_DIR: dataDir } = config
  supervisor.ready(`Serving on ${host}, port ${server.port}`, () => flushing?.isStalled() ?? false)
  log.info('Listening', { host, port: server.port, dataDir, startMs: clock.now() - startedAt })
}

/** Two services on one radio would disconnect each other, and both would answer and alert. */
async function refuseRadiosOfStandby(config: Config, store: SqliteStore, log: Log): Promise<void> {
  if ((await readStandby(store)) !== 'standby') return
  if (hasLinks(config)) {
    throw new StartRefused(
      'This service is a standby, which has no radios: unset MESHTASTIC_TCP, MESHTASTIC_MQTT_URL and DEMO, or promote it first: npm run cli promote',
    )
  }
  log.info('This service is a standby: it sends no alerts about the mesh')
}

/** Whether a load balancer or a supervisor asks for the state of the process. */
function isProbe({ url }: Request): boolean {
  return ['/api/ready', '/api/live'].includes(new URL(url).pathname)
}

/** Prevents two instances that start together from both creating or migrating the same file. */
function inTurn<T>(config: Config, open: () => T): T {
  const turn = lockExclusively(startLockFile(config.DATA_DIR), START_WAIT_MS)
  if (turn === null)
    throw new StartRefused(`DATA_DIR: another instance has been starting for ${START_WAIT_MS / 1000} s`)
  try {
    return open()
  } finally {
    turn.release()
  }
}

/** The duties of one instance for all on the same DATA_DIR. */
function beginDuties(
  needs: Parameters<typeof openRadio>[0] &
    Parameters<typeof startUpkeep>[0] &
    Parameters<typeof startWatching>[0] &
    Pick<Ports, 'version'> &
    Omit<Parameters<typeof startAlerting>[0], 'radio' | 'monotonic'>,
  backups: ReturnType<typeof serveBackups>,
  homeAssistant: ReturnType<typeof openHomeAssistant>,
  regions: ReturnType<typeof openRegions>,
): Duties {
  const radio = openRadio(needs)
  const automation = startAutomation({ ...needs, radio }, clock)
  radio.start(automation.hear)
  const upkeep = startUpkeep(needs)
  const watching = startWatching(needs)
  const downlink = startDownlink({ ...needs, radio, monotonic: clock.monotonic }, clock)
  const expiring = startExpiring(needs, clock)
  const publishing = homeAssistant?.({ ...needs, clock })
  const resuming = keepResuming(regions, clock)
  const alerting = startAlerting({ ...needs, radio, monotonic: clock.monotonic }, clock)
  backups.start().catch((error: unknown) => needs.log.error('The schedule of backups failed', { error }))
  backups.copies.start()
  return {
    radio,
    async stop(why) {
      backups.stop()
      await backups.copies.stop()
      await downlink.stop()
      await expiring.stop()
      await automation.stop()
      await alerting.stop()
      await publishing?.stop()
      await resuming.stop()
      await Promise.all([radio.close(why), upkeep.stop(), watching.stop()])
    },
  }
}

function sweep(ports: Ports): void {
  Promise.all([sweepSessions(ports), sweepProviderSessions(ports)]).catch((error: unknown) =>
    ports.log.error('Sweeping sessions failed', { error }),
  )
}

async function announceFirstAdmin(ports: Ports): Promise<void> {
  const admin = await makeFirstAdmin(ports)
  if (!admin.made) return
  ports.log.info('First administrator created', { username: admin.username })
  if (admin.randomPassword === null) return
  // Written to standard output and not to the log, because logs are stored and sent elsewhere.
  process.stdout.write(
    `\n  Sign in as "${admin.username}" with the temporary password  ${admin.randomPassword}\n  It is shown only once.\n\n`,
  )
}

/**
 * Ends this process without closing the database. The next start checks and copies the whole log; a normal stop would take
 * what is only there for copied.
 */
function giveUp(log: Log): void {
  log.error('The disk refused to keep changes; this process ends so that the next start checks what is on the disk')
  process.exit(1)
}

/** Stops at a signal, or when the service shall restart: then with a code that supervisors take for a failure. */
function stopOn(restarting: Promise<void>, stop: (signal: string) => Promise<void>, log: Log): void {
  let stopping = false
  const handle = (signal: string, code = 0) => {
    if (stopping) return
    stopping = true
    stop(signal).then(
      () => process.exit(code),
      (error: unknown) => {
        log.error('Stopping failed', { error })
        process.exit(1)
      },
    )
  }
  // A terminal that closes sends SIGHUP. Nothing is reloaded.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => handle(signal))
  void restarting.then(() => handle('restart', RESTART_CODE))
}
