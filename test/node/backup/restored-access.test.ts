import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { readCopyKeys } from '../../../src/app/system/copies/keys.ts'
import { readServiceMark } from '../../../src/app/system/copies/service-mark.ts'
import { restoreBackup, type RestoreOptions } from '../../../src/node/backup/restore/restore.ts'
import { consoleContext } from '../../../src/node/console-context.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { auditRows, type Client, createTestApp, START, type TestApp, USER_PASSWORD } from '../../support/app.ts'
import { keptLog, makeBackup, makeDataDir, restoreOptions } from '../../support/backup/backup.ts'
import { buildCli, programEnv } from '../../support/built/built-service.ts'

let here: ReturnType<typeof makeDataDir>
let app: TestApp
let admin: Client

beforeEach(async () => {
  here = makeDataDir()
  await open()
})
afterEach(() => {
  app.close()
  here.remove()
})

async function open(): Promise<void> {
  const store = openDatabase(here.database)
  app = await createTestApp({ store, ports: { sessions: databaseSessions(store) } })
  app.clock.advance(600_000)
  admin = await app.admin()
}

/** Stops the service, restores, starts it; returns the log. */
async function restore(name: string, more: Partial<RestoreOptions> = {}): Promise<Record<string, unknown>[]> {
  app.close()
  const entries: Record<string, unknown>[] = []
  const note = (level: string) => (message: string, fields?: object) => entries.push({ level, message, ...fields })
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  await restoreBackup(restoreOptions(here.dataDir, { log, now: () => START + 3_600_000, ...more }), name)
  await open()
  return entries
}

const body = async (answer: Response) => Object(await answer.json())
const restoredAccess = async () =>
  (await body(await admin.send('GET', '/api/system/restore/restored-access'))).restoredAccess
const reapply = async (ids: number[]) => admin.send('POST', '/api/system/restore/reapply', { ids })
const NODES = { nodes: { read: true, write: true } }

type People = Record<'anna' | 'bea' | 'carl' | 'dora' | 'emil', Client & { id: number }>

async function fill(): Promise<People> {
  const people = {
    anna: await app.user('anna'),
    bea: await app.user('bea'),
    carl: await app.user('carl', NODES),
    dora: await app.user('dora'),
    emil: await app.user('emil'),
  }
  expect((await admin.send('PUT', `/api/users/${people.bea.id}/admin`, { isAdmin: true })).status).toBe(200)
  expect((await people.emil.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })).status).toBe(201)
  return people
}

/** Takes away, once each, everything from users that an audit entry can report as taken away. */
async function takeAway(people: People): Promise<{ dorasPassword: string }> {
  app.clock.advance(60_000)
  expect((await admin.send('DELETE', `/api/users/${people.anna.id}`)).status).toBe(204)
  expect((await admin.send('PUT', `/api/users/${people.bea.id}/admin`, { isAdmin: false })).status).toBe(200)
  const permissions = { nodes: { read: true, write: false }, messages: { read: false, write: false } }
  expect((await admin.send('PUT', `/api/users/${people.carl.id}/permissions`, { permissions })).status).toBe(200)
  const { password } = await body(await admin.send('POST', `/api/users/${people.dora.id}/reset-password`))
  const { tokens } = await body(await people.emil.send('GET', '/api/tokens'))
  expect((await people.emil.send('DELETE', `/api/tokens/${tokens[0].id}`)).status).toBe(204)
  return { dorasPassword: String(password) }
}

const NAMED = [
  { action: 'user_deleted', username: 'anna' },
  { action: 'admin_status_changed', username: 'bea' },
  { action: 'permissions_updated', username: 'carl' },
  { action: 'password_reset', username: 'dora' },
  { action: 'token_revoked', username: 'emil', token: expect.stringMatching(/^cron \(mm_.{6}…\)$/) },
]

