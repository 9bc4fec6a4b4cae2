import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endProcess } from './end-process.ts'
import { freePort } from './free-port.ts'

const SERVER = '/usr/bin/redis-server'

export type RedisServer = {
  readonly port: number
  readonly url: string
  readonly process: ChildProcess
  stop(): Promise<void>
}

/** A real Redis on a loopback port that stores nothing on disk. */
export async function startRedis(options: { port?: number; args?: string[] } = {}): Promise<RedisServer> {
  if (!existsSync(SERVER)) {
    throw new Error(`${SERVER} is missing and these tests need it: apt-get install -y redis-server`)
  }
  const port = options.port ?? (await freePort())
  const dir = mkdtempSync(join(tmpdir(), 'mesh-redis-'))
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]
  const child = spawn(SERVER, [...args, ...(options.args ?? [])], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.includes('Ready to accept connections')) break
  }
  child.stdout.resume()
  if (!lines.some((line) => line.includes('Ready to accept'))) throw new Error(`Redis ended:\n${lines.join('\n')}`)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    process: child,
    stop: async () => {
      await endProcess(child, 'SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
