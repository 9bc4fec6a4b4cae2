import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { forJournal } from '../supervisor/journal.ts'

const NEEDED = [22, 12] as const
/** The package with Node itself for this machine. Unlike `node` it needs no install script, which npm 12 blocks. */
const PACKAGE = `node-${process.platform}-${process.arch}`
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Returns on a Node that is new enough. On an older one it runs the program on the Node that is installed beside the
 * service, or ends the process with one line. Nothing native may be loaded before: it would crash an older Node.
 */
export async function ensureNode(): Promise<void> {
  if (isNewEnough(process.versions.node)) return preferCaller()
  const bundled = findBundled()
  if (bundled !== null) await runOn(bundled)
  const line = `This service needs Node ${NEEDED.join('.')} or newer and was started on ${process.versions.node}. ${remedy()}`
  console.error(forJournal(process.stderr.fd, process.env)('error', line))
  process.exit(1)
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])
}

/** npm finds the bundled Node before its own. The caller's is kept up to date by the system, so it comes first. */
function preferCaller(): void {
  const { npm_node_execpath: caller = '', npm_config_user_agent: agent = '' } = process.env
  const [, version = ''] = /\bnode\/v(\d+\.\d+)/.exec(agent) ?? []
  if (process.execve === undefined || !isNewEnough(version) || !existsSync(caller)) return
  if (findBundled() !== process.execPath || realpathSync(caller) === process.execPath) return
  process.execve(caller, [caller, ...process.execArgv, ...process.argv.slice(1)], process.env)
}

/** Resolves only if this Node does not run on this machine, such as one for glibc where there is only musl. */
function runOn(node: string): Promise<void> {
  const env = { ...process.env }
  // The watchdog of systemd waits for this process, but it is the child that can tell whether it works.
  if (env['WATCHDOG_PID'] === String(process.pid)) delete env['WATCHDOG_PID']
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit', env })
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of STOP_SIGNALS) process.on(signal, pass)
  child.once('exit', (code, signal) => {
    for (const each of STOP_SIGNALS) process.off(each, pass)
    if (signal === null) process.exit(code ?? 1)
    process.kill(process.pid, signal)
  })
  return new Promise((resolve) => child.once('error', () => resolve()))
}

/** The Node that npm installed beside the service; null if there is none that is new enough. */
function findBundled(): string | null {
  const binary = process.platform === 'win32' ? 'node.exe' : 'node'
  for (const name of ['node', PACKAGE]) {
    const folder = join(nodeModules(), name)
    const [, version = ''] = /"version": *"(\d+\.\d+)/.exec(readText(join(folder, 'package.json'))) ?? []
    const path = join(folder, 'bin', binary)
    if (isNewEnough(version) && existsSync(path)) return realpathSync(path)
  }
  return null
}

/** The folder with the packages: a clone contains it, an installed archive is in it. */
function nodeModules(): string {
  return installedIn() ?? join(packageRoot(), 'node_modules')
}

/** The `node_modules` into which the archive was installed; null in a clone or an image. */
function installedIn(): string | null {
  const parent = dirname(packageRoot())
  return basename(parent) === 'node_modules' ? parent : null
}

/** The folder with package.json: two levels above a built file, three above this source. */
function packageRoot(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  return existsSync(join(here, '../../package.json')) ? join(here, '../..') : join(here, '../../..')
}

/** What to do, by commands that exist where the service is installed. */
function remedy(): string {
  if (existsSync(join(packageRoot(), 'package-lock.json'))) return 'Run "npm ci", which brings one, then "npm start".'
  const folder = installedIn()
  // There are no packages for musl, and those for other systems have other names.
  const isPackaged = process.platform === 'linux' && readText('/proc/self/maps').includes('/libc.so.6')
  if (folder === null || !isPackaged) return 'Install a newer one.'
  return `Install a newer one, or put one beside the service: npm install --prefix ${JSON.stringify(dirname(folder))} ${PACKAGE}@24`
}

function readText(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}
