import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  buildCli,
  buildService,
  runCli,
  runToEnd,
  type Service,
  signInAt,
  startService,
} from '../../support/built/built-service.ts'
import { FAR, LOCAL, packet, text } from '../../support/mesh/mesh.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'

const PASSWORD = 'two services on two hills'
const JSON_BODY = { 'content-type': 'application/json' }

let root: string
let device: RadioDevice
const running: Service[] = []
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'mesh-standby-'))
  device = await startRadioDevice()
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop('SIGKILL')))
  await device.stop()
  rmSync(root, { recursive: true })
})

type Host = 'primary' | 'standby'

const envOf = (host: Host, env: Record<string, string>) => ({ DATA_DIR: join(root, host), ...env })
const cli = (host: Host, ...args: string[]) => runCli(buildCli(), args, envOf(host, {}))

async function start(host: Host, env: Record<string, string> = {}): Promise<Service> {
  const service = await startService(buildService(), envOf(host, { ADMIN_PASSWORD: PASSWORD, ...env }))
  running.push(service)
  return service
}

const signIn = async ({ url }: Service) => ({ ...JSON_BODY, cookie: await signInAt(url, PASSWORD) })

function rows(host: Host, sql: string): unknown[] {
  const database = new Database(join(root, host, 'mesh.db'), { readonly: true })
  try {
    return database.prepare(sql).raw().all()
  } finally {
    database.close()
  }
}

async function post({ url }: Service, headers: Record<string, string>, path: string, body: unknown) {
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: Object(await answer.json()) }
}

async function info({ url }: Service, headers: Record<string, string>) {
  return Object(await (await fetch(`${url}/api/info`, { headers })).json())
}

const connected = (service: Service, headers: Record<string, string>) =>
  expect.poll(async () => (await info(service, headers)).link?.state).toBe('connected')

const texts = (host: Host) => rows(host, 'select text, direction, delivery_state from messages order by id')

test('a standby takes the place of a primary that is gone, which then can no longer deliver', async () => {
  const radio = { MESHTASTIC_TCP: `127.0.0.1:${device.port}` }

  // The standby begins as a copy.
  const first = await start('primary', radio)
  const atFirst = await signIn(first)
  await connected(first, atFirst)
  expect((await post(first, atFirst, '/api/users', { username: 'ola' })).status).toBe(201)
  // In the backup, so that the standby knows it too.
  const token = await post(first, atFirst, '/api/tokens', {
    name: 'primary',
    scopes: ['ingest'],
    expiresInDays: null,
  })
  const made = await cli('primary', 'backup')
  const name = /(\d{4}-[\d_-]+): /.exec(made.out)?.[1] ?? made.err
  await first.stop('SIGTERM')
  mkdirSync(join(root, 'standby/system-backups'), { recursive: true, mode: 0o700 })
  cpSync(join(root, 'primary/system-backups', name), join(root, 'standby/system-backups', name), { recursive: true })
  expect(await cli('standby', 'restore', name)).toMatchObject({ code: 0 })
  expect(await cli('standby', 'standby')).toMatchObject({ code: 0, out: expect.stringContaining('is a standby') })
  expect(await runToEnd(buildService(), envOf('standby', radio))).toMatchObject({
    code: 1,
    err: expect.stringContaining('This service is a standby, which has no radios'),
  })

  // The primary delivers to it.
  const standby = await start('standby')
  const atStandby = await signIn(standby)
  const collecting = {
    COLLECTOR_TARGET_URL: standby.url,
    COLLECTOR_TOKEN: String(token.body.token),
    COLLECTOR_NAME: 'primary',
  }
  const primary = await start('primary', { ...radio, ...collecting })
  const atPrimary = await signIn(primary)
  await connected(primary, atPrimary)
  device.send(fromRadio(packet(text('from afar'), { from: FAR, to: LOCAL })))
  expect((await post(primary, atPrimary, '/api/messages', { text: 'from here' })).status).toBe(202)
  await expect.poll(() => texts('standby'), { timeout: 8_000 }).toHaveLength(2)
  expect(texts('standby')).toStrictEqual(
    expect.arrayContaining([
      ['from afar', 'in', null],
      ['from here', 'out', null],
    ]),
  )
  expect(rows('standby', `select is_local from nodes where node_num = ${LOCAL}`)).toStrictEqual([[1]])
  const refused = await post(standby, atStandby, '/api/messages', { text: 'not from there' })
  expect([refused.status, refused.body.code]).toStrictEqual([503, 'radio_unavailable'])

  // The primary is gone.
  expect(await cli('standby', 'promote')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('less than 10 minutes ago'),
  })
  await primary.stop('SIGKILL')
  const promoted = await cli('standby', 'promote', '--force')
  expect(promoted).toMatchObject({ code: 0, err: '' })
  expect(promoted.out).toMatch(/^Promoted: [^]*Revoked: the token primary of admin, which last delivered at 2/)
  expect(promoted.out).toContain(`  MESHTASTIC_TCP=127.0.0.1:${device.port}\n`)
  const again = await cli('standby', 'promote')
  expect(again).toMatchObject({ code: 0, err: '', out: expect.stringContaining('nothing changed') })
  expect(again.out).toContain(`  MESHTASTIC_TCP=127.0.0.1:${device.port}\n`)

  // The standby has the radio: who signed in there stays signed in.
  expect(await standby.stop('SIGTERM')).toBe(0)
  const now = await start('standby', { ...radio, PORT: new URL(standby.url).port })
  await connected(now, atStandby)
  expect((await post(now, atStandby, '/api/messages', { text: 'from the new one' })).status).toBe(202)
  await expect.poll(() => texts('standby').at(-1)).toStrictEqual(['from the new one', 'out', 'sent'])
  // What the radio says of itself is stored with the next batch.
  await expect.poll(() => rows('standby', `select is_local from nodes where node_num = ${LOCAL}`)).toStrictEqual([[1]])
  expect(rows('standby', 'select username from users order by id')).toStrictEqual([['admin'], ['ola']])

  // The old primary comes back without its radio, and may say nothing.
  const before = texts('standby').length
  const database = new Database(join(root, 'primary/mesh.db'))
  database.exec(`insert into collector_outbox (source, received_at, replayed, data)
    values ('old', ${Date.now()}, 0, '${Buffer.from(fromRadio(packet(text('a ghost')))).toString('base64')}')`)
  database.close()
  const old = await start('primary', collecting)
  const atOld = await signIn(old)
  await expect
    .poll(async () => (await info(old, atOld)).collector)
    .toMatchObject({ state: 'refused', reason: 'the target does not know the token (401)' })
  expect(texts('standby')).toHaveLength(before)
}, 120_000)
