import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, it } from 'vitest'
import type { Scope } from '../../../../src/shared/access/scope.ts'
import { type Waypoint, WaypointSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../../src/meshtastic/node-id.ts'
import { auditRows, type Client } from '../../../support/app.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { FAR, OWN, packetsSent, type RadioService, startRadioService, until } from '../../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

const PERMISSIONS = { messages: { read: true, write: true }, nodes: { read: true, write: false } }
const HUT = { name: 'Hut', latitude: 47.1234567, longitude: -8.7654321 }

async function start() {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  const list = async (client: Client = admin): Promise<Record<string, unknown>[]> =>
    Object(await (await client.send('GET', '/api/waypoints')).json()).waypoints
  const settle = () =>
    until(() => {
      service.clock.advance(100)
      expect(service.radio.waiting()).toBe(0)
    })
  let id = 900
  /** The radio hears a waypoint of another node. */
  const hear = async (from: number, waypoint: Record<string, unknown>, to = BROADCAST) => {
    const message = Object.assign(create(WaypointSchema, waypoint), { $unknown: waypoint['$unknown'] })
    const payload = toBinary(WaypointSchema, message)
    const payloadVariant = { case: 'decoded', value: { portnum: PortNum.WAYPOINT_APP, payload } } as const
    const signal = { rxRssi: -80, rxSnr: 5, hopStart: 3, hopLimit: 3 }
    service.device.send(fromRadio({ case: 'packet', value: { from, to, id: (id += 1), ...signal, payloadVariant } }))
    await until(() => {
      service.clock.advance(100)
      expect(service.store.sqlite.prepare('select max(packet_id) from packets').pluck().get()).toBe(id)
    })
  }
  const user = (scope: Scope, permissions: Record<string, { read: boolean; write: boolean }> = PERMISSIONS) =>
    service.app.user(`user${(id += 1)}`, permissions, scope)
  return { service, admin, list, settle, hear, user }
}

function waypointIn({ payloadVariant }: Awaited<ReturnType<RadioService['sent']>>): Waypoint {
  if (payloadVariant.case !== 'decoded') throw new Error('not decoded')
  expect(payloadVariant.value.portnum).toBe(PortNum.WAYPOINT_APP)
  return fromBinary(WaypointSchema, payloadVariant.value.payload)
}

it('shares, changes and deletes a waypoint as apps do, and lists it once the radio has it', async () => {
  const { service, admin, list, settle } = await start()
  const end = Math.floor(service.clock.now() / 1000) * 1000 + 3_600_000
  const input = { ...HUT, description: 'Tea\nand cake', icon: '⛺️', expiresAt: end + 7, locked: true, channel: 0 }
  const answer = await admin.send('POST', '/api/waypoints', input)
  expect(answer.status).toBe(202)
  const { waypoint } = Object(await answer.json())
  expect(await list()).toStrictEqual([])
  const packet = await service.sent()
  expect(packet).toMatchObject({ to: BROADCAST, channel: 0, hopLimit: 2, wantAck: true })
  expect(waypointIn(packet)).toMatchObject({
    id: waypoint.id,
    name: 'Hut',
    description: 'Tea\nand cake',
    icon: 0x26fa,
    latitudeI: 471234567,
    longitudeI: -87654321,
    expire: end / 1000,
    lockedTo: OWN,
  })
  await settle()
  const listed = { ...waypoint, ...HUT, icon: '⛺', fromNodeNum: OWN, lockedTo: OWN, expiresAt: end }
  expect(await list()).toStrictEqual([{ ...listed, timestamp: expect.any(Number) }])

  const changed = await admin.send('PUT', `/api/waypoints/${waypoint.id}`, { ...HUT, name: 'New hut' })
  expect(changed.status).toBe(202)
  // Radios drop a waypoint within ten seconds of another one.
  expect(packetsSent(service)).toBe(1)
  service.clock.advance(10_000)
  // Apps show no waypoint whose end is 0.
  expect(waypointIn(await service.sent())).toMatchObject({ id: waypoint.id, name: 'New hut', expire: 0x7fffffff })
  await settle()
  expect(await list()).toMatchObject([{ id: waypoint.id, name: 'New hut', expiresAt: null, lockedTo: null }])

  expect((await admin.send('DELETE', `/api/waypoints/${waypoint.id}`)).status).toBe(202)
  service.clock.advance(10_000)
  expect(waypointIn(await service.sent())).toMatchObject({ id: waypoint.id, name: 'New hut', expire: 1 })
  await settle()
  expect(await list()).toStrictEqual([])
  expect(auditRows(service.app).filter(({ action }) => action === 'message_sent')).toMatchObject([
    { username: 'admin', details: { kind: 'waypoint', channel: 0, waypoint: waypoint.id } },
    { details: { waypoint: waypoint.id } },
    { details: { waypoint: waypoint.id, deleted: true } },
  ])
})

it('a waypoint that is locked to another node is changed by nobody else, here or on the air', async () => {
  const { service, admin, list, hear } = await start()
  await hear(FAR, { id: 7, name: 'Theirs', latitudeI: 10, longitudeI: 10, lockedTo: FAR })
  expect((await admin.send('PUT', '/api/waypoints/7', { ...HUT })).status).toBe(403)
  expect((await admin.send('DELETE', '/api/waypoints/7')).status).toBe(403)
  expect(packetsSent(service)).toBe(0)
  await hear(0xa0cb0077, { id: 7, name: 'Mine', latitudeI: 20, longitudeI: 20 })
  await hear(0xa0cb0077, { id: 7, name: 'Gone', expire: 1 })
  expect(await list()).toMatchObject([{ id: 7, name: 'Theirs' }])
})

it('a change on the page keeps a geofence, and fields of later apps', async () => {
  const { service, admin, hear } = await start()
  const boundingBox = { longitudeWestI: -10, latitudeSouthI: 5, longitudeEastI: 20, latitudeNorthI: 15 }
  const fence = { geofenceRadius: 500, boundingBox, notifyOnEnter: true, notifyOnExit: true }
  // A field 20, a varint, that no version has yet.
  const $unknown = [{ no: 20, wireType: 0, data: Uint8Array.of(7) }]
  await hear(FAR, { id: 7, name: 'Fence', latitudeI: 10, longitudeI: 10, ...fence, $unknown })
  const longer = [{ no: 21, wireType: 2, data: Uint8Array.of(100, ...new Uint8Array(100)) }]
  await hear(FAR, { id: 8, name: 'Full', latitudeI: 10, longitudeI: 10, ...fence, $unknown: longer })
  const body = { ...HUT, description: 'd'.repeat(99) }
  const refused = await admin.send('PUT', '/api/waypoints/8', body)
  expect([refused.status, Object(await refused.json()).issues]).toMatchObject([400, [{ path: 'description' }]])

  expect((await admin.send('PUT', '/api/waypoints/7', body)).status).toBe(202)
  const waypoint = waypointIn(await service.sent())
  expect(waypoint).toMatchObject({ name: 'Hut', ...fence, boundingBox, notifyFavoritesOnly: false, $unknown })
})

it('whoever may not send on a channel shares nothing there, and cannot change what is on it', async () => {
  const { service, hear, user } = await start()
  await hear(FAR, { id: 8, name: 'Open', latitudeI: 10, longitudeI: 10 })
  const reader = await user({ channels: { read: [0], write: [] }, direct: { read: false, write: false } })
  const stranger = await user({ channels: { read: [1], write: [1] }, direct: { read: false, write: false } })
  expect((await reader.send('POST', '/api/waypoints', HUT)).status).toBe(403)
  expect((await reader.send('PUT', '/api/waypoints/8', HUT)).status).toBe(403)
  // A channel or waypoint outside of what somebody may read is one that does not exist.
  const unread = await stranger.send('POST', '/api/waypoints', HUT)
  const unknown = await stranger.send('POST', '/api/waypoints', { ...HUT, channel: 7 })
  expect([unread.status, unknown.status]).toStrictEqual([400, 400])
  const ofUnread = await unread.json()
  expect({ ...Object(ofUnread), requestId: '' }).toStrictEqual({ ...Object(await unknown.json()), requestId: '' })
  for (const id of [8, 9]) {
    expect((await stranger.send('PUT', `/api/waypoints/${id}`, { ...HUT, channel: 1 })).status).toBe(404)
    expect((await stranger.send('DELETE', `/api/waypoints/${id}`)).status).toBe(404)
  }
  const blind = await user(
    { channels: 'all', direct: { read: true, write: true } },
    { messages: { read: true, write: true }, nodes: { read: false, write: false } },
  )
  expect((await blind.send('DELETE', '/api/waypoints/8')).status).toBe(404)
  expect(packetsSent(service)).toBe(0)
})

it('a waypoint of a hidden node does not exist for whoever may not see it', async () => {
  const { service, admin, hear, user } = await start()
  await hear(FAR, { id: 8, name: 'Secret', latitudeI: 10, longitudeI: 10 })
  expect((await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })).status).toBe(200)
  const other = await user({ channels: 'all', direct: { read: true, write: true } })
  expect((await other.send('PUT', '/api/waypoints/8', HUT)).status).toBe(404)
  expect((await other.send('DELETE', '/api/waypoints/8')).status).toBe(404)
  expect(packetsSent(service)).toBe(0)
})

it.each([
  ['a name of 30 bytes', { name: 'é'.repeat(15) }],
  ['a description of 100 bytes', { description: 'a'.repeat(100) }],
  ['two characters as icon', { icon: '⛺⛺' }],
  ['a hidden character', { name: 'Hut\u202e' }],
  ['an end in the past', { expiresAt: 1000 }],
  ['no place on the globe', { latitude: 91 }],
])('refuses %s', async (_what, change) => {
  const { service, admin } = await start()
  expect((await admin.send('POST', '/api/waypoints', { ...HUT, ...change })).status).toBe(400)
  expect(packetsSent(service)).toBe(0)
})

it('a waypoint that no radio sent is not stored', async () => {
  const { service, admin, list } = await start()
  service.device.setSilent(true)
  await admin.send('POST', '/api/waypoints', HUT)
  await service.sent()
  await service.device.switchOff()
  await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
  expect((await admin.send('POST', '/api/waypoints', { ...HUT, name: 'Never' })).status).toBe(503)
  expect((await list()).map(({ name }) => name)).not.toContain('Never')
})
