import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../../src/node/database.ts'
import { createTestAlerts, DAY, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { START } from '../../support/app.ts'
import { makeBackup, makeDataDir, restoreOptions } from '../../support/backup/backup.ts'
import { restoreBackup } from '../../../src/node/backup/restore/restore.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

let here: ReturnType<typeof makeDataDir>
let alerts: TestAlerts
let id = 9000

const open = async () => {
  alerts = await createTestAlerts({ store: openDatabase(here.database) })
}
beforeEach(async () => {
  here = makeDataDir()
  await open()
})
afterEach(() => {
  alerts.app.close()
  here.remove()
})

const hear = (from: number, words = 'hi', replayed = false) =>
  alerts.ingest.store([heard(packet(text(words), { from, id: ++id }), { at: alerts.app.clock.now, replayed })])
const notification = () => alerts.bodies().map(({ type, data }) => [type, data.title, data.total])

test('a restore two weeks later sends no alert by itself: no waiting message, no silent node, no node that is only missing from the backup', async () => {
  await hear(FAR)
  const destinations = [await alerts.webhook()]
  alerts.app.clock.advance(2 * HOUR)
  const nodes = { kind: 'all' }
  await alerts.rule({ kind: 'node_silent', name: 'Silent', nodes, afterMinutes: 240, destinations })
  await alerts.rule({ kind: 'node_new', name: 'New', destinations })
  await alerts.rule({ kind: 'message', name: 'Words', match: { words: ['help'] }, destinations })
  await alerts.rule({ kind: 'sign_in', name: 'Account', destinations })
  alerts.answer = () => ({ status: 503, retryAfterMs: null })
  await hear(FAR, 'help')
  await alerts.pass(2 * MINUTE)
  await hear(7001)
  await alerts.pass(2 * MINUTE)
  // The messages wait in the outbox while the backup is made.
  expect(alerts.sent.length).toBeGreaterThan(1)
  const name = await makeBackup(here.dataDir, { now: () => alerts.app.clock.now })
  await hear(7002)
  alerts.app.store.close()

  const now = START + 14 * DAY
  await restoreBackup(restoreOptions(here.dataDir, { now: () => now }), name)
  await open()
  alerts.app.clock.now = now
  alerts.startedAt = now
  Object.assign(alerts.links[0] ?? {}, { since: now })
  await alerts.pass(10 * MINUTE)
  await hear(7002)
  await hear(7003, 'help', true)
  await hear(FAR)
  await hear(7001)
  await alerts.pass(10 * MINUTE)
  expect(notification()).toStrictEqual([])

  // What happens afterwards is reported.
  await hear(FAR, 'help')
  await alerts.pass(50 * MINUTE)
  await hear(7004)
  await alerts.pass(2 * MINUTE)
  expect(notification()).toStrictEqual([
    ['alert.fired', 'Words', 1],
    ['alert.fired', 'New', 1],
  ])
})
