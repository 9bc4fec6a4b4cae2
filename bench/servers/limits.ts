// The upper limits for any service: the same work in its fastest known form, behind the product's own session check, and
// on `node:http` alone.
import { readTranslation } from '../../src/node/translations.ts'
import { createServer, request } from 'node:http'
import { serve } from '@hono/node-server'
import { createApp } from '../../src/app/app.ts'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { parseConfig } from '../../src/app/config/config.ts'
import { NO_PORTS, type Ports } from '../../src/app/base/context.ts'
import { requirePermission } from '../../src/app/accounts/access/require.ts'
import { answers } from '../../src/app/http/describe.ts'
import { memoryBuckets } from '../../src/app/http/limits/buckets.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { createAddressing } from '../../src/node/http/client-address.ts'
import { DAY_MS } from '../../src/shared/time.ts'
import { keptSessionSecret } from '../../src/node/start/secret.ts'

/** Pages as one prepared select and JSON.stringify; `?` is the `at` of the request. */
const SELECTS = {
  newest: 'select * from messages order by id desc limit ?',
  before: 'select * from messages where id < ? order by id desc limit 101',
  channel: 'select * from messages where channel = 1 and id < ? order by id desc limit 101',
  found: "select * from messages where instr(lower(text), 'the') and id < ? order by id desc limit 101",
  nodes: 'select * from nodes order by last_heard desc, node_num limit ?',
  packets: 'select * from packets where id < ? order by id desc limit 101',
  // With the answered one before, between the same ends.
  traceroutes: `select t.*, iif(t.route is null, null, (
      select json_object('route', p.route, 'answeredAt', coalesce(p.answered_at, p.timestamp))
      from traceroutes p indexed by traceroutes_answered
      where p.to_node_num = t.to_node_num and p.from_node_num = t.from_node_num and p.id < t.id and p.route is not null
      order by p.id desc limit 1)) as previous
    from traceroutes t where id < ? order by id desc limit 101`,
  telemetry: `select t, min, max, sum / n from telemetry_hourly where node_id = ? and metric = 1
    and t >= ${Date.now() - 30 * DAY_MS} order by t`,
  audit: 'select * from audit_log where id < ? order by id desc limit 101',
  // With the second factors and links of each.
  users: `select id, username, email, auth_provider = 'local' and exists (select 1 from verified_emails v
        where v.user_id = users.id and v.ended_at is null and v.email = users.email) as email_verified, display_name,
      auth_provider, is_admin, is_active, created_at, last_login_at, created_by,
      exists (select 1 from totp_factors where user_id = users.id) as totp,
      exists (select 1 from passkeys where user_id = users.id) as passkey, (select json_group_array(
        json_object('issuer', issuer, 'subject', subject, 'linkedAt', created_at)) from identities
        where user_id = users.id) as links, count(*) over () as total
    from users order by lower(username) limit ?`,
}

type Body = { readonly name: string; readonly url: string; readonly headers: Record<string, string> }

/** The service's answer, byte by byte as on the wire. */
function fetchBytes({
  url,
  headers,
}: Body): Promise<{ bytes: Uint8Array<ArrayBuffer>; headers: Record<string, string> }> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (answer) => {
      const chunks: Uint8Array[] = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('end', () => {
        const encoding = answer.headers['content-encoding']
        resolve({
          bytes: new Uint8Array(Buffer.concat(chunks)),
          headers: {
            'content-type': 'application/json',
            ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
          },
        })
      })
    })
      .on('error', reject)
      .end()
  })
}

function portsOf(dataDir: string, store: SqliteStore): Ports {
  const parsed = parseConfig({ DATA_DIR: dataDir, SESSION_SECRET: keptSessionSecret(dataDir) })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const unused = async () => Promise.reject(new Error('not measured'))
  const log = () => {}
  return {
    config: parsed.config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords: { hash: unused, verify: unused },
    log: { debug: log, info: log, warn: log, error: console.error },
    ...NO_PORTS,
    translations: readTranslation,
    version: '1.2.3',
    startedAt: 0,
    now: Date.now,
    ...createAddressing([], { warn: log }),
  }
}

const [dataDir = '', bodies = '[]'] = process.argv.slice(2)
const store = openDatabase(`${dataDir}/mesh.db`)
const ports = portsOf(dataDir, store)
const app = createApp(() => ports)
const mayRead = requirePermission('nodes', 'read')
const known: Body[] = JSON.parse(bodies)
type Answer = { readonly status: number; readonly head: Record<string, string>; readonly body: Uint8Array | string }
/** By path, what `node:http` answers to the `at` of a request. */
const bare = new Map<string, (at: number) => Answer>()
for (const body of known) {
  const { bytes, headers } = await fetchBytes(body)
  app.get(`/bytes/${body.name}`, mayRead, answers('', {}), (c) => c.body(bytes, 200, headers))
  bare.set(`/bytes/${body.name}`, () => ({ status: 200, head: headers, body: bytes }))
}
app.get('/unchanged', mayRead, answers('', {}), (c) => c.body(null, 304, { ETag: '"unchanged"' }))
bare.set('/unchanged', () => ({ status: 304, head: { etag: '"unchanged"' }, body: '' }))
for (const [name, sql] of Object.entries(SELECTS)) {
  const select = store.sqlite.prepare(sql)
  const head = { 'content-type': 'application/json' }
  app.get(`/select/${name}`, mayRead, answers('', {}), (c) =>
    c.body(JSON.stringify(select.all(Number(c.req.query('at')))), 200, head),
  )
  bare.set(`/select/${name}`, (at) => ({ status: 200, head, body: JSON.stringify(select.all(at)) }))
}
const plain = createServer(({ url = '' }, answer) => {
  const [path = '', at] = url.split('?at=')
  const { status, head, body } = bare.get(path)?.(Number(at)) ?? { status: 404, head: {}, body: '' }
  const length = status === 304 ? {} : { 'content-length': Buffer.byteLength(body) }
  answer.writeHead(status, { ...head, ...length }).end(body)
})
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  plain.listen(0, '127.0.0.1', () => {
    const address = plain.address()
    process.send?.({ port, bare: typeof address === 'object' ? address?.port : null })
  })
})
