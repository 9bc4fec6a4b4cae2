import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'

const BENCH = new URL('.', import.meta.url).pathname
const SERVICE = new URL('../dist/node/main.js', import.meta.url).pathname

export type Running = { readonly child: ChildProcess; readonly port: number; stop(): Promise<void> }

const children = new Set<ChildProcess>()
// A measurement that failed leaves no server behind.
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))

/** The built service on a data directory; resolves at its first healthy answer, with the time that took. */
export async function startService(
  dataDir: string,
  env: Record<string, string> = {},
): Promise<Running & { startMs: number }> {
  const port = await freePort()
  const begun = performance.now()
  const child = fork(SERVICE, {
    env: { ...process.env, DATA_DIR: dataDir, PORT: String(port), HOST: '127.0.0.1', LOG_LEVEL: 'warn', ...env },
    execArgv: ['--import', `${BENCH}monitor.ts`],
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

/** A server of this folder to measure against. */
export async function startLimit(
  kind: 'bare' | 'bytes',
  dataDir = '',
  env: Record<string, string> = {},
): Promise<Running> {
  const child = fork(`${BENCH}${kind}.ts`, [dataDir], { env: { ...process.env, ...env } })
  children.add(child)
  const [{ port }] = await once(child, 'message')
  return { child, port, stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

/** Begins to watch the event loop; `readPause` ends it and answers the longest pause, in milliseconds. */
export function watchPauses(service: Running): void {
  service.child.send('watch')
}

export async function readPause(service: Running): Promise<number> {
  const answer = once(service.child, 'message')
  service.child.send('read')
  return (await answer)[0].maxMs
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
