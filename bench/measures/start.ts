// Cold starts, and sizes of the deliverables.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { workerSize } from '../../test/support/built/worker-size.ts'
import { PASSWORD, startService } from '../servers/processes.ts'
import { median, report } from '../table.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const ROOT = new URL('../..', import.meta.url).pathname

/**
 * Asks the kernel to drop its cache of these files (`posix_fadvise`, which needs no privilege); returns whether that
 * was possible. Node's own program stays cached: this process runs on it.
 */
function forgetFiles(files: readonly string[]): boolean {
  try {
    for (const file of files) {
      execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none'], { stdio: 'ignore' })
    }
    return true
  } catch {
    return false
  }
}

function filesOf(dataDir: string): string[] {
  const program = readdirSync(join(ROOT, 'dist'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const database = ['mesh.db', 'mesh.db-wal', 'mesh.db-shm'].map((name) => join(dataDir, name))
  return [...program, ...database].filter((file) => existsSync(file))
}

/** From the call to the first healthy answer, with nothing of database and program in memory. */
export async function measureStart(dataDir: string): Promise<void> {
  const sqlite = new Database(join(dataDir, 'mesh.db'), { readonly: true })
  const messages = Number(sqlite.prepare('select count(*) from messages').pluck().get())
  sqlite.close()
  const times: number[] = []
  let isCold = true
  for (let round = 0; round < ROUNDS; round++) {
    isCold = forgetFiles(filesOf(dataDir)) && isCold
    const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD }, { monitored: false })
    times.push(service.startMs)
    await service.stop()
  }
  const seconds = median(times) / 1000
  const how = isCold ? 'cold' : 'warm, as dd can not drop the file cache'
  report(
    `start, ${how}, ${messages.toLocaleString('en')} messages`,
    `${seconds.toFixed(2)} s`,
    '≤ 0.7 s',
    seconds <= 0.7,
  )
}

const kilobytes = (file: string) => gzipSync(readFileSync(file), { level: 9 }).length / 1024

export function measureSizes(scratch: string): void {
  execFileSync('npx', ['--no-install', 'wrangler', 'deploy', '--dry-run', '--outdir', join(scratch, 'worker')], {
    cwd: ROOT,
    stdio: 'ignore',
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
  })
  const { start, total } = workerSize(join(scratch, 'worker'))
  const [started, whole] = [start, total].map((bytes) => (bytes / 1000).toFixed(0))
  report('worker, what an isolate starts with', `${started} KB gzip, of ${whole}`, '≤ 300 KB', start <= 300_000)
  execFileSync('sh', ['scripts/runtime-files.sh', join(scratch, 'runtime')], { cwd: ROOT })
  const size = execFileSync('du', ['-sk', join(scratch, 'runtime')]).toString()
  const image = Number.parseInt(size, 10) / 1024
  report('files in the image', `${image.toFixed(0)} MB`, '≤ 60 MB', image <= 60)
  const web = join(ROOT, 'dist/web')
  const html = readFileSync(join(web, 'index.html'), 'utf8')
  const first = [...html.matchAll(/"\.?\/?assets\/([^"]+\.(?:js|css))"/g)].map(([, file]) => file ?? '')
  const sum = (files: Iterable<string>) =>
    [...files].reduce((total, file) => total + kilobytes(join(web, 'assets', file)), kilobytes(join(web, 'index.html')))
  const load = sum(withImports(web, first))
  report('web, first load', `${load.toFixed(0)} KB gzip`, '≤ 60 KB', load <= 60)
  const more = readdirSync(join(web, 'assets')).filter((name) => /^(?:map|chart)-.*\.(?:js|css)$/.test(name))
  const all = sum(withImports(web, [...first, ...more]))
  report('web, with map and charts', `${all.toFixed(0)} KB gzip`, '≤ 130 KB', all <= 130)
}

/** These files, and the scripts that they import from the start. */
function withImports(web: string, files: readonly string[]): Set<string> {
  const found = new Set<string>()
  const add = (file: string) => {
    if (found.has(file)) return
    found.add(file)
    const text = readFileSync(join(web, 'assets', file), 'utf8')
    for (const [, name = ''] of text.matchAll(/(?:from|import)\s*["'`]\.\/([^"'`]+\.js)["'`]/g)) add(name)
  }
  files.forEach(add)
  return found
}
