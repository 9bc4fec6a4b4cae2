import { spawn, spawnSync } from 'node:child_process'
import type { Log } from '../../app/base/log.ts'
import { MINUTE_MS, SECOND_MS } from '../../shared/time.ts'
import { createTimer, systemClock } from '../clock.ts'

// Node has no datagram sockets for local addresses, so this program of systemd sends the messages: sd_notify(3).
const PROGRAM = 'systemd-notify'
const ANSWER_MS = 10 * SECOND_MS
/** How long one step of a migration or a restore may take. Both may block the event loop meanwhile. */
const STEP_MS = 30 * MINUTE_MS
const PROGRESS_MS = 10 * SECOND_MS
const MAX_TIMER_MS = 2 ** 31 - 1

/** What starts and watches this process, if it wants to know how it is. */
export type Supervisor = {
  /** A step of the start that may take long. Returns when the supervisor knows. */
  starting(step: string, progress?: string): void
  /** Requests are answered from now on. While `isStalled`, the service is not reported as alive. */
  ready(status: string, isStalled: () => boolean): void
  stopping(): void
}

const NOBODY: Supervisor = { starting() {}, ready() {}, stopping() {} }

/**
 * The supervisor of NOTIFY_SOCKET. Removes its variables from `env`, so that no other child process speaks for this one.
 * What cannot be sent is logged once, and the service runs on.
 */
export function openSupervisor(env: NodeJS.ProcessEnv, log: Log): Supervisor {
  let isStalled = () => false
  const { NOTIFY_SOCKET: socket = '', PATH: path = '' } = env
  const watchdogMs = readWatchdog(env)
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  if (socket === '') return NOBODY

  const options = { env: { PATH: path, NOTIFY_SOCKET: socket }, timeout: ANSWER_MS }
  let isMissing = false
  let isReported = false
  const report = (error: unknown, said: string) => {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    isMissing ||= isAbsent
    if (isReported) return
    isReported = true
    if (isAbsent) {
      log.warn(
        'systemd-notify is missing: systemd does not learn that the service is ready; install the package systemd, or set Type=exec and WatchdogSec=0 in the unit',
      )
    } else
      log.warn('systemd could not be told how the service is', { why: said.trim(), ...(error !== null && { error }) })
  }
  const sendNow = (...messages: readonly string[]) => {
    if (isMissing) return
    const { error = null, status, stderr } = spawnSync(PROGRAM, messages, { ...options, encoding: 'utf8' })
    if (error !== null || status !== 0) report(error, stderr ?? '')
  }
  const send = (...messages: readonly string[]) => {
    if (isMissing) return
    const child = spawn(PROGRAM, messages, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
    child.once('error', (error) => report(error, ''))
    child.once('close', (code) => {
      if (code !== 0) report(null, said)
    })
  }

  const due = createTimer(systemClock)
  const watch = (everyMs: number) => {
    // A timer alone would also come while sockets are starved: after it, the loop has to look at them first.
    due.start(everyMs, () =>
      setImmediate(() => {
        if (!isStalled()) send('WATCHDOG=1')
        watch(everyMs)
      }),
    )
  }
  let isStopping = false
  let told = { step: '', at: 0 }
  return {
    starting(step, progress = '') {
      const at = systemClock.monotonic()
      if (step === told.step && at - told.at < PROGRESS_MS) return
      told = { step, at }
      sendNow(`EXTEND_TIMEOUT_USEC=${STEP_MS * 1000}`, `STATUS=${step}${progress === '' ? '' : `: ${progress}`}`)
    },
    ready(status, stalled) {
      if (isStopping) return
      isStalled = stalled
      sendNow('READY=1', `STATUS=${status}`)
      if (watchdogMs !== null) watch(Math.min(watchdogMs / 2, MAX_TIMER_MS))
    },
    stopping() {
      isStopping = true
      due.stop()
      sendNow('STOPPING=1', 'STATUS=Stopping')
    },
  }
}

/** How often this process must show that it is alive, in milliseconds; null if nobody waits for it: sd_watchdog_enabled(3). */
function readWatchdog({ WATCHDOG_USEC: micros = '', WATCHDOG_PID: pid = '' }: NodeJS.ProcessEnv): number | null {
  if (!/^[1-9]\d{0,17}$/.test(micros) || (pid !== '' && pid !== String(process.pid))) return null
  return Number(micros) / 1000
}
