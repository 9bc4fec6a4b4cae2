import type { Ctx } from '../../app/base/context.ts'
import { createProgressBar } from '../backup/progress-bar.ts'
import type { SqliteStore } from '../database.ts'
import { keptSessionSecret } from '../start/secret.ts'
import { importMeshMonitor, type ImportOptions } from './import.ts'
import { describeReport } from './describe.ts'

export const IMPORT_USAGE = `  import meshmonitor <file> [--dry-run] [--json] [--with-keys] [--oidc-issuer <url>]
                              the history and the users of MeshMonitor 4.0 to 4.15, from its SQLite database or from
                              JSON lines; the service may be running. --dry-run: only say what would come and what
                              would not; --with-keys: also the keys of channels; --oidc-issuer: of the provider at
                              which its users sign in
`

type Given = { isDryRun: boolean; isJson: boolean; withKeys: boolean; oidcIssuer: string | null }

/** Returns the exit code. */
type ImportCommand = (ctx: Ctx & { readonly store: SqliteStore }) => Promise<number>

/** The command in all arguments after `import`; null if they are invalid. */
export function readImportCommand([program, file, ...rest]: readonly string[]): ImportCommand | null {
  if (program !== 'meshmonitor' || file === undefined || file === '' || file.startsWith('--')) return null
  const given: Given = { isDryRun: false, isJson: false, withKeys: false, oidcIssuer: null }
  for (let i = 0; i < rest.length; i++) {
    if (rest[i] === '--dry-run' && !given.isDryRun) given.isDryRun = true
    else if (rest[i] === '--json' && !given.isJson) given.isJson = true
    else if (rest[i] === '--with-keys' && !given.withKeys) given.withKeys = true
    else if (rest[i] === '--oidc-issuer' && given.oidcIssuer === null && URL.canParse(rest[i + 1] ?? '')) {
      i += 1
      given.oidcIssuer = rest[i] ?? null
    } else return null
  }
  const { isJson, ...options } = given
  return (ctx) => run(ctx, { file, ...options }, isJson)
}

async function run(
  ctx: Ctx & { readonly store: SqliteStore },
  options: ImportOptions,
  isJson: boolean,
): Promise<number> {
  const { config } = ctx
  // Seeds and keys are sealed under the secret of the service, which must exist by then.
  const secrets = config.SESSION_SECRET.length > 0 ? config.SESSION_SECRET : [keptSessionSecret(config.DATA_DIR)]
  const bar = createProgressBar(process.stderr, 'steps')
  let steps = 0
  const report = await importMeshMonitor(
    { ...ctx, config: { ...config, SESSION_SECRET: secrets } },
    { ...options, onSlice: () => bar.show(++steps, null) },
  ).finally(() => bar.end())
  process.stdout.write(isJson ? `${JSON.stringify(report)}\n` : describeReport(report))
  return 0
}
