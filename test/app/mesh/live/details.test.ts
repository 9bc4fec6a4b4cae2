import type { Events } from '../../../../src/app/mesh/live/event.ts'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { announce } from '../../../../src/app/mesh/ingest/announce.ts'
import { createIngest, type Ingest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { announceListed } from '../../../../src/app/mesh/live/details.ts'
import { createEvents } from '../../../../src/app/mesh/live/events.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { openEventStream } from '../../../support/event-stream.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { FAR, heard, nodeInfo, packet, text } from '../../../support/mesh/mesh.ts'

let app: TestApp
let events: Events
let admin: Client
let ingest: Ingest

beforeEach(async () => {
  const clock = createManualClock(START)
  events = createEvents(clock)
  app = await createTestApp({ ports: { events, now: () => clock.now() } })
  admin = await app.admin()
  ingest = createIngest(app.store)
})
afterEach(() => app.close())

const store = async (...packets: Parameters<Ingest['store']>[0]) => announce(app.ports, await ingest.store(packets))
const latest = (count: number) => events.since(events.last() - count, count)
const listed = async (path: string): Promise<unknown> => (await admin.send('GET', path)).json()

it('sends a whole node at first, then only its changes', async () => {
  await store(heard(packet(text('one'))))
  const [whole] = latest(2) ?? []
  expect([whole?.contents?.['changes']]).toStrictEqual(await listed('/api/nodes'))
  await store(heard(packet(text('two'), { rxSnr: -7.5 }), { at: START + 1000 }))
  const [changed] = latest(2) ?? []
  expect(changed?.contents).toStrictEqual({
    changes: { lastHeard: START + 1000, lastHeardByRadio: START + 1000, snr: -7.5 },
  })
})

it('reports what users change on a node, and its deletion', async () => {
  await store(heard(packet(text('one'))))
  await admin.send('PUT', `/api/nodes/${FAR}`, { notes: 'on the mast' })
  expect(latest(1)).toMatchObject([
    { kind: 'node', data: { nodeNum: FAR }, contents: { changes: { notes: 'on the mast' } } },
  ])
  await admin.send('DELETE', `/api/nodes/${FAR}`)
  expect(latest(1)).toMatchObject([{ kind: 'node', data: { nodeNum: FAR }, contents: { isDeleted: true } }])
})

it('sends a message as in the list', async () => {
  await store(heard(packet(text('one'))))
  const [, told] = latest(2) ?? []
  expect(await listed('/api/messages')).toMatchObject({ messages: [told?.data['message']] })
})

it('tells readers to reload the list when very many nodes are heard at once', async () => {
  await store(...Array.from({ length: 60 }, (_, n) => heard(packet(text('x'), { from: 1000 + n }))))
  const nodes = (latest(120) ?? []).filter(({ kind }) => kind === 'node')
  expect(nodes).toHaveLength(60)
  expect(nodes.filter(({ contents }) => contents !== undefined)).toEqual([])
  // Readers have them by then: from here on only changes are sent.
  await store(heard(packet(text('x'), { from: 1007, rxSnr: 1 }), { at: START + 1000 }))
  expect(latest(2)?.[0]?.contents).toStrictEqual({
    changes: { lastHeard: START + 1000, lastHeardByRadio: START + 1000, snr: 1 },
  })
})

it('sends only the changes of a node that this process has never reported, once somebody listens', async () => {
  await ingest.store([heard(packet(text('one')))])
  const stream = await openEventStream(admin)
  await stream.next()
  await store(heard(packet(text('two'), { rxSnr: -7.5 }), { at: START + 1000 }))
  const [changed] = latest(2) ?? []
  expect(changed?.contents).toStrictEqual({
    changes: { lastHeard: START + 1000, lastHeardByRadio: START + 1000, snr: -7.5 },
  })
  await stream.end()
})

it('sends a few hundred bytes per packet', async () => {
  await store(heard(packet(text('one'))))
  const stream = await openEventStream(admin)
  await stream.next()
  await store(heard(packet(text('two'), { rxSnr: -7.5, rxRssi: -101 }), { at: START + 1000 }))
  const event = await stream.next()
  expect(JSON.stringify(event).length).toBeLessThan(300)
  await stream.end()
})

it('tells those who listen which nodes of a radio’s list have changed, of many without the changes', async () => {
  const list = (nums: readonly number[], longName: string) =>
    ingest.store(nums.map((num) => heard(nodeInfo({ num, user: { id: '', longName, shortName: 'N' } }))))
  const nums = Array.from({ length: 60 }, (_, n) => 1000 + n)
  await list([FAR], 'Before')
  await announceListed(app.ports, [FAR])
  expect(events.last()).toBe(0)
  const stream = await openEventStream(admin)
  await stream.next()
  await list([FAR, 1000], 'Known')
  await announceListed(app.ports, [FAR, 1000])
  expect(latest(2)).toMatchObject([
    {
      kind: 'node',
      data: { nodeNum: 1000, heardAt: null },
      contents: { changes: { nodeNum: 1000, longName: 'Known' } },
    },
    { kind: 'node', data: { nodeNum: FAR }, nodes: [FAR], contents: { changes: { longName: 'Known' } } },
  ])
  const { length } = nums
  await list(nums, 'Known')
  await announceListed(app.ports, nums)
  // The first of them is as it was.
  expect(events.last()).toBe(2 + length - 1)
  expect(
    latest(length - 1)?.filter(({ contents, heardBy }) => contents !== undefined || heardBy === undefined),
  ).toEqual([])
  await stream.end()
})
