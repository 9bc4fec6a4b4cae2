import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../src/node/database.ts'
import { makeDataDir } from '../../support/backup/backup.ts'
import { buildProgram } from '../../support/built/built-program.ts'
import { buildService } from '../../support/built/built-service.ts'
import {
  type CopyingService,
  davSettings,
  openCopying,
  readByAge,
  s3Settings,
  SESSION_SECRET,
} from '../../support/copies/service.ts'
import { type S3, startS3 } from '../../support/copies/s3.ts'
import { startWebDav, type WebDav } from '../../support/copies/webdav.ts'

/** Processes at a time. */
const ABREAST = 3
/** The smallest part of R2. */
const PART = 5 * 2 ** 20
const LATER = 100_000_000

let program: string
let s3: S3
let dav: WebDav
let here: CopyingService
let copies: ReturnType<typeof makeDataDir>

beforeAll(async () => {
  program = await buildProgram(buildService(), 'copies-crash')
  s3 = await startS3()
  dav = await startWebDav()
  here = await openCopying()
  copies = makeDataDir()
  // Its archive has two parts.
  const noise = randomBytes(6 * 2 ** 20).toString('base64')
  here.app.store.sqlite
    .prepare("insert into settings (key, value, updated_at) values ('noise', json_quote(?), 1)")
    .run(noise)
  await here.backUp()
})
afterAll(async () => {
  await here.close()
  await Promise.all([s3.close(), dav.close()])
  copies.remove()
})

function run(dataDir: string, killAt: number): Promise<{ steps: number | null; log: string }> {
  const args = [program, dataDir, String(killAt), SESSION_SECRET, String(PART), String(here.app.clock.now + LATER)]
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, args, { maxBuffer: 1e8 }, (error, out, err) => {
      if (child.signalCode === 'SIGKILL') resolve({ steps: null, log: err })
      else if (error === null) resolve({ steps: Number(out), log: err })
      else reject(new Error(err))
    })
  })
}

function copiesIn(dataDir: string): { name: string; state: string; size_bytes: number }[] {
  const store = openDatabase(join(dataDir, 'mesh.db'))
  try {
    return store.sqlite
      .prepare('select name, state, size_bytes from backup_copies')
      .all()
      .map((row) => Object(row))
  } finally {
    store.close()
  }
}

type Kind = 's3' | 'webdav'

/** A place with an own folder, so that what is left behind is seen, and a data directory that knows it. */
async function prepare(kind: Kind, folder: string): Promise<string> {
  const url = (base: string) => `http://localhost:${new URL(base).port}`
  const settings = kind === 's3' ? s3Settings(url(s3.front.url), folder) : davSettings(url(dav.front.url), folder)
  const id = await here.add(folder, kind, settings)
  const dataDir = join(copies.dataDir, folder)
  mkdirSync(dataDir)
  here.app.store.sqlite.exec(`vacuum into '${join(dataDir, 'mesh.db')}'`)
  cpSync(here.here.backups, join(dataDir, 'system-backups'), { recursive: true })
  await here.admin.send('DELETE', `/api/system/copies/${id}`)
  return dataDir
}

const filesAt = async (kind: Kind, folder: string) => (kind === 's3' ? s3.objects(`${folder}/`) : dav.files(folder))
const sentTo = (folder: string) =>
  s3.front.seen.filter((one) => one.startsWith('PUT') && one.includes(`/${folder}/`) && !one.includes('mesh-copies'))
    .length

/** Whether it was killed, and whether the next start went on with what the place had. */
async function tryStep(kind: Kind, dataDir: string, step: number): Promise<{ isWhole: boolean; isResumed: boolean }> {
  const folder = `${kind}-${step}`
  const isWhole = (await run(dataDir, step)).steps !== null
  for (const { name, size_bytes: size } of copiesIn(dataDir).filter(({ state }) => state === 'made')) {
    expect((await filesAt(kind, folder)).get(`${name}.tar.gz.age`)?.length).toBe(size)
  }
  const sentBefore = sentTo(folder)
  if (!isWhole) expect((await run(dataDir, 0)).log).not.toContain('"level":"error"')
  const after = copiesIn(dataDir)
  const all = await filesAt(kind, folder)
  expect(after).toMatchObject([{ state: 'made' }])
  expect([...all.keys()]).toEqual([`${after[0]?.name}.tar.gz.age`])
  expect(readdirSync(join(dataDir, 'outgoing-copies'))).toEqual([])
  const file = all.get(`${after[0]?.name}.tar.gz.age`) ?? Buffer.alloc(0)
  if (isWhole) expect(readByAge(here.identity, file)).toContain(`${after[0]?.name}/manifest.json`)
  return { isWhole, isResumed: sentBefore === 1 && sentTo(folder) === 2 }
}

test.each(['s3', 'webdav'] as const)(
  'a copy to %s that is killed before any step never counts, and the next start ends with one whole copy',
  { timeout: 400_000 },
  async (kind) => {
    let isWhole = false
    let isResumed = false
    for (let from = 1; !isWhole; from += ABREAST) {
      const steps = Array.from({ length: ABREAST }, (_, i) => from + i)
      const folders: string[] = []
      for (const step of steps) folders.push(await prepare(kind, `${kind}-${step}`))
      const tried = await Promise.all(steps.map((step, i) => tryStep(kind, folders[i] ?? '', step)))
      isWhole = tried.some((one) => one.isWhole)
      isResumed ||= tried.some((one) => one.isResumed)
      for (const folder of folders) rmSync(folder, { recursive: true })
    }
    // Parts that the place has are not sent again.
    expect(isResumed).toBe(kind === 's3')
  },
)
