// Builds the pages and the worker for the edge, as wrangler.toml expects them: dist/web and dist/edge.
//   node scripts/edge.js                 builds both
//   node scripts/edge.js --worker DIST   builds the worker alone, and its files, into another dist
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { minify } from 'terser'
import { build } from 'vite'
import { namesOfUnused, withoutMethods } from './unused-methods.js'
import { SCHEMAS, workerPlugins } from './worker-plugins.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({ options: { worker: { type: 'string' } } })
const dist = values.worker ?? join(ROOT, 'dist')

process.env.NODE_ENV = 'production'
if (values.worker === undefined) await build({ configFile: join(ROOT, 'src/web/vite.config.ts'), logLevel: 'warn' })
await buildWorker()
await writeFiles()

/**
 * ES modules, smaller than those of wrangler's own build: worker.js and what it imports run when an isolate starts, the
 * others when they are needed. The first build only finds out which methods have a use.
 */
async function buildWorker() {
  const edge = join(dist, 'edge')
  // Wrangler deploys every module that it finds there.
  rmSync(edge, { recursive: true, force: true })
  const [found] = [await build(workerBuild({ plugins: [], start: new Set(), minify: false, write: false }))].flat()
  const modules = found.output.filter(({ type }) => type === 'chunk')
  const unused = namesOfUnused(modules.map(({ code }) => code))
  await build(workerBuild({ plugins: [withoutMethods(unused)], start: startOf(modules), minify: true, write: true }))
  const parts = readdirSync(join(edge, 'parts')).filter((name) => name.endsWith('.js'))
  for (const name of parts) await minifyAgain(join(edge, 'parts', name))
}

/**
 * Vite's minifier and this one find different things: 6 KB less, compressed. As for Vite, reading a property does nothing
 * else; and no function without `this` is used as a constructor.
 */
async function minifyAgain(file) {
  const { code, map } = await minify(readFileSync(file, 'utf8'), {
    module: true,
    ecma: 2020,
    compress: { passes: 3, pure_getters: true, unsafe_arrows: true },
    // A module that is not from our files has no map.
    sourceMap: existsSync(`${file}.map`) && {
      content: readFileSync(`${file}.map`, 'utf8'),
      url: `${basename(file)}.map`,
    },
  })
  writeFileSync(file, code)
  if (map !== undefined) writeFileSync(`${file}.map`, map)
}

/** The source files of worker.js and of what it imports at once. In one module they are smaller than in several. */
function startOf(modules) {
  const names = new Set(['worker.js'])
  for (const name of names)
    // Modules of the runtime are not among them.
    for (const next of modules.find(({ fileName }) => fileName === name)?.imports ?? []) names.add(next)
  return new Set(modules.flatMap(({ fileName, moduleIds }) => (names.has(fileName) ? moduleIds : [])))
}

function workerBuild({ plugins, start, minify, write }) {
  return {
    configFile: false,
    root: ROOT,
    logLevel: 'warn',
    publicDir: false,
    plugins: [...workerPlugins(ROOT), ...plugins],
    ssr: { target: 'webworker', noExternal: true, resolve: { conditions: ['workerd', 'worker', 'browser'] } },
    build: {
      ssr: 'src/edge/main.ts',
      outDir: join(dist, 'edge'),
      emptyOutDir: false,
      target: 'es2024',
      minify,
      write,
      sourcemap: write,
      reportCompressedSize: false,
      rolldownOptions: {
        // Nothing but what the platform knows may be exported by worker.js.
        preserveEntrySignatures: 'strict',
        external: ['cloudflare:workers'],
        // Leaves out unused parts of a library even if its package does not declare that this is safe.
        treeshake: {
          manualPureFunctions: [SCHEMAS],
          moduleSideEffects: (id) => !id.includes('/node_modules/'),
          propertyReadSideEffects: false,
        },
        output: {
          format: 'esm',
          entryFileNames: 'worker.js',
          chunkFileNames: 'parts/[name].js',
          codeSplitting: { groups: [{ name: 'start', test: (id) => start.has(id) }] },
        },
      },
    },
  }
}

async function readTexts(tag) {
  const { texts } = await import(`../src/app/words/languages/${tag}.ts`)
  return [`languages/${tag}.json`, JSON.stringify(texts)]
}

/** What src/edge/api-documents.ts and src/edge/described-settings.ts read. */
async function writeFiles() {
  const { createApp } = await import('../src/app/app.ts')
  const { describeAll } = await import('../src/app/device-config/described.ts')
  const { openApiDocument } = await import('../src/app/http/openapi/document.ts')
  const { docsPage, STYLE } = await import('../src/app/http/openapi/page.ts')
  const { LANGUAGE_TAGS } = await import('../src/shared/languages.ts')
  const document = await openApiDocument(
    createApp(() => {
      throw new Error('nobody asks this app')
    }).routes,
  )
  const files = {
    'openapi.json': JSON.stringify(document),
    'docs.html': String(await docsPage(document)),
    'docs/style.css': STYLE,
    'described-settings.json': JSON.stringify(describeAll()),
    ...Object.fromEntries(await Promise.all(LANGUAGE_TAGS.filter((tag) => tag !== 'en').map(readTexts))),
  }
  for (const [name, text] of Object.entries(files)) {
    const file = join(dist, 'web/api', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}
