// Backup and restore of 1,000,000 measurements, relative to what this machine can do with the rows of the same table in
// the same run.
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { longestHold, memoryMb, PASSWORD, readCpu, type Running, signIn, startService } from '../servers/processes.ts'
import { inRounds, reportRatio } from '../ratio.ts'
import { median, report } from '../table.ts'

const AT_ONCE = 100

/** Processor time of this process, in microseconds. */
function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Every table's rows as JSON made by SQLite itself, a series of measurements at a time, written to the disk. */
function rawExport(database: string, file: string): number {
  const sqlite = new Database(database, { readonly: true })
  const begun = ownCpu()
  const fd = openSync(file, 'w')
  for (const table of tablesOf(sqlite)) {
    const columns = sqlite.prepare<[], string>(`select name from pragma_table_info('${table}')`).pluck().all()
    const row = `json_array(${columns.map((name) => `"${name}"`).join()})`
    const isSeries = columns.includes('metric') && columns.includes('node_id')
    const lines = isSeries ? `group_concat(${row}, char(44, 10))` : row
    const select = sqlite.prepare(`select ${lines} from ${table} ${isSeries ? 'group by node_id, metric' : ''}`).pluck()
    let block: unknown[] = []
    for (const line of select.iterate()) {
      block.push(line)
      if (!isSeries && block.length < 1000) continue
      writeSync(fd, block.join(',\n'))
      block = []
    }
    writeSync(fd, block.join(',\n'))
  }
  fsyncSync(fd)
  closeSync(fd)
  const cpu = ownCpu() - begun
  sqlite.close()
  return cpu
}

/**
 * Every table's rows from memory, by prepared inserts of many rows in one transaction; the indexes are created after
 * the rows.
 */
function rawInsert(database: string, file: string): number {
  const source = new Database(database, { readonly: true })
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
  const sqlite = new Database(file)
  sqlite.pragma('journal_mode = WAL')
  sqlite.pragma('foreign_keys = OFF')
  const tables = tablesOf(source).map((table) => {
    const select = source.prepare(`select * from ${table}`).raw()
    return { table, rows: select.all(), width: select.columns().length }
  })
  const schema = source.prepare<[string], { name: string; sql: string }>(
    'select tbl_name as name, sql from sqlite_master where type = ? and sql is not null',
  )
  const names = new Set(tables.map(({ table }) => table))
  const own = (type: string) => schema.all(type).filter(({ name }) => names.has(name))
  for (const { sql } of own('table')) sqlite.exec(sql)
  const begun = ownCpu()
  sqlite.exec('begin')
  for (const { table, rows, width } of tables) {
    const place = `(${Array(width).fill('?').join()})`
    const one = sqlite.prepare(`insert into ${table} values ${place}`)
    const many = sqlite.prepare(`insert into ${table} values ${Array(AT_ONCE).fill(place).join()}`)
    const whole = rows.length - (rows.length % AT_ONCE)
    for (let n = 0; n < whole; n += AT_ONCE) many.run(rows.slice(n, n + AT_ONCE).flat())
    for (const row of rows.slice(whole)) one.run(row)
  }
  for (const { sql } of own('index')) sqlite.exec(sql)
  sqlite.exec('commit')
  const cpu = ownCpu() - begun
  sqlite.close()
  source.close()
  return cpu
}

/** The contents of a backup: no sessions, no derived counts, no text index. */
function tablesOf(sqlite: Database.Database): string[] {
  return sqlite
    .prepare<[], string>(
      `select name from pragma_table_list where type = 'table' and schema = 'main' and name not like 'sqlite_%'
        and name not like '\\_\\_%' escape '\\' and name not in ('sessions', 'rate_limits', 'revisions', 'row_counts')
        and name not in (select name from pragma_table_list where type = 'shadow')`,
    )
    .pluck()
    .all()
}

/** One backup by the service, with its cost. */
async function backUp(service: Running, cookie: string) {
  const before = memoryMb(service).now
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, memoryMb(service).now)), 10)
  let made = { name: '', own: Number.NaN }
  const holdMs = await longestHold(service, async () => {
    const begun = await readCpu(service)
    const url = `http://127.0.0.1:${service.port}/api/system/backup`
    const answer = await fetch(url, { method: 'POST', headers: { cookie } })
    if (answer.status !== 201) throw new Error(`backup: ${answer.status} ${await answer.text()}`)
    const { backup } = Object(await answer.json())
    made = { name: String(backup.name), own: (await readCpu(service)) - begun }
  }).finally(() => clearInterval(watch))
  return { ...made, extraMb: peak - before, holdMs }
}

async function backups(scratch: string, dataDir: string): Promise<string> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookie = await signIn(service.port)
  const once = async () => {
    const limit = rawExport(join(dataDir, 'mesh.db'), join(scratch, 'raw.json'))
    return { ...(await backUp(service, cookie)), limit }
  }
  await once()
  const rounds = await inRounds(['limit'], once)
  await service.stop()
  reportRatio('backup of 1,000,000 measurements, against a raw read and write', rounds, { target: 0.5, cost: seconds })
  const memory = median(rounds.map(({ extraMb }) => extraMb))
  report('memory of the service meanwhile', `${memory.toFixed(0)} MB more`, '≤ 80 MB', memory <= 80)
  const pause = median(rounds.map(({ holdMs }) => holdMs))
  report('longest hold meanwhile', `${pause.toFixed(1)} ms`, '≤ 25 ms', pause <= 25)
  return rounds[0]?.name ?? ''
}

const seconds = (own: number, limit: number) => `${(own / 1e6).toFixed(2)} of ${(limit / 1e6).toFixed(2)} s`

/** Starts the service and stops it: the processor time of the start, and its highest memory so far. */
async function start(dataDir: string, env: Record<string, string>): Promise<{ cpu: number; peakMb: number }> {
  const service = await startService(dataDir, env)
  const cpu = await readCpu(service)
  const peakMb = memoryMb(service).most
  await service.stop()
  return { cpu, peakMb }
}

/** A start with a restore, against one without. */
async function restores(scratch: string, dataDir: string, name: string): Promise<void> {
  const once = async () => {
    const limit = rawInsert(join(dataDir, 'mesh.db'), join(scratch, 'raw.db'))
    const plain = await start(dataDir, {})
    rmSync(join(dataDir, '.restore-completed'), { force: true })
    const restoring = await start(dataDir, { RESTORE_FROM_BACKUP: name })
    return { own: restoring.cpu - plain.cpu, extraMb: restoring.peakMb - plain.peakMb, limit }
  }
  await once()
  const rounds = await inRounds(['limit'], once)
  reportRatio('restore of it, against raw inserts', rounds, { target: 0.5, cost: seconds })
  const memory = median(rounds.map(({ extraMb }) => extraMb))
  report('memory of a start with it', `${memory.toFixed(0)} MB more`, '≤ 120 MB', memory <= 120)
}

export async function measureStorage(scratch: string, dataDir: string): Promise<void> {
  const name = await backups(scratch, dataDir)
  await restores(scratch, dataDir, name)
}