test('a token is shown with the change that ended it, not with later ones', async () => {
  const people = await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  await takeAway(people)
  const endedAt = new Date(app.clock.now).toISOString()
  app.clock.advance(60_000)
  const changed = { currentPassword: USER_PASSWORD, newPassword: 'quite another password' }
  expect((await people.emil.send('POST', '/api/auth/change-password', changed)).status).toBe(204)
  const changedAt = new Date(app.clock.now).toISOString()
  const log = await restore(name)
  expect(log.filter(({ username }) => username === 'emil')).toMatchObject([
    { action: 'password_changed', at: changedAt },
    { action: 'token_revoked', at: endedAt },
  ])
})

test('access that a restore brings back is listed in its log, its entry and for administrators, and can be revoked', async () => {
  const people = await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  const { dorasPassword } = await takeAway(people)
  const log = await restore(name)
  const warned = log.filter(({ message }) => message === 'The restore undid this change, made after the backup')
  expect(warned).toMatchObject(NAMED.map((one) => ({ ...one, level: 'warn' })))
  expect(warned.map(({ by }) => by)).toStrictEqual(['admin', 'admin', 'admin', 'admin', 'emil'])
  const entry = auditRows(app).find(({ action }) => action === 'system_restored')
  expect(entry?.details['restoredAccess']).toStrictEqual(NAMED)

  // All of it is back, as the documentation says.
  await app.signIn('anna')
  await app.signIn('dora')
  const list = await restoredAccess()
  expect(list).toMatchObject(NAMED.map(({ action, username }, i) => ({ id: i + 1, action, username })))
  expect(JSON.stringify(list)).not.toContain('$2b$')
  expect((await app.user('plain').then((user) => user.send('GET', '/api/system/restore/restored-access'))).status).toBe(
    403,
  )
  const answer = await reapply([1, 2, 3, 4, 5])
  expect([answer.status, await body(answer)]).toStrictEqual([200, { reapplied: [1, 2, 3, 4, 5], refused: [] }])

  await expect(app.signIn('anna')).rejects.toThrow(/401/)
  await expect(app.signIn('dora')).rejects.toThrow(/401/)
  expect(await (await app.signIn('dora', dorasPassword)).send('GET', '/api/auth/status').then(body)).toMatchObject({
    mustChangePassword: true,
  })
  expect((await body(await admin.send('GET', `/api/users/${people.bea.id}`))).user.isAdmin).toBe(false)
  const { permissions } = await body(await admin.send('GET', `/api/users/${people.carl.id}/permissions`))
  expect(permissions).toMatchObject({
    nodes: { read: true, write: false },
    messages: { read: false, write: false },
    dashboard: { read: true, write: false },
  })
  expect(await (await app.signIn('emil')).send('GET', '/api/tokens').then(body)).toStrictEqual({ tokens: [] })
  expect(await restoredAccess()).toStrictEqual([])
  const done = auditRows(app).filter(({ action }) => action === 'restore_reapplied')
  expect(done).toStrictEqual([
    { action: 'restore_reapplied', username: 'admin', details: { name, restoredAccess: NAMED } },
  ])
  expect((await reapply([1])).status).toBe(404)
})

test('selected changes are applied again; the others wait until they are accepted or applied', async () => {
  const people = await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  await takeAway(people)
  await restore(name)
  expect(await reapply([3]).then(body)).toStrictEqual({ reapplied: [3], refused: [] })
  expect((await admin.send('DELETE', `/api/users/${people.anna.id}`)).status).toBe(204)
  expect((await restoredAccess()).map(({ id }: { id: number }) => id)).toStrictEqual([2, 4, 5])
  expect((await reapply([2, 3])).status).toBe(404)
  expect((await admin.send('DELETE', '/api/system/restore/restored-access')).status).toBe(204)
  expect(await body(await admin.send('GET', '/api/system/restore/restored-access'))).toStrictEqual({
    backup: null,
    restoredAccess: [],
  })
  await app.signIn('dora')
  const accepted = auditRows(app).filter(({ action }) => action === 'restore_accepted')
  expect(accepted).toMatchObject([
    { username: 'admin', details: { name, restoredAccess: [NAMED[1], NAMED[3], NAMED[4]] } },
  ])
})

