import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

export type Built = { readonly main: string }

/** The program as `npm run build` makes it, without pages. */
export function buildService(): Built {
  return { main: join(buildOnce('program', buildProgramInto), 'dist/node/main.js') }
}

/** The console of the built program: it starts several times as fast as from source. */
export function buildCli(): string {
  return join(buildService().main, '../cli.js')
}

/** Runs a program of the console with only this environment and PATH. */
export function runCli(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const own = { ...programEnv(), ...env }
    const child = execFile(process.execPath, [file, ...args], { env: own }, (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

/** The program with its pages, as `npm run build` makes them. */
export function buildSite(): Built & { readonly files: string } {
  const program = buildOnce('program', buildProgramInto)
  const dir = buildOnce('site', (into) => {
    cpSync(program, into, { recursive: true, verbatimSymlinks: true })
    const args = ['run', '--silent', 'build:web', '--', '--outDir', join(into, 'dist/web')]
    execFileSync('npm', args, { cwd: ROOT, stdio: 'pipe' })
  })
  return { main: join(dir, 'dist/node/main.js'), files: join(dir, 'dist/web') }
}

/** Fills a folder once for all files of the run; returns its path. Files that begin at the same time wait for the first. */
export function buildOnce(name: string, build: (into: string) => void): string {
  const dir = join(inject('builds'), name)
  const building = `${dir}.building`
  while (!existsSync(dir)) {
    // Undefined: another file made the folder.
    if (mkdirSync(building, { recursive: true }) === undefined) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
      continue
    }
    try {
      if (existsSync(dir)) break
      const own = mkdtempSync(`${dir}-`)
      build(own)
      renameSync(own, dir)
    } finally {
      rmdirSync(building)
    }
  }
  return dir
}

function buildProgramInto(dir: string): void {
  for (const name of ['node_modules', 'drizzle', 'package.json']) symlinkSync(join(ROOT, name), join(dir, name))
  execFileSync(process.execPath, ['scripts/build.js', '--program', join(dir, 'dist')], { cwd: ROOT, stdio: 'pipe' })
}

export type Service = {
  readonly url: string
  readonly process: ChildProcess
  /** Everything on standard output so far, one line each. */
  readonly lines: readonly string[]
  /** Sends the signal and returns the exit code, null after a kill. */
  stop(signal: NodeJS.Signals): Promise<number | null>
}

const listening = z.object({ message: z.literal('Listening'), port: z.int() })

/** Starts a built service on a free loopback port, in `DATA_DIR`. Throws its output if it ends instead. */
export async function startService(
  { main }: Built,
  env: Record<string, string>,
  flags: readonly string[] = [],
): Promise<Service> {
  const child = spawn(process.execPath, [...flags, main], { env: serviceEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  // Not at its exit: its last output may not have arrived yet.
  const ended = once(child, 'close')
  const errors = text(child.stderr)
  const lines: string[] = []
  const port = await new Promise<number | null>((resolve) => {
    createInterface({ input: child.stdout })
      .on('line', (line) => {
        lines.push(line)
        const parsed = line.startsWith('{') ? listening.safeParse(JSON.parse(line)) : null
        if (parsed?.success) resolve(parsed.data.port)
      })
      .on('close', () => resolve(null))
  })
  if (port === null) throw new Error(`the service ended:\n${lines.join('\n')}\n${await errors}`)
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    lines,
    stop: async (signal) => {
      child.kill(signal)
      const [code] = await ended
      return typeof code === 'number' ? code : null
    },
  }
}

/** Signs the first administrator in; returns the cookies of the session. */
export async function signInAt(url: string, password: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ username: 'admin', password })
  const answer = await fetch(`${url}/api/auth/login`, { method: 'POST', headers, body })
  if (answer.status !== 200) throw new Error(`sign-in: ${answer.status} ${await answer.text()}`)
  const cookies = answer.headers.getSetCookie().map((line) => line.split(';')[0])
  return cookies.join('; ')
}

/** Runs a built service that is expected to refuse to start. */
export async function runToEnd(
  { main }: Built,
  env: Record<string, string>,
  node: { path?: string; args?: string[] } = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const args = [...(node.args ?? []), main]
  const child = spawn(node.path ?? process.execPath, args, { env: serviceEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: typeof code === 'number' ? code : null, out, err }
}

function serviceEnv(env: Record<string, string>): Record<string, string> {
  return { ...programEnv(), PORT: '0', HOST: '127.0.0.1', LOG_FORMAT: 'json', ...env }
}

/** What a program needs from this environment, and what lets it start in half of the time. */
export function programEnv(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) }
}
