import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { decodeCell } from '../../src/app/system/backup/format/cells.ts'
import { backupTables, quoted } from '../../src/app/system/backup/format/tables.ts'
import { readBackupSchedule, replaceBackupSettings } from '../../src/app/system/backup/settings.ts'
import { edgeBackups, type EdgeNeeds } from '../../src/edge/backup/backups.ts'
import { readContents } from '../../src/edge/backup/bucket.ts'
import { isBackingUp, runBackups } from '../../src/edge/backup/cron.ts'
import { beginBackup, endings, goOn } from '../../src/edge/backup/making.ts'
import { ResumableHash } from '../../src/edge/backup/sha256.ts'
import { type Claim, claimWork } from '../../src/edge/backup/work.ts'
import { memoryBucket, type MemoryBucket } from '../support/backup/memory-bucket.ts'
import { createTestApp, type TestApp } from '../support/app.ts'

const MINUTE = 60_000
const BY = { id: null, username: 'root', ip: null, requestId: null }

let app: TestApp
let bucket: MemoryBucket
let needs: EdgeNeeds
beforeEach(async () => {
  app = await createTestApp()
  bucket = memoryBucket()
  needs = { ...app.ports, bucket, schema: async () => '0068_backup_copies' }
  app.store.sqlite.exec(`insert into sources (id, kind, name, created_at) values (1, 'tcp', 'hill', 1);
    insert into metrics (id, name) values (1, 'a'), (2, 'b');
    with recursive i(n) as (select 1 union all select n + 1 from i where n < 90)
      insert into telemetry (node_id, metric, t, v) select n % 5, n % 2 + 1, n, n / 7.0 from i;
    with recursive i(n) as (select 1 union all select n + 1 from i where n < 60)
      insert into messages (id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        select n, n, 7, 8, 0, 'text ' || n, n, 'in' from i;
    insert into receptions (message_id, source_id, gateway, t) select id, 1, 0, 1 from messages;
    with recursive i(n) as (select 1 union all select n + 1 from i where n < 40)
      insert into waypoints (id, from_node_num, t, name, description, latitude, longitude) select n * 2, 7, 1, n, '', 1, 2 from i`)
})
afterEach(() => app.close())

const context = () => ({ ...needs, ip: null, requestId: null, viewer: null })
const make = () => edgeBackups(needs).create('manual', async () => {}, context())
const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted()

/** The rows of the database that a backup contains, by table. */
function rowsOfDatabase(): Record<string, string[]> {
  return Object.fromEntries(
    backupTables().map(({ name, columns }) => [
      name,
      sorted(
        app.store.sqlite
          .prepare(`select ${columns.map(quoted).join(', ')} from ${quoted(name)}`)
          .raw()
          .all(),
      ),
    ]),
  )
}

/** The rows of a backup in the bucket, by table. */
async function rowsOfBackup(name: string): Promise<Record<string, string[]>> {
  const { tables, objects } = await readContents(bucket, name)
  return Object.fromEntries(
    tables.map((table) => {
      const pieces = table.pieces.map(({ object, at, bytes }) => {
        const stored = bucket.objects.get(objects[object]?.key ?? '')?.bytes
        return gunzipSync(stored?.slice(at, at + bytes) ?? new Uint8Array())
      })
      const rows: unknown[][] = JSON.parse(Buffer.concat(pieces).toString()).rows
      return [table.name, sorted(rows.map((row) => row.map(decodeCell)))]
    }),
  )
}

const leftovers = () =>
  app.store.sqlite
    .prepare("select name from sqlite_schema where name like 'backup\\_%' escape '\\' and tbl_name <> 'backup_copies'")
    .pluck()
    .all()

