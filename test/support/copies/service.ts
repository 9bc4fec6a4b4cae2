import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import type { BackupKind } from '../../../src/app/system/backup/backup.ts'
import { type BackupOptions, openBackups } from '../../../src/node/backup/backups.ts'
import { type CopiesOptions, type NodeCopies, openCopies } from '../../../src/node/backup/copies/copies.ts'
import { encryptBackup } from '../../../src/node/backup/copies/encrypt.ts'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { type Client, createTestApp, type TestApp } from '../app.ts'
import { backupOptions, makeDataDir } from '../backup/backup.ts'
import { ACCESS_KEY, BUCKET, S3_PATH, SECRET_KEY } from './s3.ts'
import { DAV_PASSWORD, DAV_USER } from './webdav.ts'

export const SESSION_SECRET = 's'.repeat(40)

export type CopyingService = {
  readonly app: TestApp
  readonly admin: Client
  readonly copies: NodeCopies
  readonly here: ReturnType<typeof makeDataDir>
  readonly logged: string[]
  /** The file with the private key, which the service never gets. */
  readonly identity: string
  readonly recipient: string
  /** Makes a backup at the present time of the clock. */
  backUp(kind?: BackupKind): Promise<string>
  /** Adds a place; returns its id. */
  add(name: string, kind: string, settings: Record<string, unknown>): Promise<number>
  state(): Promise<Listed>
  close(): Promise<void>
}

type Listed = {
  readonly places: readonly {
    readonly id: number
    readonly problem: string | null
    readonly failures: number
    readonly nextTryAt: number | null
    readonly heldAt: number | null
  }[]
  readonly copies: readonly { readonly name: string; readonly state: string; readonly sizeBytes: number | null }[]
}

export function makeKey(dir: string): { identity: string; recipient: string } {
  const identity = join(mkdtempSync(join(dir, '.key-')), 'key.txt')
  execFileSync('age-keygen', ['-o', identity], { stdio: 'pipe' })
  return { identity, recipient: execFileSync('age-keygen', ['-y', identity], { encoding: 'utf8' }).trim() }
}

/** A service with a database file, whose rounds of copies are called by the test. */
export async function openCopying(more: Partial<CopiesOptions> = {}): Promise<CopyingService> {
  const here = makeDataDir()
  const keys = makeDataDir()
  const store = openDatabase(here.database)
  const logged: string[] = []
  const parsed = parseConfig({ SESSION_SECRET, DATA_DIR: here.dataDir })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  let clock = () => 0
  const log = createLog({ level: 'debug', format: 'json', now: () => clock(), write: (line) => logged.push(line) })
  const copies = openCopies({
    store,
    config: parsed.config,
    log,
    dataDir: here.dataDir,
    timeZone: 'UTC',
    clock: { now: () => clock(), after: () => () => {} },
    files: diskFiles,
    encrypt: (job) => encryptBackup(job, diskFiles),
    places: { wait: async () => {}, timings: { stallMs: 2000, answerMs: 2000 } },
    mayRun: () => true,
    ...more,
  })
  const app = await createTestApp({ store, ports: { copies: copies.port, sessions: databaseSessions(store), log } })
  clock = () => app.clock.now
  const admin = await app.admin()
  const { identity, recipient } = makeKey(keys.dataDir)
  const demand = async (answer: Response): Promise<unknown> => {
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
    return answer.status === 204 ? null : answer.json()
  }
  await demand(await admin.send('PUT', '/api/system/copies', { recipients: [{ recipient, name: 'in the safe' }] }))
  return {
    app,
    admin,
    copies,
    here,
    logged,
    identity,
    recipient,
    backUp: async (kind = 'manual') => {
      const snapshot: BackupOptions['snapshot'] = async (job) => writeSnapshot(job, diskFiles, () => {})
      const options = backupOptions(here.dataDir, { snapshot, now: () => app.clock.now, secrets: [SESSION_SECRET] })
      return (await openBackups(options).create(kind, async () => {})).name
    },
    async add(name, kind, settings) {
      const { place } = Object(await demand(await admin.send('POST', '/api/system/copies', { name, kind, settings })))
      return Number(place.id)
    },
    state: async () => Object(await demand(await (await app.admin()).send('GET', '/api/system/copies'))),
    async close() {
      await copies.stop()
      app.close()
      here.remove()
      keys.remove()
    },
  }
}

export const s3Settings = (endpoint: string, folder = 'hill') => ({
  endpoint: `${endpoint}${S3_PATH}`,
  region: 'auto',
  bucket: BUCKET,
  prefix: `${folder}/`,
  accessKeyId: ACCESS_KEY,
  secretAccessKey: SECRET_KEY,
  ownNetwork: true,
})

export const davSettings = (url: string, folder = 'hill') => ({
  url: `${url}/${folder}/`,
  username: DAV_USER,
  password: DAV_PASSWORD,
  ownNetwork: true,
})

/** What another implementation of age reads from a file: the names in the archive. */
export function readByAge(identity: string, encrypted: Buffer): string[] {
  const file = join(mkdtempSync(`${identity}-`), 'copy.age')
  writeFileSync(file, encrypted)
  const archive = execFileSync('age', ['-d', '-i', identity, file], { maxBuffer: 2 ** 30 })
  return execFileSync('tar', ['tz'], { input: archive, encoding: 'utf8' }).trim().split('\n')
}
