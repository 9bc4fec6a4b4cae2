import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import Database from 'better-sqlite3'

const MONITOR = new URL('monitor.ts', import.meta.url).pathname
const LIMITS = new URL('limits.ts', import.meta.url).pathname
const SERVICE = new URL('../../dist/node/main.js', import.meta.url).pathname

/** The password of every account of a run. */
export const PASSWORD = 'bench measures ratios'

/** What the image tells Node and its C library. */
export const SHIPPED: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from(
    readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8').matchAll(/\b(NODE_OPTIONS|MALLOC_\w+)=(\S+)/g),
    ([, name = '', value = '']) => [name, value],
  ),
)
/** The options of Node among these. */
export const FLAGS = SHIPPED['NODE_OPTIONS'] ?? ''

/** A service that stops finishes its work within 10 s. */
const STOP_MS = 20_000

export type Running = { readonly child: ChildProcess; readonly port: number; stop(): Promise<void> }

const children = new Set<ChildProcess>()
// A failed measurement leaves no server behind.
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))

type Monitored = { monitored?: boolean }

/**
 * The built service on a data directory; resolves at its first healthy answer, with the time taken. Unless `monitored`,
 * it cannot report its processor time, and starts as it does without a bench.
 */
export async function startService(
  dataDir: string,
  env: Record<string, string> = {},
  { monitored = true }: Monitored = {},
): Promise<Running & { startMs: number }> {
  const port = await freePort()
  const begun = performance.now()
  const child = fork(SERVICE, {
    env: {
      ...process.env,
      ...SHIPPED,
      DATA_DIR: dataDir,
      PORT: String(port),
      HOST: '127.0.0.1',
      LOG_LEVEL: 'warn',
      ...env,
    },
    execArgv: monitored ? ['--import', MONITOR] : [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  children.add(child)
  while (!(await isHealthy(port))) {
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`)
  }
  return { child, port, startMs: performance.now() - begun, stop: () => stop(child) }
}

async function isHealthy(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/api/health`).then(
    (answer) => answer.ok,
    () => false,
  )
}

/** The server of `limits.ts` on the same data directory, without flags; `bare` is its plain `node:http`. */
export async function startLimits(
  dataDir: string,
  bodies: readonly { name: string; url: string; headers: Record<string, string> }[],
): Promise<Running & { readonly bare: Running }> {
  const child = fork(LIMITS, [dataDir, JSON.stringify(bodies)], {
    env: { ...process.env, NODE_OPTIONS: '' },
    execArgv: ['--import', MONITOR],
  })
  children.add(child)
  const [{ port, bare }] = await once(child, 'message')
  const running = { child, stop: () => stop(child) }
  return { ...running, port, bare: { ...running, port: bare } }
}

/** Ends a process, after a while by force: Node may hang at its end (nodejs/node#54918). */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await gone
    clearTimeout(force)
  }
  children.delete(child)
}

/** A process of the bench itself, which ends with it. */
export function startHelper(file: URL, args: readonly string[]): ChildProcess {
  const child = fork(file.pathname, args)
  children.add(child)
  return child
}

/** Asks a process that answers each message with one. */
export async function ask<T>(child: ChildProcess, message: 'cpu' | 'watch' | 'read' | 'begin' | 'end'): Promise<T> {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0].answer
}

/** Microseconds of processor time used by the server in all its threads. */
export const readCpu = ({ child }: Running): Promise<number> => ask(child, 'cpu')

/**
 * The longest stretch of processor time that the server's main thread used during `work` without a turn for others, in
 * milliseconds: other programs do not change it.
 */
export async function longestHold({ child }: Running, work: () => Promise<void>): Promise<number> {
  await ask(child, 'watch')
  await work()
  return ask(child, 'read')
}

/** Resident memory in megabytes: now, and the highest so far. */
export function memoryMb({ child }: Running): { now: number; most: number } {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const of = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
  return { now: of('VmRSS'), most: of('VmHWM') }
}

export async function signIn(port: number, username = 'admin'): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password: PASSWORD }),
  })
  if (!answer.ok) throw new Error(`sign-in: ${answer.status}`)
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

/** Cookies of several administrators, the first of whom is `admin`: one user's simultaneous requests are limited. */
export async function signInPeople(dataDir: string, port: number, count: number): Promise<string[]> {
  const sqlite = new Database(`${dataDir}/mesh.db`)
  sqlite.pragma('busy_timeout = 5000')
  const insert =
    sqlite.prepare(`insert or ignore into users (username, auth_provider, password_hash, is_admin, created_at)
    select ?, 'local', password_hash, 1, 1 from users where username = 'admin'`)
  const names = Array.from({ length: count }, (_, n) => (n === 0 ? 'admin' : `person${n}`))
  for (const name of names.slice(1)) insert.run(name)
  sqlite.close()
  const cookies: string[] = []
  for (const name of names) cookies.push(await signIn(port, name))
  return cookies
}

export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