/** Small numbers that look random and are the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

const WAYPOINT = '(id, from_node_num, t, name, description, latitude, longitude)'

/** One change of each kind that a table may see, at random places. */
function change(pick: (below: number) => number): void {
  const [id, other, t] = [1 + pick(90), 1 + pick(90), pick(120)]
  const changes = [
    `insert into telemetry (node_id, metric, t, v) values (${pick(6)}, 1, ${t}, 9.5) on conflict do update set v = v + 1`,
    `delete from telemetry where t = ${t}`,
    `update telemetry set t = t + 1000 where node_id = ${pick(5)} and t < 1000 and t % 7 = ${pick(7)}
      and not exists (select 1 from telemetry x where (x.node_id, x.metric, x.t) = (telemetry.node_id, telemetry.metric, telemetry.t + 1000))`,
    `insert into waypoints ${WAYPOINT} values (${id}, 1, 1, 'new', '', 1, 2) on conflict (id) do update set name = 'again'`,
    `delete from waypoints where id in (${id}, ${other}, (select max(id) from waypoints))`,
    `update waypoints set id = ${id} where id = ${other} and not exists (select 1 from waypoints where id = ${id})`,
    `delete from messages where id = ${id}`,
    `update messages set timestamp = timestamp + 1, delivery_state = 'sent' where id % 9 = ${pick(9)}`,
    `insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
      values (${pick(2 ** 30) + 1000}, 7, 8, 0, 'new', 1, 'in')`,
    `insert into settings (key, value, updated_at) values ('k${pick(9)}', '1', 1) on conflict (key) do update set value = value || '1'`,
    `delete from settings where key = 'k${pick(9)}'`,
    `insert into nodes (node_num, first_heard) values (${pick(99)}, 1) on conflict (node_num) do update set long_name = 'n${t}'`,
    `delete from nodes where node_num = ${pick(99)}`,
    `insert into receptions (message_id, source_id, gateway, t) select id, 1, ${pick(4)}, 2 from messages where id = ${id}
      on conflict do update set t = t + 1`,
  ]
  app.store.sqlite.exec(changes[pick(changes.length)] ?? '')
}

async function begin(): Promise<Claim> {
  const { now } = app.clock
  const asked = { name: '2026-01-15_120000', createdAt: now, kind: 'manual', appVersion: '1.0.0', by: BY } as const
  const claim = await beginBackup(needs, asked)
  if (claim === null) throw new Error('not begun')
  return claim
}

async function end(claim: Claim): Promise<void> {
  const [first, ...others] = await endings(needs, claim)
  if (first !== undefined) await needs.store.atomic([first, ...others])
}

test('whatever changes while a backup is made, it has the rows of its moment', async () => {
  for (let seed = 1; seed <= 3; seed++) {
    const pick = numbers(seed)
    for (let n = 0; n < 40; n++) change(pick)
    const expected = rowsOfDatabase()
    const claim = await begin()
    for (let n = 0; n < 30; n++) change(pick)
    while ((await goOn(needs, claim, 1 + pick(6))) === null) for (let n = 0; n < 6; n++) change(pick)
    expect(await rowsOfBackup(claim.state.name), `seed ${seed}`).toStrictEqual(expected)
    expect(rowsOfDatabase()).not.toStrictEqual(expected)
    await end(claim)
    expect(leftovers()).toStrictEqual([])
    for (const key of bucket.objects.keys()) bucket.objects.delete(key)
  }
})

test('a backup that stops at any of its steps goes on in the next run, and has the rows of its moment', async () => {
  const calls: string[] = []
  bucket.before = (call) => calls.push(call)
  await make()
  bucket.before = () => {}
  for (let stop = 0; stop < calls.length; stop++) {
    bucket = memoryBucket()
    needs = { ...needs, bucket }
    const expected = rowsOfDatabase()
    const claim = await begin()
    app.store.sqlite.exec('update messages set timestamp = -1; delete from telemetry where t = 3')
    // The process ends: nothing of it runs any more, not even what handles errors.
    let left = stop
    bucket.before = () => {
      if (left-- === 0) throw new Error('killed')
    }
    await goOn(needs, claim, 40).catch(() => null)
    bucket.before = () => {}
    app.clock.advance(6 * MINUTE)
    const next = await claimWork(app.store, app.clock.now)
    if (next === null) throw new Error('nobody may go on')
    // The earlier invocation was only slow: it can no longer change anything.
    await goOn(needs, claim, 40).catch(() => null)
    while ((await goOn(needs, next, 40)) === null);
    expect(await rowsOfBackup(next.state.name), `stopped at call ${stop}`).toStrictEqual(expected)
    await end(next)
    app.store.sqlite.exec('insert into telemetry (node_id, metric, t, v) values (1, 1, 3, 1) on conflict do nothing')
  }
  expect(calls.length).toBeGreaterThan(5)
})

