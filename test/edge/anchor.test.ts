import { createServer } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { portOf } from '../support/servers/port-of.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

type Item = { readonly type: string; readonly line?: string; readonly entry?: { readonly id: number } }

const ends: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

async function serve(): Promise<{ url: string; items: Item[] }> {
  const items: Item[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      items.push(...Object(JSON.parse(body)).data.items)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  return { url: `http://127.0.0.1:${portOf(server)}/`, items }
}

test('the trigger anchors the audit log by a webhook', async () => {
  const { url, items } = await serve()
  const env = { ...SCENARIO_ENV, AUDIT_ANCHOR_URL: url, AUDIT_ANCHOR_ENTRIES: 'true' }
  const workerd: Workerd = await openWorkerd(env)
  ends.push(() => workerd.close())
  await signIn(workerd, 'admin', ADMIN_PASSWORD)
  await workerd.runSchedule()
  const [{ line = '' } = {}] = items
  const [, id = '', hash] = /^mesh-audit-anchor \S+ (\d+) ([0-9a-f]{64})$/.exec(line) ?? []
  expect(await workerd.sql(`select hash from audit_log where id = ${Number(id)}`)).toEqual([{ hash }])
  await signIn(workerd, 'admin', ADMIN_PASSWORD)
  await workerd.runSchedule()
  await workerd.runSchedule()
  expect(items.slice(1)).toMatchObject([{ type: 'entry', entry: { id: Number(id) + 1 } }])
})

test('the trigger of each hour checks the audit log and what protects it', async () => {
  const workerd: Workerd = await openWorkerd(SCENARIO_ENV)
  ends.push(() => workerd.close())
  const found = async () => {
    await workerd.runSchedule(new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000))
    return workerd.sql("select details ->> 'damage' as damage from audit_log where action = 'audit_damaged'")
  }
  await signIn(workerd, 'admin', ADMIN_PASSWORD)
  expect(await found()).toEqual([])
  await workerd.sql(`create trigger of_mine before insert on audit_log when new.action = 'login_success'
    begin select raise(ignore); end`)
  expect(await found()).toEqual([{ damage: expect.stringContaining('its triggers are not those of this version') }])
})
