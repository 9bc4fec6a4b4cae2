import type { Objects } from './live/protocol.ts'
import { type Config, namesOfVariables, parseConfig } from '../app/config/config.ts'
import { findUnknown, type UnknownVariable } from '../app/config/unknown.ts'

/**
 * The bindings to D1, to the files of the web application, to the objects with the live events and to the bucket of
 * backups, and the variables and secrets of `src/app/config/config.ts`.
 */
export type Env = {
  readonly DB: D1Database
  readonly ASSETS: Fetcher
  readonly LIVE?: Objects
  readonly BACKUPS?: R2Bucket
  readonly [variable: string]: unknown
}

export type Environment =
  | {
      readonly ok: true
      readonly config: Config
      /** Variables that are set but have no effect here. */
      readonly ignored: readonly string[]
      readonly unknown: readonly UnknownVariable[]
    }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Reads the bindings. Each problem is one line: variable, value found (secrets are not shown), and expected value. */
export function readEnvironment(env: Env): Environment {
  const parsed = parseConfig(env)
  const problems = [...missingBinding(env), ...(parsed.ok ? unfitForEdge(parsed.config) : parsed.problems)]
  if (!parsed.ok || problems.length > 0) return { ok: false, problems }
  return {
    ok: true,
    config: parsed.config,
    ignored: Object.keys(env).filter(isNodeOnly),
    unknown: findUnknown(env, namesOfVariables(env)),
  }
}

function missingBinding({ DB }: Partial<Env>): string[] {
  return DB === undefined ? ['DB: found nothing, expected a binding to a D1 database'] : []
}

function unfitForEdge({ SESSION_SECRET, SESSION_STORE, PROXY_AUTH_HEADER, AUDIT_ANCHOR_URL }: Config): string[] {
  const problems: string[] = []
  if (PROXY_AUTH_HEADER !== null) {
    problems.push('PROXY_AUTH_HEADER: found a name, expected nothing, as the edge knows no addresses of proxies')
  }
  if (AUDIT_ANCHOR_URL !== null && AUDIT_ANCHOR_URL.kind !== 'webhook') {
    problems.push(
      'AUDIT_ANCHOR_URL: found syslog or an e-mail address, expected an https URL, the only kind on the edge',
    )
  }
  if (SESSION_SECRET.length === 0) {
    problems.push(
      'SESSION_SECRET: found nothing, expected one or more secrets of at least 32 characters, comma-separated',
    )
  }
  if (SESSION_STORE !== 'database') {
    problems.push(`SESSION_STORE: found ${JSON.stringify(SESSION_STORE)}, expected database, the only one on the edge`)
  }
  return problems
}

const NODE_ONLY: ReadonlySet<string> = new Set([
  'PORT',
  'HOST',
  'DATA_DIR',
  'TRUSTED_PROXIES',
  'REDIS_URL',
  'RESTART_BY',
  'RESTORE_FROM_BACKUP',
  'MAP_PMTILES',
  'MAP_ARCHIVE_URL',
  'MAP_ARCHIVE_MAX_MB',
  'SMTP_URL',
  'SMTP_FROM',
  'DEMO',
])

function isNodeOnly(variable: string): boolean {
  return NODE_ONLY.has(variable) || /^(?:MESHTASTIC|COLLECTOR|HOME_ASSISTANT)_/.test(variable)
}
