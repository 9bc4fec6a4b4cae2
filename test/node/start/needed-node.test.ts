import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Built, buildService, runToEnd, startService } from '../../support/built/built-service.ts'

const BUNDLED = realpathSync(join(import.meta.dirname, '../../../node_modules/node/bin/node'))
const PACKAGE = `node-${process.platform}-${process.arch}`

let dir: string
let data: string
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'mesh-node-')))
  data = join(dir, 'data')
})
afterEach(() => rmSync(dir, { recursive: true }))

/** Flags that let a process believe that it is of this version, but not the processes that it starts. */
function pretending(version: string): string[] {
  const fake = `if (process.env.PRETENDED === undefined) {
    process.env.PRETENDED = 'true'
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })
  }`
  return ['--import', `data:text/javascript,${encodeURIComponent(fake)}`]
}

/** The built service in a folder, with nothing else in it. */
function serviceIn(folder: string): Built {
  const built = dirname(dirname(dirname(buildService().main)))
  cpSync(join(built, 'dist'), join(folder, 'dist'), { recursive: true })
  copyFileSync(join(built, 'package.json'), join(folder, 'package.json'))
  return { main: join(folder, 'dist/node/main.js') }
}

function putNode(modules: string, name: string, version: string, content: string): void {
  const bin = join(modules, name, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(modules, name, 'package.json'), JSON.stringify({ name, version }, null, 2))
  writeFileSync(join(bin, 'node'), content)
  chmodSync(join(bin, 'node'), 0o755)
}

describe('on a Node that is too old', () => {
  const START = /^This service needs Node 22\.12 or newer and was started on 20\.19\.2\. /

  test('the bundled one runs the service, and gets its signals', async () => {
    const { main } = buildService()
    const old = await startService({ main }, { DATA_DIR: data }, pretending('20.19.2'))
    expect((await fetch(`${old.url}/api/health`)).status).toBe(200)
    expect(await old.stop('SIGTERM')).toBe(0)
    expect(old.lines.at(-1)).toContain('"message":"Stopped"')
  })

  test('the exit code of a refused start is passed on', async () => {
    const { code, err } = await runToEnd(
      buildService(),
      { DATA_DIR: data, PORT: '-1' },
      { args: pretending('18.20.0') },
    )
    expect([code, err]).toStrictEqual([1, 'PORT: found "-1", expected a port number 0–65535\n'])
  })

  test.each(['18.20.0', '20.19.2', '22.11.9'])(
    '%s without a bundled one stops, and nothing is changed',
    async (version) => {
      const { code, err } = await runToEnd(serviceIn(dir), { DATA_DIR: data }, { args: pretending(version) })
      const line = `This service needs Node 22.12 or newer and was started on ${version}. Install a newer one.\n`
      expect([code, err]).toStrictEqual([1, line])
      expect(existsSync(data)).toBe(false)
    },
  )

  test('a clone names the command that brings one', async () => {
    const built = serviceIn(dir)
    writeFileSync(join(dir, 'package-lock.json'), '{}')
    const { err } = await runToEnd(built, { DATA_DIR: data }, { args: pretending('20.19.2') })
    expect(err.replace(START, '')).toBe('Run "npm ci", which brings one, then "npm start".\n')
  })

  test.each(['bin.js', 'main.js', 'cli.js'])(
    '%s of an installed archive names the command that brings one',
    async (file) => {
      serviceIn(join(dir, 'node_modules/mesh-monitoring-service'))
      const main = join(dir, 'node_modules/mesh-monitoring-service/dist/node', file)
      const { code, err } = await runToEnd({ main }, { DATA_DIR: data }, { args: pretending('20.19.2') })
      expect(code).toBe(1)
      expect(err.replace(START, '')).toBe(
        `Install a newer one, or put one beside the service: npm install --prefix "${dir}" ${PACKAGE}@24\n`,
      )
    },
  )

  test.each(['node', PACKAGE])('an installed archive runs on the package %s beside it', async (name) => {
    const { main } = serviceIn(join(dir, 'node_modules/mesh-monitoring-service'))
    putNode(join(dir, 'node_modules'), name, '24.1.0', '#!/bin/sh\necho "bundled: $*"\nexit 7\n')
    const { code, out } = await runToEnd({ main }, {}, { args: pretending('20.19.2') })
    expect([code, out]).toStrictEqual([7, expect.stringMatching(/^bundled: --import .* \/.*\/dist\/node\/main\.js\n$/)])
  })

  test('one that is too old as well, or does not run on this machine, is not used', async () => {
    const { main } = serviceIn(join(dir, 'node_modules/mesh-monitoring-service'))
    putNode(join(dir, 'node_modules'), 'node', '20.1.0', '#!/bin/sh\nexit 7\n')
    // As for a program that needs glibc on a system that has only musl.
    putNode(join(dir, 'node_modules'), PACKAGE, '24.1.0', '#!/no/such/loader\n')
    const { code, err } = await runToEnd({ main }, {}, { args: pretending('20.19.2') })
    expect([code, err]).toStrictEqual([1, expect.stringMatching(START)])
  })

  const machines = ['/usr/bin/node', '/usr/local/bin/node'].filter((path) => {
    if (!existsSync(path)) return false
    const version = execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' })
    return Number(version.split('.')[0]) < 22
  })
  for (const path of machines) {
    test(`${path} of this machine too`, async () => {
      const { code, err } = await runToEnd(serviceIn(dir), { DATA_DIR: data }, { path })
      expect([code, err]).toStrictEqual([1, expect.stringMatching(/^This service needs Node 22\.12 or newer/)])
    })
  }
})

describe('started by npm, the bundled Node', () => {
  const started = (version: string) => {
    const caller = join(dir, 'caller')
    writeFileSync(caller, '#!/bin/sh\necho "caller: $*"\n')
    chmodSync(caller, 0o755)
    symlinkSync(join(import.meta.dirname, '../../../node_modules'), join(dir, 'node_modules'))
    const agent = `npm/11.19.1 node/v${version} linux x64 workspaces/false`
    const env = { PORT: '-1', npm_node_execpath: caller, npm_config_user_agent: agent }
    return runToEnd(serviceIn(dir), env, { path: BUNDLED })
  }

  test('hands over to the Node of npm when that is new enough', async () => {
    const { code, out } = await started('26.1.0')
    expect([code, out]).toStrictEqual([0, `caller: ${join(dir, 'dist/node/main.js')}\n`])
  })

  test('stays when that is too old', async () => {
    const { code, err } = await started('20.19.2')
    expect([code, err]).toStrictEqual([1, 'PORT: found "-1", expected a port number 0–65535\n'])
  })
})
