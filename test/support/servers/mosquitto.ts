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

export type MosquittoOptions = {
  readonly port?: number
  /** Whom it lets in; absent: everybody. */
  readonly login?: { readonly username: string; readonly password: string }
  /** Key and certificate in PEM form: it uses TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** The lines of its list of who may read or write what; absent: everybody everything. */
  readonly acl?: readonly string[]
}

/** A real broker on a loopback port that stores nothing on disk. */
export async function startMosquitto(options: MosquittoOptions = {}): Promise<Mosquitto> {
  if (!existsSync(SERVER)) {
    throw new Error(`${SERVER} is missing and these tests need it: apt-get install -y mosquitto`)
  }
  const port = options.port ?? (await freePort())
  const dir = mkdtempSync(join(tmpdir(), 'mesh-mosquitto-'))
  const { login, tls, acl } = options
  const write = (name: string, text: string) => {
    const path = join(dir, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
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
    ...(tls === undefined ? [] : [`keyfile ${write('key.pem', tls.key)}`, `certfile ${write('cert.pem', tls.cert)}`]),
    ...(acl === undefined ? [] : [`acl_file ${write('acl', `${acl.join('\n')}\n`)}`]),
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
    url: `${tls === undefined ? 'mqtt' : 'mqtts'}://127.0.0.1:${port}`,
    stop: async () => {
      await endProcess(child, 'SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
