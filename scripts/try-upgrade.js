// Tries an upgrade and a downgrade: a version, named by its commit, runs with a simulated mesh and makes a backup; this
// build continues with its data; then that version refuses the newer database, and goes back by the backup.
//   node scripts/try-upgrade.js COMMIT                    tries it
//   node scripts/try-upgrade.js COMMIT --keep FOLDER      keeps the database and the backup of that version, as fixtures
//   node scripts/try-upgrade.js COMMIT --seconds 600      lets that version run for so long; 60 unless told
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: { keep: { type: 'string' }, seconds: { type: 'string', default: '60' } },
  allowPositionals: true,
})
const [commit] = positionals
if (commit === undefined) throw new Error('Name a commit')

const scratch = mkdtempSync(join(tmpdir(), 'mesh-upgrade-'))
const older = join(scratch, 'older')
const dataDir = join(scratch, 'data')
const PASSWORDS = { admin: 'three radios on one hill', anna: 'a bench under the oak', carl: 'seven ravens by the lake' }
const run = (cwd, program, ...args) => execFileSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })

function settings(more = {}) {
  return {
    PATH: process.env.PATH,
    DATA_DIR: dataDir,
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_FORMAT: 'json',
    DEMO: 'true',
    ADMIN_PASSWORD: PASSWORDS.admin,
    SESSION_SECRET: 'a secret that both versions of it know',
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: 'https://id.example.org',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'never used: nobody signs in there',
    OIDC_REDIRECT_URI: 'http://localhost/api/auth/oidc/callback',
    ...more,
  }
}