test('a bucket that refuses or cuts what it gets is told, and nothing half counts', async () => {
  const earlier = await make()
  app.clock.advance(MINUTE)
  const kept = [...bucket.objects.keys()]
  const puts: string[] = []
  bucket.before = (call, key) => call === 'put' && puts.push(key)
  await make()
  for (let refused = 0; refused < puts.length; refused++) {
    for (const how of ['full', 'cut']) {
      app.clock.advance(MINUTE)
      let left = refused
      bucket.before = (call) => {
        if (call !== 'put' || left-- > 0) return
        if (how === 'full') throw new Error('put: the bucket is full (10001)')
        bucket.cutAt = 5
      }
      await expect(make()).rejects.toThrow(/^The backup failed: .*(?:full|stored 5 of).*\. Nothing was changed$/)
      bucket.cutAt = null
      bucket.before = () => {}
      expect(leftovers()).toStrictEqual([])
      expect((await edgeBackups(needs).list()).length).toBe(2)
    }
  }
  expect(puts.length).toBeGreaterThan(2)
  // Even if the bucket lets nothing be deleted, backups are made, and the parts go when it does.
  bucket.isLocked = true
  bucket.before = (call, key) => {
    if (call === 'put' && key.startsWith('manifests/')) throw new Error('refused')
  }
  await expect(make()).rejects.toThrow('The backup failed: refused')
  bucket.before = () => {}
  app.clock.advance(MINUTE)
  const locked = await make()
  expect((await edgeBackups(needs).list()).length).toBe(3)
  bucket.isLocked = false
  await edgeBackups(needs).remove(locked?.name ?? '', async () => {})
  app.clock.advance(MINUTE)
  const last = await make()
  const names = new Set([...bucket.objects.keys()].map((key) => /\d{4}-[\d_-]{12}/.exec(key)?.[0]))
  expect(names.size).toBe(3)
  for (const key of kept) expect(bucket.objects.has(key)).toBe(true)
  expect(await edgeBackups(needs).verify(last?.name ?? '')).toMatchObject({ ok: true, signature: 'own' })
  expect(earlier?.name).toBe('2026-01-15_120000')
})

test('a run that ended after its last put ends in the next one, although the bucket lets nothing be written over', async () => {
  bucket.isLocked = true
  const claim = await begin()
  while ((await goOn(needs, claim, 40)) === null);
  app.clock.advance(6 * MINUTE)
  await runBackups(needs)
  expect(await edgeBackups(needs).running()).toBe(null)
  expect(await edgeBackups(needs).verify(claim.state.name)).toMatchObject({ ok: true })
  // What is there is another one: it is not taken for this one.
  const next = memoryBucket()
  const key = `manifests/${claim.state.name}.json`
  next.objects.set(key, { bytes: new Uint8Array(bucket.objects.get(key)?.bytes.length ?? 0), customMetadata: {} })
  next.isLocked = true
  needs = { ...needs, bucket: next }
  const again = await begin()
  const toItsEnd = async () => {
    while ((await goOn(needs, again, 40)) === null);
  }
  await expect(toItsEnd()).rejects.toThrow('locked')
})