const NODE = 0xa0cb0002
const READ = { read: true, write: false }
const NOBODY = { read: false, write: false }
const SHOWN = {
  enabled: true,
  permissions: { dashboard: NOBODY, nodes: READ, messages: READ, info: NOBODY },
  channels: [0, 2],
  positionPrecisionBits: 13,
  hideSilentAfterDays: 30,
}
const share = (changes: object) => admin.send('PUT', '/api/public-access', changes)
const shown = async () => body(await admin.send('GET', '/api/public-access'))
const showNode = (nodeNum: number) =>
  app.store.sqlite.exec(`insert into nodes (node_num, first_heard) values (${nodeNum}, 1)`)
const hide = (nodeNum: number) => admin.send('PUT', `/api/nodes/${nodeNum}`, { hidden: true })
const hiddenNodes = () =>
  app.store.sqlite
    .prepare('select node_num from nodes where is_hidden union select node_num from deleted_nodes where is_hidden')
    .pluck()
    .all()

test('wider public access, channels of users and nodes that were hidden are listed too, and are narrowed again', async () => {
  const anna = await app.user('anna')
  const scope = { channels: { read: [0], write: [] }, direct: NOBODY }
  showNode(NODE)
  expect((await share(SHOWN)).status).toBe(200)
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  app.clock.advance(60_000)
  expect((await share({ enabled: false })).status).toBe(200)
  expect((await admin.send('PUT', `/api/users/${anna.id}/permissions`, { permissions: {}, scope })).status).toBe(200)
  showNode(NODE + 1)
  expect([(await hide(NODE)).status, (await hide(NODE + 1)).status]).toStrictEqual([200, 200])
  const log = await restore(name)

  const named = [
    { action: 'public_access_updated' },
    { action: 'node_updated', node: '!a0cb0002' },
    { action: 'node_updated', node: '!a0cb0003' },
    { action: 'permissions_updated', username: 'anna' },
  ]
  expect(log.filter(({ level }) => level === 'warn')).toMatchObject(named.map((one) => ({ ...one, by: 'admin' })))
  expect(auditRows(app).find(({ action }) => action === 'system_restored')?.details['restoredAccess']).toStrictEqual(
    named,
  )
  const list = await restoredAccess()
  expect(list).toMatchObject([
    { userId: null, username: null, publicAccess: { ...SHOWN, enabled: false } },
    { hiddenNode: NODE, publicAccess: null },
    { hiddenNode: NODE + 1 },
    { username: 'anna', scope, permissions: null },
  ])
  expect([await shown(), hiddenNodes()]).toStrictEqual([SHOWN, []])

  expect(await reapply([1, 2, 3, 4]).then(body)).toStrictEqual({ reapplied: [1, 2, 3, 4], refused: [] })
  expect([await shown(), hiddenNodes()]).toStrictEqual([{ ...SHOWN, enabled: false }, [NODE, NODE + 1]])
  expect((await body(await admin.send('GET', `/api/users/${anna.id}/permissions`))).scope).toStrictEqual(scope)
  showNode(NODE + 1)
  expect(hiddenNodes()).toStrictEqual([NODE, NODE + 1])
  expect(await restoredAccess()).toStrictEqual([])
})

test('what was reduced by hand since the restore leaves the list, and a wider public access is not listed', async () => {
  showNode(NODE)
  expect((await share({ ...SHOWN, channels: [0] })).status).toBe(200)
  const narrow = await makeBackup(here.dataDir, { now: () => app.clock.now })
  expect((await share(SHOWN)).status).toBe(200)
  const wide = await makeBackup(here.dataDir, { now: () => app.clock.now + 1000 })
  app.clock.advance(60_000)
  expect((await share({ channels: [0] })).status).toBe(200)
  await hide(NODE)
  await restore(wide)
  expect(await restoredAccess()).toMatchObject([{ action: 'public_access_updated' }, { action: 'node_updated' }])
  await share({ channels: [] })
  await hide(NODE)
  expect(await restoredAccess()).toStrictEqual([])
  await restore(narrow)
  expect(await restoredAccess()).toMatchObject([
    { action: 'public_access_updated', publicAccess: { channels: [] } },
    { action: 'node_updated' },
  ])
})

