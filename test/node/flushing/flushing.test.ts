import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { eq, sql } from 'drizzle-orm'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { createOnce } from '../../../src/app/http/idempotency.ts'
import { settings, users } from '../../../src/db/schema.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { beginAnew, logState } from '../../../src/node/flushing/copy-log.ts'
import { type Checkpoints, openCheckpoints } from '../../../src/node/flushing/checkpoints.ts'
import { type Flushing, openFlushing } from '../../../src/node/flushing/flushing.ts'

type Flush = { end(): void; fail(error: Error): void }

let dir: string
let store: SqliteStore
let flushing: Flushing
let lines: string[]
/** Flushes that have begun and not ended. */
let begun: Flush[]
let isHeld: boolean
/** What copies the log in place of the thread, while it is set. */
let inPlace: Checkpoints['run'] | null

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-flushing-'))
  lines = []
  begun = []
  isHeld = true
  const log = createLog({ level: 'info', format: 'json', now: () => 0, write: (line) => lines.push(line) })
  inPlace = null
  const thread = openCheckpoints(join(dir, 'mesh.db'))
  const copier = { ...thread, run: (request: 'copy' | 'begin-anew') => (inPlace ?? thread.run)(request) }
  const flushLog = () => (isHeld ? new Promise<void>((end, fail) => begun.push({ end, fail })) : Promise.resolve())
  store = openDatabase(
    join(dir, 'mesh.db'),
    () => {},
    (sqlite) => (flushing = openFlushing(sqlite, { log, giveUp: () => lines.push('gave up'), flushLog, copier })),
  )
})
afterEach(async () => {
  release()
  await flushing.close()
  store.close()
  rmSync(dir, { recursive: true })
})

/** Ends all flushes, now and later. */
function release(): void {
  isHeld = false
  for (const flush of begun.splice(0)) flush.end()
}
const nextFlush = async (): Promise<Flush> => {
  await expect.poll(() => begun.length).toBe(1)
  const [flush] = begun.splice(0)
  if (flush === undefined) throw new Error('no flush')
  return flush
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

const put = (key: string, value = '1') => store.db.insert(settings).values({ key, value, updatedAt: 0 })
const stored = () => store.db.select({ key: settings.key }).from(settings).orderBy(settings.key).all()

/** Notes in order what has resolved or was refused. */
function noting() {
  const noted: string[] = []
  const note = (name: string, done: Promise<unknown>) => {
    void done.then(
      () => noted.push(name),
      (error: unknown) => noted.push(`${name}: ${String(Object(error).message)}`),
    )
  }
  return { noted, note }
}

/** Twenty rows of the value 1, and more than a thousand pages. */
async function fillLog(): Promise<void> {
  const text = 'x'.repeat(3000)
  for (let i = 0; i < 20; i++) {
    const all = Array.from({ length: 60 }, (_, n) => put(`filling ${i} ${n}`, text))
    await store.atomic([put(`filling ${i}`), ...all])
  }
}

test('a change resolves when a flush that began after it has ended, and changes share a flush', async () => {
  const { noted, note } = noting()
  note('first', store.atomic([put('first')]))
  const one = await nextFlush()
  // Visible at once, and not acknowledged.
  expect(await stored()).toStrictEqual([{ key: 'first' }])
  note('second', store.atomic([put('second')]))
  note('one statement', Promise.resolve(put('third').run()))
  note('its rows', Promise.resolve(put('fourth').returning().all()))
  await turn()
  expect(noted).toStrictEqual([])
  expect(begun).toStrictEqual([])
  one.end()
  const two = await nextFlush()
  expect(noted).toStrictEqual(['first'])
  two.end()
  await expect.poll(() => noted.toSorted()).toStrictEqual(['first', 'its rows', 'one statement', 'second'])
  expect(begun).toStrictEqual([])
})

test('a repetition that changes nothing waits for the flush of what it repeats; alone it needs none', async () => {
  const { noted, note } = noting()
  const again = () => store.atomic([put('key').onConflictDoNothing()])
  note('first', again())
  const flush = await nextFlush()
  note('again', again())
  await turn()
  expect(noted).toStrictEqual([])
  flush.end()
  await expect.poll(() => noted).toStrictEqual(['first', 'again'])
  await again()
  expect(begun).toStrictEqual([])
})

test('what need not wait for the disk does not, alone or in a row of statements', async () => {
  await store.atomic([put('a'), put('b')], 'lazily')
  expect(await store.lazily(() => put('c').returning({ key: settings.key }).all())).toStrictEqual([{ key: 'c' }])
  expect(await stored()).toHaveLength(3)
  expect(begun).toStrictEqual([])
})

test('a refused flush is an error and no acknowledgement; only a new log is trusted again', async () => {
  const { noted, note } = noting()
  note('lost', store.atomic([put('lost')]))
  ;(await nextFlush()).fail(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }))
  await expect.poll(() => noted).toStrictEqual(['lost: the write-ahead log could not be flushed to the disk'])
  note('after', store.atomic([put('after')]))
  const flush = await nextFlush()
  // All that was in doubt is in the database itself.
  expect(logState(store.sqlite)).toStrictEqual({ pages: 3, copied: 0 })
  flush.end()
  await expect.poll(() => noted.at(-1)).toBe('after')
  expect(await stored()).toStrictEqual([{ key: 'after' }, { key: 'lost' }])
  expect(lines).toStrictEqual([])
})

