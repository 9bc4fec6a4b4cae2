// The fastest answer that this machine can give: `node:http` alone, one prepared select and JSON.stringify. No session, no
// permission, no entity tag.
import { createServer } from 'node:http'
import Database from 'better-sqlite3'

/** `?` is the `at` of the request. */
const SELECTS: Readonly<Record<string, string>> = {
  packets: 'select * from packets where id < ? order by id desc limit 101',
  traceroutes: 'select * from traceroutes where id < ? order by id desc limit 101',
  telemetry: `select t, min, max, sum / n from telemetry_hourly where node_id = ? and metric = 1
    and t >= ${Date.now() - 30 * 86_400_000} order by t`,
  audit: 'select * from audit_log where id < ? order by id desc limit 101',
}

const sqlite = new Database(`${process.argv[2]}/mesh.db`, { readonly: true })
const selects = new Map(Object.entries(SELECTS).map(([name, sql]) => [name, sqlite.prepare(sql)]))
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://bare')
  const rows = selects.get(pathname.slice(1))?.all(Number(searchParams.get('at')))
  const body = Buffer.from(JSON.stringify(rows))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port })
})