test('one administrator always remains, and nobody takes away their own account', async () => {
  const bea = await app.user('bea')
  expect((await admin.send('PUT', `/api/users/${bea.id}/admin`, { isAdmin: true })).status).toBe(200)
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  // A hostile takeover: a third administrator removes the others.
  const intruder = await app.user('intruder')
  expect((await admin.send('PUT', `/api/users/${intruder.id}/admin`, { isAdmin: true })).status).toBe(200)
  for (const id of [1, bea.id]) expect((await intruder.send('DELETE', `/api/users/${id}`)).status).toBe(204)
  await restore(name)
  expect(await restoredAccess()).toMatchObject([
    { action: 'user_deleted', username: 'admin', by: 'intruder' },
    { action: 'user_deleted', username: 'bea', by: 'intruder' },
  ])
  expect(await reapply([1, 2]).then(body)).toMatchObject({
    reapplied: [2],
    refused: [{ id: 1, code: 'self_change_forbidden' }],
  })
  expect((await restoredAccess()).map(({ id }: { id: number }) => id)).toStrictEqual([1])
})

const reapplyAll = (store: ReturnType<typeof openDatabase>) =>
  consoleContext({ ...app.ports, store, log: keptLog().log })

test('RESTORE_REAPPLY applies everything within the restore, but keeps the last administrator', async () => {
  const people = await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  const { dorasPassword } = await takeAway(people)
  const log = await restore(name, { reapply: reapplyAll })
  expect(log.filter(({ level }) => level === 'warn')).toMatchObject(
    NAMED.map((one) => ({ ...one, outcome: 'done again' })),
  )
  await expect(app.signIn('anna')).rejects.toThrow(/401/)
  await app.signIn('dora', dorasPassword)
  expect(await restoredAccess()).toStrictEqual([])
  expect(
    auditRows(app)
      .slice(-12)
      .filter(({ username }) => username === 'system'),
  ).toMatchObject([
    { action: 'system_restored' },
    { action: 'user_deleted', details: { username: 'anna' } },
    { action: 'admin_status_changed', details: { username: 'bea' } },
    { action: 'permissions_updated', details: { username: 'carl' } },
    { action: 'password_reset', details: { username: 'dora' } },
    { action: 'token_revoked', details: { username: 'emil' } },
    { action: 'restore_reapplied', details: { name } },
  ])

  const next = await makeBackup(here.dataDir, { now: () => app.clock.now + 1000 })
  expect((await admin.send('PUT', `/api/users/${people.carl.id}/admin`, { isAdmin: true })).status).toBe(200)
  const carl = await app.signIn('carl')
  expect((await carl.send('DELETE', '/api/users/1')).status).toBe(204)
  expect(await restore(next, { reapply: reapplyAll })).toContainEqual(
    expect.objectContaining({ username: 'admin', action: 'user_deleted', outcome: 'Last administrator' }),
  )
  expect(await restoredAccess()).toMatchObject([{ action: 'user_deleted', username: 'admin', by: 'carl' }])
})

test('undecided changes remain after the next restore; what the backup already knew is not listed', async () => {
  const people = await fill()
  const first = await makeBackup(here.dataDir, { now: () => app.clock.now })
  await takeAway(people)
  const later = await makeBackup(here.dataDir, { now: () => app.clock.now })
  await restore(first)
  expect(await restoredAccess()).toHaveLength(5)
  await restore(first)
  expect(await restoredAccess()).toHaveLength(5)
  expect(await reapply([1]).then(body)).toMatchObject({ reapplied: [1] })
  // Anna is active only in the first backup, and has been deactivated again since.
  await restore(first)
  expect(await restoredAccess()).toMatchObject([
    { username: 'anna', by: 'admin' },
    ...NAMED.slice(1).map(({ action }) => ({ action })),
  ])
  await restore(later)
  expect(await restoredAccess()).toStrictEqual([])
})

