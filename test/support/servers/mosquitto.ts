import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endProcess } from './end-process.ts'
import { freePort } from './free-port.ts'

const SERVER = '/usr/sbin/mosquitto'

export type Mosquitto = {
  readonly port: number
  readonly url: string
  /** Kills it; what it retains is lost. */
  stop(): Promise<void>
}

/** A real broker on a loopback port that stores nothing on disk. `login`: whom it lets in; absent: everybody. */
export async function startMosquitto(
  options: { readonly port?: number; readonly login?: { readonly username: string; readonly password: string } } = {},
): Promise<Mosquitto> {
  if (!existsSync(SERVER)) {
    throw new Error(`${SERVER} is missing and these tests need it: apt-get install -y mosquitto`)
  }
  const port = options.port ?? (await freePort())
  const dir = mkdtempSync(join(tmpdir(), 'mesh-mosquitto-'))
  const { login } = options
  const passwords = join(dir, 'passwords')
  if (login !== undefined) {
    writeFileSync(passwords, `${login.username}:${login.password}\n`, { mode: 0o600 })
    const hashing = spawn('/usr/bin/mosquitto_passwd', ['-U', passwords], { stdio: 'inherit' })
    await new Promise((resolve) => hashing.once('exit', resolve))
  }
  const lines = [
    `listener ${port} 127.0.0.1`,
    'persistence false',
    'log_dest stderr',
    'user root',
    login === undefined ? 'allow_anonymous true' : `allow_anonymous false\npassword_file ${passwords}`,
  ]
  const file = join(dir, 'mosquitto.conf')
  writeFileSync(file, `${lines.join('\n')}\n`)
  const child = spawn(SERVER, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    if (/mosquitto version \S+ running/.test(line)) break
  }
  child.stderr.resume()
  if (!said.some((line) => line.includes('running'))) throw new Error(`mosquitto ended:\n${said.join('\n')}`)
  return {
    port,
    url: `mqtt://127.0.0.1:${port}`,
    stop: async () => {
      await endProcess(child, 'SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
