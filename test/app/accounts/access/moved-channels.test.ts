import { afterEach, beforeEach, expect, test } from 'vitest'
import { auditRows, type Client } from '../../../support/app.ts'
import { createTestMesh, heard, myInfo, packet, store, type TestMesh, text } from '../../../support/mesh/mesh.ts'
import type { FromRadioVariant } from '../../../support/radio/device.ts'
import { OPEN } from '../../../support/public-access.ts'

const NONE = { read: false, write: false }
const [TOWN, FAMILY, CLUB] = ['Town', 'Family', 'Club']
let mesh: TestMesh
let admin: Client
let guest: Client & { id: number }
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  guest = await mesh.app.user('guest', {}, { channels: { read: [0, 2], write: [0] }, direct: NONE })
})
afterEach(() => mesh.app.close())

/** The radio reports its channels, by index; null: disabled. */
const report = (...names: readonly (string | null)[]) =>
  store(
    mesh.ingest,
    [
      myInfo,
      ...names.map((name, index): FromRadioVariant => ({
        case: 'channel',
        value: name === null ? { index, role: 0 } : { index, role: index === 0 ? 1 : 2, settings: { name } },
      })),
    ],
    { at: mesh.app.clock.now },
  )
const say = (words: string, channel: number) =>
  mesh.ingest.store([heard(packet(text(words), { channel }), { at: mesh.app.clock.now })])
const read = async (client: Client) => {
  const { messages = [] } = Object(await (await client.send('GET', '/api/messages')).json())
  return messages.map((message: { text: string }) => message.text)
}
const shown = async () => Object(await (await admin.send('GET', '/api/public-access')).json()).channels
const scope = async () =>
  Object(await (await admin.send('GET', `/api/users/${guest.id}/permissions`)).json()).scope.channels

test('channels that change places in a radio show a private one to nobody', async () => {
  await report(TOWN, FAMILY, CLUB)
  await admin.send('PUT', '/api/public-access', { ...OPEN, channels: [0, 2] })
  await say('for the town', 0)
  const visitor = mesh.app.client()
  expect([await read(visitor), await read(guest)]).toEqual([['for the town'], ['for the town']])

  mesh.app.clock.advance(60_000)
  await report(FAMILY, TOWN, CLUB)
  await say('for the family', 0)
  expect([await read(visitor), await read(guest)]).toEqual([[], []])
  expect([await shown(), await scope()]).toEqual([[2], { read: [2], write: [] }])
  const reason = 'another channel has this number now'
  expect(auditRows(mesh.app).slice(-2)).toMatchObject([
    {
      action: 'public_access_updated',
      username: 'system',
      details: { before: { channels: [0, 2] }, after: { channels: [2] }, reason },
    },
    {
      action: 'permissions_updated',
      username: 'system',
      details: { userId: guest.id, before: { scope: { channels: { read: [0, 2] } } }, reason },
    },
  ])
})

test('nothing is withdrawn while the channels stay, nor what somebody shares afterwards', async () => {
  await report(TOWN, FAMILY)
  await admin.send('PUT', '/api/public-access', { ...OPEN, channels: [0] })
  const entries = auditRows(mesh.app).length
  await report(TOWN, FAMILY)
  // A channel that nobody shares.
  await report(TOWN, CLUB)
  expect([await shown(), auditRows(mesh.app).length]).toEqual([[0], entries])
  await report(FAMILY, CLUB)
  expect(await shown()).toEqual([])
  await admin.send('PUT', '/api/public-access', { channels: [0] })
  await report(FAMILY, CLUB)
  expect(await shown()).toEqual([0])
})

test('a number that had no channel for a while still stands for its last one', async () => {
  await report(TOWN, FAMILY)
  await admin.send('PUT', '/api/public-access', { ...OPEN, channels: [1] })
  await report(TOWN, null)
  expect(await shown()).toEqual([1])
  await report(TOWN, FAMILY)
  expect(await shown()).toEqual([1])
  await report(TOWN, null)
  await report(TOWN, CLUB)
  expect(await shown()).toEqual([])
})
