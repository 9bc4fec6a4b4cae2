// A bare Hono server, and one route that reads SQLite: what no service can be faster or smaller than.
import { serve } from '@hono/node-server'
import Database from 'better-sqlite3'
import { Hono } from 'hono'

const [dataDir = ''] = process.argv.slice(2)

const app = new Hono().get('/hello', (c) => c.text('Hello Hono!'))
if (dataDir !== '') {
  const messages = new Database(`${dataDir}/mesh.db`).prepare('select * from messages order by id desc limit 100')
  app.get('/messages', (c) => c.body(JSON.stringify(messages.all()), 200, { 'content-type': 'application/json' }))
}
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