test('what is damaged in the bucket is found, and not downloaded', async () => {
  const backups = edgeBackups(needs)
  const name = (await make())?.name ?? ''
  const part = [...bucket.objects].find(([key]) => /\/0/.test(key))
  if (part === undefined) throw new Error('no part')
  const [key, { bytes }] = part
  const flipped = bytes.slice()
  flipped[bytes.length - 4000] = (flipped.at(-4000) ?? 0) ^ 1
  bucket.objects.set(key, { bytes: flipped, customMetadata: {} })
  const found = await backups.verify(name)
  expect(found.ok).toBe(false)
  expect(found.problems.length).toBeGreaterThan(0)
  // A part that inflates without end is not read to it.
  const bomb = new Uint8Array(gzipSync(Buffer.alloc(2 ** 24)))
  const contents = await readContents(bucket, name)
  const [first] = contents.tables
  const piece = { object: 0, at: 0, bytes: bomb.length }
  const bombed = { ...contents, tables: [{ ...first, pieces: [piece] }, ...contents.tables.slice(1)] }
  const listed = `parts/${name}/contents.json`
  const whole = bucket.objects.get(listed)
  if (whole === undefined) throw new Error('no list of parts')
  bucket.objects.set(key, { bytes: bomb, customMetadata: {} })
  bucket.objects.set(listed, { ...whole, bytes: new TextEncoder().encode(JSON.stringify(bombed)) })
  expect((await backups.verify(name)).problems).toContainEqual(expect.stringMatching(/has more than \d+ bytes$/))
  bucket.objects.set(listed, whole)
  bucket.objects.set(key, { bytes: bytes.slice(1), customMetadata: {} })
  await expect(backups.download(name)).rejects.toMatchObject({ code: 'backup_unusable' })
  // So short that a piece lies behind its end.
  bucket.objects.set(key, { bytes: bytes.slice(0, 9), customMetadata: {} })
  expect((await backups.verify(name)).problems.slice(0, 2)).toStrictEqual([
    `${key} is missing in the bucket, or has another size`,
    `${key} is shorter than it was`,
  ])
  bucket.objects.delete(key)
  expect((await backups.verify(name)).problems[0]).toMatch(/missing in the bucket/)
  const manifest = bucket.objects.get(`manifests/${name}.json`)
  if (manifest === undefined) throw new Error('no manifest')
  const forged = new TextDecoder().decode(manifest.bytes).replace('"manual"', '"scheduled"')
  bucket.objects.set(`manifests/${name}.json`, { ...manifest, bytes: new TextEncoder().encode(forged) })
  expect((await backups.verify(name)).problems).toStrictEqual(['manifest.json does not match its SHA-256'])
  await expect(backups.download(name)).rejects.toMatchObject({ code: 'backup_not_found' })
  await expect(backups.verify('../x')).rejects.toMatchObject({ code: 'backup_not_found' })
  // It is listed, so it can be deleted; what cannot be recorded changes nothing.
  const before = new Map(bucket.objects)
  const refused = async () => Promise.reject(new Error('no entry'))
  await expect(backups.remove(name, refused)).rejects.toThrow('no entry')
  expect(new Map(bucket.objects)).toStrictEqual(before)
  await backups.remove(name, async () => {})
  expect([...bucket.objects.keys()]).toStrictEqual([])
  await expect(backups.remove(name, async () => {})).rejects.toMatchObject({ code: 'backup_not_found' })
})

test('the schedule makes backups, goes on with them, keeps as many as set, and records what fails', async () => {
  const entries = (action: string): unknown[] =>
    app.store.sqlite
      .prepare<[string], string>('select details from audit_log where action = ?')
      .pluck()
      .all(action)
      .map((details) => JSON.parse(details))
  const settings = { enabled: true, maxBackups: 2, backupTime: '12:00' }
  await replaceBackupSettings(context(), settings)
  await runBackups(needs)
  expect(await edgeBackups(needs).list()).toStrictEqual([])
  for (let day = 0; day < 3; day++) {
    app.clock.advance(24 * 60 * MINUTE)
    await runBackups(needs)
    await runBackups(needs)
  }
  expect((await edgeBackups(needs).list()).map(({ name, kind }) => [name, kind])).toStrictEqual([
    ['2026-01-18_120000', 'scheduled'],
    ['2026-01-17_120000', 'scheduled'],
  ])
  expect(entries('backup_created').length).toBe(3)
  expect(entries('backup_deleted')).toStrictEqual([{ name: '2026-01-16_120000', reason: 'retention' }])
  // Two runs at once: one of them works.
  app.clock.advance(24 * 60 * MINUTE)
  await Promise.all([runBackups(needs), runBackups(needs), runBackups(needs)])
  expect(entries('backup_created').length).toBe(4)
  // One that cannot be deleted does not keep the others.
  bucket.before = (call, key) => {
    if (call === 'delete' && key.includes('2026-01-18')) throw new Error('locked')
  }
  for (let day = 0; day < 2; day++) {
    app.clock.advance(24 * 60 * MINUTE)
    await runBackups(needs)
  }
  expect((await edgeBackups(needs).list()).map(({ name }) => name.slice(0, 10))).toStrictEqual([
    '2026-01-21',
    '2026-01-20',
    '2026-01-18',
  ])
  expect(await readBackupSchedule(app.store)).toMatchObject({
    run: { ok: true, error: expect.stringMatching(/: locked$/) },
  })
  // The bucket fails for good.
  app.clock.advance(24 * 60 * MINUTE)
  bucket.before = (call, key) => {
    if (call === 'put' && key.startsWith('parts/')) throw new Error('R2 is away')
  }
  for (let run = 0; run < 5; run++) await runBackups(needs)
  expect(await edgeBackups(needs).running()).not.toBe(null)
  await runBackups(needs)
  expect(await edgeBackups(needs).running()).toBe(null)
  expect(entries('backup_failed')).toStrictEqual([{ kind: 'scheduled', error: 'R2 is away' }])
  expect(leftovers()).toStrictEqual([])
})