test('ids in the log of another service are not applied to users here', async () => {
  await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  app.close()
  rmSync(here.database)
  const store = openDatabase(here.database)
  store.sqlite.exec(`
    insert into users (id, username, auth_provider, is_admin, is_active, created_at) values
      (1, 'root', 'local', 1, 1, 7), (2, 'somebody', 'local', 0, 0, 8);
    insert into audit_log (timestamp, user_id, username, action, resource, details)
      values (${START * 2}, 1, 'root', 'user_deleted', 'users', '{"userId":2,"username":"somebody"}')`)
  store.close()
  const log = await restore(name)
  expect(log.map(({ level, message }) => `${String(level)} ${String(message)}`)).toStrictEqual([
    expect.stringMatching(/^info Restore completed: /),
  ])
  expect(await restoredAccess()).toStrictEqual([])
})

test('a renewed hash of the same password does not count as a change of it', async () => {
  const anna = await app.user('anna')
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  app.store.sqlite
    .prepare("update users set password_hash = replace(password_hash, '$2b$12$', '$2b$13$') where id = ?")
    .run(anna.id)
  await restore(name)
  expect(await restoredAccess()).toStrictEqual([])
  await app.signIn('anna', USER_PASSWORD)
})

test('the console shows the list and applies selected changes', async () => {
  const people = await fill()
  const name = await makeBackup(here.dataDir, { now: () => app.clock.now })
  await takeAway(people)
  await restore(name)
  const file = buildCli()
  const cli = (...args: string[]) =>
    new Promise<{ out: string; err: string }>((resolve) => {
      const env = { ...programEnv(), DATA_DIR: here.dataDir }
      execFile(process.execPath, [file, 'reapply', ...args], { env }, (_error, out, err) => resolve({ out, err }))
    })
  const listed = await cli()
  expect(listed.err).toBe('')
  expect(listed.out.split('\n')).toStrictEqual([
    `Done since ${name} was made, and undone by its restore:`,
    expect.stringMatching(/^ {3}1 {2}anna: user_deleted at 2026-01-15T12:11:00\.000Z by admin$/),
    expect.stringMatching(/^ {3}2 {2}bea: admin_status_changed at /),
    expect.stringMatching(/^ {3}3 {2}carl: permissions_updated at /),
    expect.stringMatching(/^ {3}4 {2}dora: password_reset at /),
    expect.stringMatching(/^ {3}5 {2}emil: token_revoked cron \(mm_.{6}…\) at .* by emil$/),
    '',
  ])
  expect(await cli('1,x')).toStrictEqual({ out: '', err: 'Expected IDs such as 1,2, or all\n' })
  expect((await cli('9')).err).toMatch(/^This entry is not in the list of what the restore gave back/)
  expect((await cli('1,5')).out).toMatch(/^Reapplied: {4}1 {2}anna: .*\nReapplied: {4}5 {2}emil: .*\n$/)
  expect((await cli('all')).out.split('\n')).toHaveLength(4)
  expect((await cli('all')).out).toBe('Nothing waits for a decision\n')
  await expect(app.signIn('anna')).rejects.toThrow(/401/)
})

test('a restore brings back no key for copies that was removed, and none if that is unknown', async () => {
  const [lost, kept] = [
    'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj',
    'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p',
  ]
  const encryptFor = (...all: string[]) =>
    admin.send('PUT', '/api/system/copies', { recipients: all.map((recipient) => ({ recipient, name: 'the safe' })) })
  const recipients = async () => (await readCopyKeys(app.store)).recipients.map(({ recipient }) => recipient)
  expect((await encryptFor(lost, kept)).status).toBe(204)
  const first = await makeBackup(here.dataDir, { now: () => app.clock.now })
  expect((await encryptFor(kept)).status).toBe(204)
  const mark = await readServiceMark(app.store, app.clock.now)
  await restore(first)
  expect(await recipients()).toEqual([kept])
  // What the places bear is still the mark of this service.
  expect(await readServiceMark(app.store, app.clock.now)).toBe(mark)
  for (const suffix of ['', '-wal', '-shm']) rmSync(here.database + suffix, { force: true })
  await restore(first)
  expect(await recipients()).toEqual([])
})
