import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import type { OidcService, OpenOidcService } from '../contract/oidc/service.ts'
import { withFewRounds } from '../support/few-rounds.ts'
import { makeScratch } from './migrated.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The worker, for all runtimes of a file. */
let bundled: Promise<string> | undefined

/**
 * The worker on workerd with an empty D1; its sign-ins take no time. Not through wrangler's own harness: there, requests of a worker go through
 * Node's fetch, which follows redirects.
 */
export const openOidcWorkerd: OpenOidcService = async (env): Promise<OidcService> => {
  const logged: string[] = []
  const options = convertV4MiniflareOptions({
    modules: true,
    script: await (bundled ??= bundle()),
    compatibilityDate: readFileSync(`${ROOT}/wrangler.toml`, 'utf8').match(/^compatibility_date = "(.*)"$/m)?.[1] ?? '',
    bindings: env,
    d1Databases: ['DB'],
    host: '127.0.0.1',
    port: 0,
    cf: false,
    handleStructuredLogs: ({ message }) => logged.push(message),
    telemetry: { enabled: false },
  })
  const scratch = makeScratch()
  const { miniflare, url } = await scratch.start(async () => {
    const miniflare = new Miniflare(options)
    return { miniflare, url: await miniflare.ready }
  })
  const database = await miniflare.getD1Database('DB')
  await scratch.migrated('miniflare', async () => {
    for (const statements of migrations()) await database.batch(statements.map((each) => database.prepare(each)))
  })
  return {
    send: (path, init) => fetch(new URL(path, url), init),
    sql: async (query) => (await database.prepare(query).all()).results,
    logged: () => logged,
    close: async () => {
      await miniflare.dispose()
      scratch.remove()
    },
  }
}

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/edge/worker.ts'],
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
    write: false,
  })
  return withFewRounds(outputFiles[0]?.text ?? '')
}

/** The statements of each migration. */
function migrations(): string[][] {
  const files = readdirSync(`${ROOT}/drizzle`)
    .filter((name) => name.endsWith('.sql'))
    .toSorted(byText)
  return files.map((name) => readFileSync(`${ROOT}/drizzle/${name}`, 'utf8').split('--> statement-breakpoint'))
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}
