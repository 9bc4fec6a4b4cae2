import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeStandby, promoteStandby } from '../../../src/app/system/standby.ts'
import { consoleContext } from '../../../src/node/console-context.ts'
import { auditRows } from '../../support/app.ts'
import { createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { item } from '../../support/mesh/delivery.ts'
import type { FromRadioVariant } from '../../support/radio/device.ts'
import { FAR, LOCAL, myInfo, nodeInfo, packet, RADIO, store, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
beforeEach(async () => {
  alerts = await createTestAlerts()
  alerts.links.splice(0)
})
afterEach(() => alerts.app.close())

const console = () => ({ ...consoleContext(alerts.app.ports), now: () => alerts.app.clock.now })
const promote = (tokenId: number | null = null, isForced = false) => promoteStandby(console(), { tokenId, isForced })
const rows = (sql: string) => alerts.app.store.sqlite.prepare(sql).raw().all()

const titles = () => alerts.bodies().map(({ data }) => data.title)

const myInfoOf = (myNodeNum: number): FromRadioVariant => ({ case: 'myInfo', value: { myNodeNum } })

/** A token of the administrator, under which a radio delivers. */
async function delivers(name: string, nodeNum = LOCAL): Promise<number> {
  const made = await alerts.admin.send('POST', '/api/tokens', { name, scopes: ['ingest'], expiresInDays: null })
  const { token, id } = Object(await made.json())
  const body = {
    source: `${name}/10.0.0.5:4403`,
    packets: [myInfoOf(nodeNum), nodeInfo({ num: nodeNum })].map((each) => ({ data: item(each) })),
  }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await alerts.app.request('/api/ingest', { method: 'POST', headers, body: JSON.stringify(body) })
  expect([answer.status, await answer.json()]).toMatchObject([200, { accepted: 2 }])
  return id
}

test('a standby sends alerts about itself only; once promoted, about the mesh again, but none twice', async () => {
  const destinations = [await alerts.webhook()]
  await alerts.rule({ kind: 'message', name: 'New', destinations })
  await alerts.rule({ kind: 'link', name: 'Down', afterMinutes: 1, destinations })
  await alerts.rule({ kind: 'backup', name: 'Backup', afterHours: 48, destinations })
  await alerts.rule({ kind: 'sign_in', name: 'Account', destinations })
  await makeStandby(console())
  await store(alerts.ingest, [packet(text('new here'), { from: FAR })], { at: alerts.app.clock.now })
  alerts.links.push({ name: RADIO.name, state: 'waiting', since: alerts.app.clock.now })
  await alerts.admin.send('POST', '/api/tokens', { name: 'mine', scopes: ['ingest'], expiresInDays: null })
  alerts.app.store.sqlite
    .prepare(
      "insert into audit_log (timestamp, action, resource, details) values (?, 'backup_failed', 'system_backup', '{}')",
    )
    .run(alerts.app.clock.now)
  await alerts.pass(3 * MINUTE)
  expect(titles().toSorted()).toStrictEqual(['Account', 'Backup', 'Down'])
  expect((await alerts.alerts()).map(({ kind }) => kind)).toContain('message')
  alerts.app.store.sqlite.exec(
    `insert into connections (name, kind, enabled, position, sealed, held_at, revision, created_at, updated_at)
      values ('restored', 'tcp', 1, 0, 'x', 1, 1, 1, 1)`,
  )
  await promote(null, true)
  expect(rows('select held_at from connections')).toStrictEqual([[null]])
  await alerts.pass(3 * MINUTE)
  expect(titles()).toHaveLength(3)
  await store(alerts.ingest, [packet(text('new too'), { from: FAR + 1 })], { at: alerts.app.clock.now })
  await alerts.pass(3 * MINUTE)
  expect(titles().slice(3)).toStrictEqual(['New'])
})

describe('a promotion', () => {
  test('waits until nothing was delivered for ten minutes, and is done and recorded once', async () => {
    const tokenId = await delivers('hill')
    await makeStandby(console())
    await makeStandby(console())
    await expect(promote()).rejects.toThrow('less than 10 minutes ago')
    alerts.app.clock.advance(10 * MINUTE)
    expect(rows('select is_local from nodes')).toStrictEqual([[1]])
    expect(await promote()).toMatchObject({
      isRepeat: false,
      revoked: { id: tokenId },
      sources: [{ localNodeNum: LOCAL }],
    })
    expect(await promote()).toMatchObject({ isRepeat: true, revoked: null, sources: [{ localNodeNum: LOCAL }] })
    expect(rows('select count(*) from api_tokens')).toStrictEqual([[0]])
    expect(rows('select is_local from nodes')).toStrictEqual([[0]])
    const entries = auditRows(alerts.app).filter(({ action }) => /standby|revoked/.test(action))
    expect(entries).toMatchObject([
      { action: 'standby_changed', username: 'system', details: { after: { standby: true } } },
      { action: 'standby_changed', username: 'system', details: { after: { standby: false }, forced: false, tokenId } },
      { action: 'token_revoked', username: 'system', details: { tokenId, name: 'hill', username: 'admin' } },
    ])
  })

  test('of several collectors needs to know whose place it takes, and leaves the others', async () => {
    const hill = await delivers('hill')
    const town = await delivers('town', FAR)
    await makeStandby(console())
    await expect(promote(null, true)).rejects.toThrow(
      /promote --token <id>\n {2}\d+ {2}town of admin: town\/[^]* {2}hill of admin/,
    )
    await expect(promote(9999, true)).rejects.toThrow('No collector delivers with the token 9999')
    expect(await promote(hill, true)).toMatchObject({ revoked: { id: hill } })
    expect(rows('select id from api_tokens')).toStrictEqual([[town]])
  })

  test('is refused for a service that is no standby, and for one to which nothing was delivered', async () => {
    await delivers('hill')
    await expect(promote(null, true)).rejects.toThrow('This service is no standby')
    alerts.app.store.sqlite.exec('delete from api_tokens')
    await makeStandby(console())
    await expect(promote()).rejects.toThrow('promote --force')
    expect(await promote(null, true)).toMatchObject({ revoked: null })
  })
})

test('its own connection takes over the source that a collector delivered under the same name', async () => {
  await delivers('hill')
  alerts.app.store.sqlite.exec(`update sources set name = '${RADIO.name}'`)
  await makeStandby(console())
  await promote(null, true)
  await store(alerts.ingest, [myInfo], { at: alerts.app.clock.now })
  expect(rows('select kind, local_node_num, token_id from sources')).toStrictEqual([['tcp', LOCAL, null]])
  expect(rows('select is_local from nodes')).toStrictEqual([[1]])
})
