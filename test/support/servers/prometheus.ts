import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endProcess } from './end-process.ts'
import { freePort } from './free-port.ts'

const SERVER = '/usr/bin/prometheus'

export type Prometheus = {
  /** The result of an instant query. Throws what Prometheus says about an invalid one. */
  query(expression: string): Promise<readonly { readonly metric: Readonly<Record<string, string>> }[]>
  stop(): Promise<void>
}

/** A real Prometheus on a loopback port that scrapes these addresses each second as the job `mesh`. */
export async function startPrometheus(
  targets: readonly { readonly url: string; readonly token: string }[],
): Promise<Prometheus> {
  if (!existsSync(SERVER)) {
    throw new Error(`${SERVER} is missing and these tests need it: apt-get install -y prometheus`)
  }
  const dir = mkdtempSync(join(tmpdir(), 'mesh-prometheus-'))
  const port = await freePort()
  const jobs = targets.map(({ url, token }, index) => ({
    job_name: `mesh-${index}`,
    metrics_path: '/api/metrics',
    scrape_interval: '1s',
    scrape_timeout: '1s',
    authorization: { credentials: token },
    static_configs: [{ targets: [new URL(url).host] }],
    // Two jobs only because each target has its own token.
    relabel_configs: [{ target_label: 'job', replacement: 'mesh' }],
  }))
  // JSON is YAML.
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify({ scrape_configs: jobs }), { mode: 0o600 })
  const args = [`--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`]
  const child = spawn(SERVER, [...args, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    if (line.includes('Server is ready')) break
  }
  child.stderr.resume()
  if (!said.some((line) => line.includes('Server is ready'))) throw new Error(`Prometheus ended:\n${said.join('\n')}`)
  const ask = async (path: string) => {
    const { status, error, data } = Object(await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json())
    if (status !== 'success') throw new Error(`${path}: ${error}`)
    return Object(data)
  }
  return {
    query: async (expression) => (await ask(`query?query=${encodeURIComponent(expression)}`)).result,
    stop: async () => {
      await endProcess(child, 'SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** What promtool prints; `input` is its standard input. Rejects if it finds something. */
export function promtool(args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('promtool', args, (error, out, err) => {
      if (error === null) resolve(`${out}${err}`)
      else reject(new Error(`${out}${err}`))
    })
    child.stdin?.end(input)
  })
}