/** Starts the built service in a folder; resolves when it listens, or with its exit code. */
async function start(folder, more = {}) {
  const child = spawn(join(folder, 'node_modules/.bin/node'), ['dist/node/main.js'], {
    cwd: folder,
    env: settings(more),
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let text = ''
  const port = await new Promise((resolve) => {
    const read = (part) => {
      text += part
      const found = /"Listening".*"port":(\d+)/.exec(text)
      if (found !== null) resolve(Number(found[1]))
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    void ended.then(() => resolve(null))
  })
  const url = `http://127.0.0.1:${port}`
  const stop = async () => {
    child.kill('SIGTERM')
    return ended
  }
  return { url, stop, log: () => text, code: port === null ? await ended : null }
}

/** A signed-in user, with cookies; `send` returns the JSON of an answer that succeeded. */
async function signIn(url, username) {
  let cookie = ''
  const send = async (method, path, body) => {
    const sent = body && { headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const answer = await fetch(url + path, { method, headers: { cookie }, ...sent })
    const set = answer.headers.getSetCookie().map((line) => line.split(';')[0])
    if (set.length > 0) cookie = set.join('; ')
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
  await send('POST', '/api/auth/login', { username, password: PASSWORDS[username] })
  return send
}

/** What people made, in words that hold in both versions. */
async function look(url) {
  const send = await signIn(url, 'admin')
  const names = (list, ...fields) => list.map((each) => fields.map((field) => each[field]))
  const { users } = await send('GET', '/api/users')
  const { messages } = await send('GET', '/api/messages?q=upgrade')
  const automation = await send('GET', '/api/automation')
  const alerts = await send('GET', '/api/alerts/rules')
  const nodes = await send('GET', '/api/nodes')
  const rules = (body) => first(body).map((each) => [(each.rule ?? each).name, (each.rule ?? each).kind])
  const first = (body) => (Array.isArray(body) ? body : Object.values(body).find((value) => Array.isArray(value)))
  return {
    users: names(users, 'username', 'authProvider', 'isAdmin', 'isActive'),
    messages: names(messages, 'id', 'text', 'fromNodeId'),
    rules: [...rules(automation), ...rules(alerts)],
    notes: names(
      first(nodes).filter(({ notes }) => notes !== null && notes !== ''),
      'nodeId',
      'longName',
      'notes',
    ),
    settings: (await send('GET', '/api/settings')).packetRetentionDays,
    scopeOfAnna: Object.keys((await (await signIn(url, 'anna'))('GET', '/api/auth/status')).user).length > 0,
  }
}

function check(what, ok, detail = '') {
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${what}${ok ? '' : `\n${detail}`}`)
  if (!ok) process.exitCode = 1
}

async function populate(url) {
  const send = await signIn(url, 'admin')
  const { user: anna } = await send('POST', '/api/users', { username: 'anna', password: PASSWORDS.anna })
  const read = { read: true, write: false }
  const permissions = { dashboard: read, nodes: read, messages: { read: true, write: true }, info: read }
  await send('PUT', `/api/users/${anna.id}/permissions`, { permissions })
  await send('POST', '/api/users', { username: 'carl', password: PASSWORDS.carl, isAdmin: true })
  await send('POST', '/api/users/prepared', { username: 'ola', provider: 'default', subject: 'ola-at-the-club' })
  await send('POST', '/api/tokens', { name: 'metrics', scopes: ['metrics'], expiresInDays: 365 })
  await send('PUT', '/api/settings', { packetRetentionDays: 6 })
  await send('POST', '/api/messages', { text: 'Before the upgrade', channel: 0 })
  const nodes = await send('GET', '/api/nodes')
  const list = Array.isArray(nodes) ? nodes : nodes.nodes
  await send('PUT', `/api/nodes/${list.at(-1).nodeId}`, { notes: 'On the hill' })
  await send('POST', '/api/alerts/rules', { kind: 'node_new', name: 'New nodes' })
  await send('POST', '/api/automation', {
    kind: 'schedule',
    name: 'Good morning',
    enabled: false,
    cron: '0 8 * * *',
    action: { kind: 'text', text: 'Good morning', channel: 0 },
  })
}

try {
  run(ROOT, 'git', 'worktree', 'add', '--quiet', '--detach', older, commit)
  run(older, 'npm', 'ci', '--no-audit', '--no-fund')
  run(older, 'npm', 'run', 'build')
  run(ROOT, 'npm', 'run', 'build')

  const before = await start(older)
  if (before.code !== null) throw new Error(before.log())
  await populate(before.url)
  await new Promise((resolve) => setTimeout(resolve, Number(values.seconds) * 1000))
  const seen = await look(before.url)
  console.log(`shown before: ${JSON.stringify(seen)}`)
  await before.stop()
  // While it is stopped, so that database and backup have the same rows.
  const made = execFileSync(join(older, 'node_modules/.bin/node'), ['dist/node/cli.js', 'backup'], {
    cwd: older,
    env: settings(),
    encoding: 'utf8',
  })
  const [name = ''] = /\d{4}-\d{2}-\d{2}_\d{6}/.exec(made) ?? []
  if (values.keep !== undefined) {
    cpSync(join(dataDir, 'mesh.db'), join(values.keep, 'mesh.db'))
    cpSync(join(dataDir, 'system-backups', name), join(values.keep, name), { recursive: true })
  }

  const after = await start(ROOT)
  check('this version starts with the data of that one', after.code === null, after.log())
  const same = await look(after.url)
  check('it shows the same', isDeepStrictEqual(same, seen), JSON.stringify({ seen, same }, null, 1))
  check('it logs no error', !/"level":"error"/.test(after.log()), after.log())
  check(
    'the audit log is undamaged',
    (await (await signIn(after.url, 'admin'))('GET', '/api/audit/verify')).broken === null,
  )
  await (
    await signIn(after.url, 'admin')
  )('POST', '/api/messages', { text: 'After the upgrade', channel: 0 })
  await after.stop()

  const refused = await start(older)
  check('that version refuses the newer database', refused.code === 1 && /newer/.test(refused.log()), refused.log())
  const back = await start(older, { RESTORE_FROM_BACKUP: name })
  check('it goes back by its backup', back.code === null, back.log())
  const restored = await look(back.url)
  check('it shows the same as before', isDeepStrictEqual(restored, seen), JSON.stringify({ seen, restored }, null, 1))
  check('the newer database is kept', existsSync(join(dataDir, 'mesh.db.before-restore')))
  await back.stop()

  const again = await start(ROOT)
  check('a second upgrade starts', again.code === null, again.log())
  check('and shows the same', isDeepStrictEqual(await look(again.url), seen))
  await again.stop()
} finally {
  run(ROOT, 'git', 'worktree', 'remove', '--force', older)
  rmSync(scratch, { recursive: true })
}
