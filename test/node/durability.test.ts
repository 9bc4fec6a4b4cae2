import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { buildService, type Built, type Service, signInAt, startService } from '../support/built/built-service.ts'

const ROUNDS = 4
const WRITERS = 8
/** Every second token is revoked. */
const REVOKED_EACH = 2
const PASSWORD = 'the first administrator'

let built: Built
let dir: string
beforeAll(() => {
  built = buildService()
  dir = mkdtempSync(join(tmpdir(), 'mesh-durable-'))
})
afterAll(() => {
  rmSync(dir, { recursive: true })
})

const json = { 'content-type': 'application/json' }

const tokenAnswer = z.object({ id: z.int(), name: z.string() })
const userAnswer = z.object({ user: z.object({ id: z.int(), username: z.string() }) })

/** What was answered with success before the kill. */
type Acknowledged = { users: string[]; tokens: string[]; revoked: string[]; display: string[] }

/** Writes until the connection breaks, noting each answer as soon as it arrives. */
async function write(writer: string, url: string, cookie: string, noted: Acknowledged, onWrite: () => void) {
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { cookie, ...(body !== undefined && json) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  for (let i = 0; ; i++) {
    const made = tokenAnswer.parse(
      await (await send('POST', '/api/tokens', { name: `${writer}-${i}`, scopes: ['nodes:read'] })).json(),
    )
    noted.tokens.push(made.name)
    onWrite()
    await send('PUT', '/api/users/1', { displayName: `${writer}-${i}` })
    noted.display.push(`${writer}-${i}`)
    onWrite()
    if (i % REVOKED_EACH === 0) {
      await send('DELETE', `/api/tokens/${made.id}`)
      noted.revoked.push(made.name)
      onWrite()
    }
    if (i % 10 === 0) {
      const user = { username: `${writer}-${i}`, password: PASSWORD }
      const { user: created } = userAnswer.parse(await (await send('POST', '/api/users', user)).json())
      noted.users.push(created.username)
      onWrite()
    }
  }
}

/** Kills the service while all writers are busy; returns how each of them ended. */
async function killUnderLoad(service: Service, round: number, noted: Acknowledged): Promise<unknown[]> {
  const cookie = await signInAt(service.url, PASSWORD)
  const enough = 60 + round * 37
  let writes = 0
  const kills: Promise<number | null>[] = []
  const onWrite = () => {
    if (++writes === enough) kills.push(service.stop('SIGKILL'))
  }
  const writers = Array.from({ length: WRITERS }, (_, i) =>
    write(`r${round}w${i}`, service.url, cookie, noted, onWrite),
  )
  const ends = await Promise.allSettled(writers)
  expect(await Promise.all(kills)).toStrictEqual([null])
  return ends.map((end) => (end.status === 'rejected' ? end.reason : null))
}

function columnOf(sql: string): string[] {
  const sqlite = new Database(join(dir, 'mesh.db'))
  try {
    expect(sqlite.pragma('integrity_check')).toStrictEqual([{ integrity_check: 'ok' }])
    return sqlite.prepare(sql).pluck().all().map(String)
  } finally {
    sqlite.close()
  }
}

/** A user can have at most fifty. */
function giveTokensAway(): void {
  const sqlite = new Database(join(dir, 'mesh.db'))
  sqlite.exec('update api_tokens set user_id = (select max(id) from users)')
  sqlite.close()
}

test('after kill -9 under a load of writes every acknowledged one is stored, with its entry', async () => {
  const noted: Acknowledged = { users: [], tokens: [], revoked: [], display: [] }
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startService(built, { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, LOG_LEVEL: 'info' })
    const ends = await killUnderLoad(service, round, noted)
    for (const end of ends) expect(String(end)).toMatch(/fetch failed|terminated|other side closed/)

    const again = await startService(built, { DATA_DIR: dir, LOG_LEVEL: 'info' })
    expect((await fetch(`${again.url}/api/health`)).status).toBe(200)
    expect(await again.stop('SIGTERM')).toBe(0)

    const tokens = new Set(columnOf('select name from api_tokens'))
    const gone = new Set(noted.revoked)
    expect(noted.tokens.filter((name) => !gone.has(name) && !tokens.has(name) && !inFlight(name, noted))).toStrictEqual(
      [],
    )
    expect(noted.revoked.filter((name) => tokens.has(name))).toStrictEqual([])
    const users = new Set(columnOf('select username from users'))
    expect(noted.users.filter((name) => !users.has(name))).toStrictEqual([])
    const shown = new Set(
      columnOf("select json_extract(details, '$.after.displayName') from audit_log where action = 'user_updated'"),
    )
    expect(noted.display.filter((name) => !shown.has(name))).toStrictEqual([])
    entriesMatchChanges()
    giveTokensAway()
  }
  expect(noted.tokens.length).toBeGreaterThan(100)
  expect(noted.users.length).toBeGreaterThan(0)
})

// Its revocation was under way when the service was killed: it may be done without an answer.
function inFlight(name: string, noted: Acknowledged): boolean {
  const last = noted.display.includes(name) && !noted.revoked.includes(name)
  return last && Number(name.split('-')[1]) % REVOKED_EACH === 0
}

function entriesMatchChanges() {
  const [made, revoked, left] = [
    "select count(*) from audit_log where action = 'token_created'",
    "select count(*) from audit_log where action = 'token_revoked'",
    'select count(*) from api_tokens',
  ].map((sql) => Number(columnOf(sql)[0]))
  expect(Number(made) - Number(revoked)).toBe(left)
  expect(
    columnOf("select details ->> '$.username' from audit_log where action = 'user_created' order by 1"),
  ).toStrictEqual(columnOf('select username from users where id > 1 order by 1'))
  const [name] = columnOf('select display_name from users where id = 1')
  const [entry] = columnOf(
    "select details ->> '$.after.displayName' from audit_log where action = 'user_updated' order by id desc limit 1",
  )
  expect(name).toBe(entry)
}
