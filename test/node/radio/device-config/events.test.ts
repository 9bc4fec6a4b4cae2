import { afterEach, expect, it } from 'vitest'
import { Routing_Error } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import type { Client } from '../../../support/app.ts'
import { type ConfigService, startConfigService } from '../../../support/radio/config-service.ts'
import { openEventStream } from '../../../support/event-stream.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

async function start(): Promise<ConfigService> {
  const service = await startConfigService()
  endings.push(() => service.stop())
  return service
}

const READ = { read: true, write: false }
const NONE = { read: false, write: false }

type Told = { readonly event: string | undefined; readonly data: unknown }

/** All events for a client from now on; it reads at once, as a page does. */
async function watch(client: Client): Promise<readonly Told[]> {
  const stream = await openEventStream(client)
  await stream.next()
  const told: Told[] = []
  const read = async () => {
    for (let block = await stream.next(); block !== null; block = await stream.next()) {
      if (block.event !== undefined) told.push({ event: block.event, data: block.data })
    }
  }
  const reading = read()
  endings.push(async () => {
    await stream.end()
    await reading
  })
  return told
}

const changesIn = (told: readonly Told[]) =>
  told.filter(({ event }) => event === 'configuration').map(({ data }) => data)

it('a change is reported when it begins and when it ends, to users who may read settings', async () => {
  const service = await start()
  const reader = await service.app.user('reader', { configuration: READ, info: NONE, nodes: NONE, messages: NONE })
  const other = await service.app.user('other', { configuration: NONE, info: READ, nodes: NONE, messages: NONE })
  const [told, untold] = [await watch(reader), await watch(other)]
  const { body } = await service.change('mqtt', { values: { root: 'msh/EU' }, secrets: { password: 'new secret' } })
  const about = { source: service.source, section: 'mqtt', id: Object(body['change'])['id'], differing: [] }
  const begun = { ...about, state: 'applying', reason: null }
  await expect.poll(() => changesIn(told)).toStrictEqual([begun])
  await service.outcome('mqtt', 500)
  await expect.poll(() => changesIn(told)).toStrictEqual([begun, { ...about, state: 'applied', reason: null }])
  // Clients read the section at once: it must be stored, with its new values.
  const seen = await service.ask('GET', '/api/configuration/mqtt', undefined, reader)
  expect(seen.body).toMatchObject({ editable: true, values: { root: 'msh/EU' }, lastChange: { state: 'applied' } })

  service.device.manners.refuseWith = Routing_Error.NOT_AUTHORIZED
  await service.change('mqtt', { values: { root: 'msh/US' } })
  await expect
    .poll(() => changesIn(told).slice(2))
    .toMatchObject([{ state: 'applying' }, { state: 'failed', reason: 'the radio refused it: NOT_AUTHORIZED' }])
  service.app.ports.events?.publish([{ kind: 'link', data: { name: 'the last' } }])
  await expect.poll(() => untold.at(-1)).toStrictEqual({ event: 'link', data: { name: 'the last' } })
  expect(changesIn(untold)).toStrictEqual([])
})

it('a change continues, but is no longer reported to a user who has lost the permission', async () => {
  const service = await start()
  const writer = await service.app.user('writer', { configuration: { read: true, write: true }, nodes: READ })
  const told = await watch(writer)
  const path = '/api/configuration/mqtt'
  expect((await service.ask('PUT', path, { values: { root: 'msh/EU' } }, writer)).status).toBe(202)
  await expect.poll(() => changesIn(told)).toMatchObject([{ state: 'applying' }])
  const permissions = { configuration: NONE }
  const taken = await service.admin.send('PUT', `/api/users/${writer.id}/permissions`, { permissions })
  expect(taken.status).toBe(200)
  expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied', by: 'writer' })
  service.app.ports.events?.publish([{ kind: 'node', data: { nodeNum: 1 } }])
  await expect.poll(() => told.at(-1)).toStrictEqual({ event: 'node', data: { nodeNum: 1 } })
  expect(told).toContainEqual({ event: 'access', data: {} })
  expect(changesIn(told)).toHaveLength(1)
  expect((await service.ask('GET', path, undefined, writer)).status).toBe(403)
})