test('a backup whose runs end without a word is given up, and so is one that nobody goes on with or can read', async () => {
  const failed = (): unknown[] =>
    app.store.sqlite
      .prepare<[], string>("select details from audit_log where action = 'backup_failed' order by id")
      .pluck()
      .all()
      .map((details) => JSON.parse(details))
  const { name } = (await begin()).state
  for (let run = 0; run < 5; run++) {
    app.clock.advance(6 * MINUTE)
    await claimWork(app.store, app.clock.now)
  }
  expect(await isBackingUp(needs)).toBe(true)
  app.clock.advance(6 * MINUTE)
  await runBackups(needs)
  const silent = { kind: 'manual', name, error: 'its runs ended without a word' }
  expect([failed(), leftovers()]).toStrictEqual([[silent], []])
  // The trigger for backups is missing, or the bucket.
  await begin()
  app.clock.advance(7 * 60 * MINUTE)
  expect(await isBackingUp({ ...needs, bucket: null })).toBe(false)
  expect(await edgeBackups(needs).running()).not.toBe(null)
  app.clock.advance(18 * 60 * MINUTE)
  expect(await isBackingUp({ ...needs, bucket: null })).toBe(true)
  expect(await isBackingUp({ ...needs, bucket: null })).toBe(false)
  const late = { ...silent, name, error: 'it was not complete after a day' }
  expect([failed(), leftovers()]).toStrictEqual([[silent, late], []])
  for (const state of ['{', '{"failures":0}']) {
    await begin()
    app.store.sqlite.prepare('update backup_work set state = ?').run(state)
    expect(await isBackingUp(needs)).toBe(false)
    expect(await edgeBackups(needs).running()).toBe(null)
    await expect(make()).rejects.toMatchObject({ code: 'backup_in_progress' })
    app.clock.advance(6 * MINUTE)
    await (state === '{' ? isBackingUp(needs) : runBackups(needs))
    const lost = { ...silent, name: 'unknown', error: 'what was noted of it cannot be read' }
    expect([failed().at(-1), leftovers()]).toStrictEqual([lost, []])
  }
  expect(await make()).not.toBe(null)
  // Asking for one does not wait for the trigger: a new one begins, and the next run goes on with it.
  await begin()
  app.clock.advance(25 * 60 * MINUTE)
  expect(await make()).toBe(null)
  expect(failed().at(-1)).toStrictEqual(late)
  await runBackups(needs)
  expect([await edgeBackups(needs).running(), (await edgeBackups(needs).list()).length]).toStrictEqual([null, 2])
})

test('only one backup is made at a time, in whoever asks', async () => {
  const claim = await begin()
  await expect(make()).rejects.toMatchObject({ code: 'backup_in_progress' })
  expect(await edgeBackups(needs).running()).toStrictEqual({ name: claim.state.name, tables: 0, rows: 0 })
  // Nobody takes over from one that works.
  expect(await claimWork(app.store, app.clock.now + MINUTE)).toBe(null)
  // An upgrade of the database ends it, because it may have lost what was noted.
  await expect(goOn({ ...needs, schema: async () => '0069_next' }, claim, 9)).rejects.toThrow('upgraded meanwhile')
})

test('SHA-256 goes on from a stored state', () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, i) => (i * 7) % 256)
  for (let length = 0; length < 300; length++) {
    const first = new ResumableHash()
    first.update(bytes.subarray(0, length >> 1))
    const second = new ResumableHash(JSON.parse(JSON.stringify(first.state())))
    second.update(bytes.subarray(length >> 1, length))
    expect(second.hex()).toBe(createHash('sha256').update(bytes.subarray(0, length)).digest('hex'))
  }
})
