import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { type Built, buildService, type Service, startService } from '../support/built/built-service.ts'
import { figure } from './figures.ts'

const YEARS_MS = 3 * 365 * 86_400_000
const ROWS = 20_000
/** Upkeep begins a minute after a start. */
const PATIENCE_MS = 90_000

let built: Built
const dir = mkdtempSync(join(tmpdir(), 'mesh-clock-'))
const file = join(dir, 'mesh.db')
beforeAll(() => {
  built = buildService()
  const store = openDatabase(file)
  const now = Date.now()
  store.sqlite.exec(`insert into nodes (node_num, first_heard, last_heard) values (7, ${now - 86_400_000}, ${now});
    insert into metrics (name) values ('a.a');
    with recursive i(n) as (select 1 union all select n + 1 from i where n < ${ROWS})
      insert into telemetry (node_id, metric, t, v) select 1, 1, ${now - 3_600_000} + n, 1 from i`)
  store.close()
})
afterAll(() => {
  rmSync(dir, { recursive: true })
})

/** Changes the time that the program sees, but not its measured durations. */
const ahead = `const real = Date, shift = ${YEARS_MS}
globalThis.Date = class extends real {
  constructor(...given) { given.length === 0 ? super(real.now() + shift) : super(...given) }
  static now() { return real.now() + shift }
}`

const start = (env: Record<string, string> = {}): Promise<Service> =>
  startService(built, { DATA_DIR: dir, ADMIN_PASSWORD: 'the first administrator', ...env })

function countRows(): number {
  const database = new Database(file, { readonly: true })
  try {
    return Number(database.prepare('select count(*) from telemetry').pluck().get())
  } finally {
    database.close()
  }
}

test('a clock three years ahead deletes nothing at any start', async () => {
  const future = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}` }
  for (const begin of ['first', 'second']) {
    const service = await start(future)
    expect(await (await fetch(`${service.url}/api/health`)).json()).toMatchObject({ status: 'ok', clock: 'ahead' })
    await wait(PATIENCE_MS)
    expect(service.lines.filter((line) => line.includes('is far ahead of what is stored'))).toHaveLength(1)
    expect(await service.stop('SIGTERM')).toBe(0)
    figure(`clock three years ahead, ${begin} start: measurements deleted of ${ROWS}`, ROWS - countRows())
    expect(countRows()).toBe(ROWS)
  }
  const service = await start()
  expect(await (await fetch(`${service.url}/api/health`)).json()).toEqual({ status: 'ok', uptime: 0 })
  await service.stop('SIGTERM')
})