test('while a reader keeps the log that was refused, no change is made, and the next start decides', async () => {
  const { noted, note } = noting()
  const reader = new Database(join(dir, 'mesh.db'), { readonly: true })
  reader.exec('begin; select count(*) from settings')
  note('lost', store.atomic([put('lost')]))
  ;(await nextFlush()).fail(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }))
  await expect.poll(() => noted).toStrictEqual(['lost: the write-ahead log could not be flushed to the disk'])
  await store.atomic([put('before the reader ends')], 'lazily')
  for (const refused of [put('refused'), put('lost').onConflictDoNothing()]) {
    await expect(store.atomic([refused])).rejects.toThrow('still needed by readers')
  }
  await expect(Promise.resolve(store.settled?.())).rejects.toThrow('still needed by readers')
  expect(lines).toContain('gave up')
  // A change that is refused from the first is not made.
  expect(await stored()).toStrictEqual([{ key: 'before the reader ends' }, { key: 'lost' }])
  reader.exec('commit')
  reader.close()
})

test('a thread copies a long log and begins it anew, unless a reader needs it; nothing is lost', async () => {
  isHeld = false
  const reader = new Database(join(dir, 'mesh.db'), { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from settings').get()
  await fillLog()
  const { pages } = logState(store.sqlite)
  expect(pages).toBeGreaterThan(1200)
  reader.exec('commit')
  reader.close()
  await expect
    .poll(async () => {
      await store.atomic([put('one more').onConflictDoUpdate({ target: settings.key, set: { value: '2' } })])
      return logState(store.sqlite).pages
    })
    .toBeLessThan(100)
  expect(lines).toStrictEqual([])
  const found = await store.db.select().from(settings).where(eq(settings.value, '1')).all()
  expect(found).toHaveLength(20)
  expect(store.sqlite.pragma('integrity_check', { simple: true })).toBe('ok')
})

test('a log is not begun anew while another process writes', () => {
  store.sqlite.exec("insert into settings values ('a', '1', 0)")
  const other = new Database(join(dir, 'mesh.db'), { timeout: 0 })
  store.sqlite.exec('begin immediate')
  expect(beginAnew(other)).toMatchObject({ isNew: false })
  store.sqlite.exec('commit')
  expect(beginAnew(other)).toMatchObject({ isNew: true })
  other.close()
})

test('a stop flushes what did not wait for the disk', async () => {
  await store.atomic([put('lazy')], 'lazily')
  const { noted, note } = noting()
  note('closed', flushing.close())
  const flush = await nextFlush()
  expect(noted).toStrictEqual([])
  flush.end()
  await expect.poll(() => noted).toStrictEqual(['closed'])
})

test('what was read is acknowledged only when it is on the disk', async () => {
  const { noted, note } = noting()
  expect(store.settled?.()).toBe(null)
  note('change', store.atomic([put('key')]))
  const flush = await nextFlush()
  note('reader', Promise.resolve(store.settled?.()))
  await turn()
  expect(noted).toStrictEqual([])
  flush.end()
  await expect.poll(() => noted.toSorted()).toStrictEqual(['change', 'reader'])
})

test('a request whose change was not flushed is not answered as the repeat of itself', async () => {
  await store.lazily(() =>
    store.db.insert(users).values({ username: 'anna', authProvider: 'local', createdAt: 0 }).run(),
  )
  const keyed = { userId: 1, key: 'once', route: 'POST /api/messages', hashes: ['hash'] }
  const made = createOnce({ store, now: () => 1 }, keyed, {
    create: async (remember) => {
      const [first, ...others] = [put('made'), ...remember(sql`1`)]
      await store.atomic([first, ...others])
      return 'made'
    },
    repeat: async () => 'repeated',
  })
  ;(await nextFlush()).fail(new Error('EIO'))
  await expect(made).rejects.toThrow('could not be flushed')
})

test('pages that the disk refused are copied by the next start only; a thread that fails is done without', async () => {
  isHeld = false
  const failing = (code: string) => async () => {
    throw Object.assign(new Error(code), { code })
  }
  inPlace = failing('SQLITE_IOERR_FSYNC')
  await fillLog()
  await expect.poll(() => lines).toContain('gave up')
  inPlace = failing('ERR_WORKER_OUT_OF_MEMORY')
  const byCommits = () => store.sqlite.pragma('wal_autocheckpoint', { simple: true })
  expect(byCommits()).toBe(0)
  await expect
    .poll(async () => {
      const all = Array.from({ length: 300 }, (_, n) => put(`more ${n}`, 'x'.repeat(4000)).onConflictDoNothing())
      const [first = put('first'), ...others] = all
      await store.db.delete(settings)
      await store.atomic([first, ...others])
      return byCommits()
    })
    .toBe(1000)
})

test('what a killed process left is on the disk before anything is written behind it', async () => {
  await store.atomic([put('left')], 'lazily')
  expect(logState(store.sqlite).pages).toBeGreaterThan(0)
  const copied = join(dir, 'killed.db')
  for (const end of ['', '-wal']) copyFileSync(join(dir, `mesh.db${end}`), `${copied}${end}`)
  let seen: ReturnType<typeof logState> | null = null
  const next = openDatabase(
    copied,
    () => {},
    (sqlite) => {
      seen = logState(sqlite)
      return { change: (run) => run(), lazily: (run) => run(), pending: () => null }
    },
  )
  expect(Object(seen).copied).toBe(Object(seen).pages)
  expect(await next.db.select({ key: settings.key }).from(settings).all()).toStrictEqual([{ key: 'left' }])
  next.close()
})
