// Does what the Dockerfile says, in a scratch folder and without a container engine: the build stage, then the files of
// the image, started as the image starts them until its health check is content. Users, volumes and the base image are
// left out: this machine and its Node take the place of the latter.
//   node scripts/try-image.js
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'mesh-image-'))
const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n').filter(Boolean)
const context = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && !ignored.some((name) => path === name || path.startsWith(`${name}/`)))

// The base image brings this Node, whichever one runs this script.
mkdirSync(join(scratch, 'bin'))
symlinkSync(join(ROOT, 'node_modules/node/bin/node'), join(scratch, 'bin/node'))

/** What each stage is: its root folder, its working directory, its environment, and what starts and checks it. */
const stages = new Map()
let stage

/** A path of the image, in the scratch folder. */
const inside = (path) => (path.startsWith('/') ? join(stage.root, path) : join(stage.root, stage.dir, path))

const STEPS = {
  FROM: (words) => {
    const name = words[2] ?? `stage-${stages.size}`
    stage = { root: join(scratch, name), dir: '/', env: {}, cmd: null, check: null }
    mkdirSync(stage.root)
    stages.set(name, stage)
  },
  WORKDIR: ([path]) => {
    stage.dir = path
    mkdirSync(inside('.'), { recursive: true })
  },
  ENV: (words) => Object.assign(stage.env, Object.fromEntries(words.map((word) => /^(\w+)=(.*)$/.exec(word).slice(1)))),
  COPY: (words) => {
    const from = words[0].startsWith('--from=') ? stages.get(words.shift().slice('--from='.length)) : null
    const target = words.pop()
    for (const source of words) {
      if (from !== null) cpSync(join(from.root, source), inside(target), { recursive: true })
      else
        for (const path of source === '.' ? context : [source]) {
          const to = join(inside(target), path)
          mkdirSync(dirname(to), { recursive: true })
          cpSync(join(ROOT, path), to)
        }
    }
  },
  RUN: (_, line) => {
    // Absolute paths of the image lie in the scratch folder; its user does not exist here.
    const command = line.replaceAll(/(?<= )\/(?=\w)/g, `${stage.root}/`).replaceAll(/chown node:node \S+/g, 'true')
    execFileSync('sh', ['-ec', command], {
      cwd: inside('.'),
      env: environment(),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  },
  CMD: (_, line) => (stage.cmd = JSON.parse(line)),
  HEALTHCHECK: (_, line) => (stage.check = JSON.parse(line.slice(line.indexOf('CMD ') + 4))),
  USER: () => {},
  VOLUME: () => {},
  EXPOSE: () => {},
}

/** Without what npm tells the scripts that it runs: a container has none of that. */
function environment(more = {}) {
  const { PATH, HOME, npm_config_cache, http_proxy, https_proxy, HTTPS_PROXY, HTTP_PROXY, NODE_EXTRA_CA_CERTS } =
    process.env
  const outer = { HOME, npm_config_cache, http_proxy, https_proxy, HTTPS_PROXY, HTTP_PROXY, NODE_EXTRA_CA_CERTS }
  const given = Object.fromEntries(Object.entries(outer).filter(([, value]) => value !== undefined))
  return { ...given, PATH: `${join(scratch, 'bin')}:${PATH}`, ...stage.env, ...more }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

async function serve() {
  const { cmd, check, env } = stage
  const dataDir = inside(env.DATA_DIR)
  const given = environment({ DATA_DIR: dataDir, PORT: String(await freePort()), HOST: '127.0.0.1', DEMO: 'true' })
  const child = spawn(cmd[0], cmd.slice(1), { cwd: inside('.'), env: given, stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let healthy = false
  for (let tries = 0; tries < 60 && !healthy && child.exitCode === null; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 500))
    healthy = spawnSync(check[0], check.slice(1), { cwd: inside('.'), env: given }).status === 0
  }
  child.kill('SIGTERM')
  const code = await ended
  if (!healthy || code !== 0) throw new Error(`It was ${healthy ? '' : 'not '}healthy, and ended with ${code}`)
  if (!existsSync(join(dataDir, 'mesh.db'))) throw new Error('There is no database where the volume is')
}

function bytesOf(folder) {
  const [bytes = ''] = execFileSync('du', ['-sb', folder], { encoding: 'utf8' }).split('\t')
  return Number(bytes)
}

try {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').replaceAll(/\\\n\s*/g, '')
  for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    console.log(`> ${line}`)
    const [name = '', ...words] = line.split(' ')
    const step = STEPS[name]
    if (step === undefined) throw new Error(`The Dockerfile has ${name}, which this script does not know`)
    step(words, line.slice(name.length + 1))
  }
  console.log(`The files of the image: ${(bytesOf(inside('.')) / 1e6).toFixed(1)} MB`)
  await serve()
  console.log('It starts, is healthy, and stops')
} finally {
  rmSync(scratch, { recursive: true })
}
