import type { CollectorInfo } from '../../../../src/app/mesh/collector/state.ts'
import type { LinkInfo, Radio } from '../../../../src/app/mesh/radios/radio.ts'
import { expect, it } from 'vitest'
import { type Client, createTestApp, START } from '../../../support/app.ts'

const LINK: LinkInfo = {
  name: '192.0.2.7:4403',
  kind: 'tcp',
  state: 'connected',
  since: START,
  lastFrameAt: START + 5,
  reconnects: 2,
  reason: null,
  radio: { nodeNum: 0xa0cb0001, firmwareVersion: '2.8.0', hwModel: 'HELTEC_V3', role: 'CLIENT' },
  queue: { free: 15, maxlen: 16 },
  txEnabled: true,
  notice: null,
}
const LOST: LinkInfo = {
  ...LINK,
  name: '192.0.2.8:4403',
  state: 'waiting',
  reason: 'the radio refuses connections',
  radio: null,
  queue: null,
  txEnabled: null,
  notice: null,
}

const COLLECTOR: CollectorInfo = {
  target: 'mesh.example.org',
  state: 'waiting',
  waiting: 12,
  lastDeliveredAt: START,
  delivered: 90,
  dropped: 1,
  filtered: 4,
  reason: 'the target reports an error (503)',
}

const radio: Radio = Object({ links: () => [LINK, LOST], collector: () => COLLECTOR })

it('lists all links, and the first one at the top', async () => {
  const app = await createTestApp({ ports: { radio } })
  const answer = await (await app.admin()).send('GET', '/api/info')
  const { state, since, lastFrameAt, reconnects, reason } = LINK
  expect([answer.status, await answer.json()]).toStrictEqual([
    200,
    {
      radio: LINK.radio,
      firmware: '2.8.0',
      link: { state, since, lastFrameAt, reconnects, reason },
      queue: LINK.queue,
      links: [LINK, LOST].map((link) => Object.fromEntries(Object.entries(link).filter(([name]) => name !== 'notice'))),
      collector: COLLECTOR,
      version: '1.2.3',
      sources: [],
    },
  ])
})

it('does not say which node a hidden radio is', async () => {
  const app = await createTestApp({ ports: { radio } })
  const nodeNum = 0xa0cb0001
  app.store.sqlite.exec(`insert into nodes (node_num, first_heard, is_hidden) values (${nodeNum}, 1, 1);
    insert into sources (kind, name, local_node_num, firmware_version, created_at)
      values ('tcp', '${LINK.name}', ${nodeNum}, '2.8.0', 1)`)
  const infoFor = async (client: Client) => Object(await (await client.send('GET', '/api/info')).json())
  const shown = await infoFor(await app.user('anna', { info: { read: true, write: false } }))
  expect(shown).toMatchObject({ radio: null, firmware: null, link: { state: 'connected' }, queue: LINK.queue })
  expect(shown.links[0]).toMatchObject({ name: LINK.name, radio: null })
  expect(shown.sources).toMatchObject([{ name: LINK.name, localNodeNum: null, firmwareVersion: null }])
  expect(await infoFor(await app.admin())).toMatchObject({
    radio: LINK.radio,
    firmware: '2.8.0',
    links: [{ radio: LINK.radio }, {}],
    sources: [{ localNodeNum: nodeNum, firmwareVersion: '2.8.0' }],
  })
})

it('is empty without a radio', async () => {
  const app = await createTestApp()
  const answer = await (await app.admin()).send('GET', '/api/info')
  expect(await answer.json()).toStrictEqual({
    radio: null,
    firmware: null,
    link: null,
    queue: null,
    links: [],
    collector: null,
    version: '1.2.3',
    sources: [],
  })
})

it('shows the sources of packets, and when the last one came', async () => {
  const app = await createTestApp({ ports: { radio: null } })
  const { sqlite } = app.store
  const source = sqlite.prepare('insert into sources (kind, name, local_node_num, created_at) values (?, ?, ?, ?)')
  source.run('ingest', 'hut/hill', 0xa0cb0001, START)
  source.run('ingest', 'hut/valley', null, START)
  const packet = sqlite.prepare(
    "insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, hop_limit, via_mqtt, pki_encrypted, replayed, payload) values (1, ?, ?, 5, 6, 0, 1, 3, 0, 0, 0, '{}')",
  )
  for (const [n, t] of [START + 9, START + 4].entries()) packet.run(t, n + 1)
  const answer = await (await app.admin()).send('GET', '/api/info')
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    {
      links: [],
      sources: [
        { name: 'hut/valley', kind: 'ingest', localNodeNum: null, firmwareVersion: null, lastReceivedAt: null },
        { name: 'hut/hill', localNodeNum: 0xa0cb0001, lastReceivedAt: START + 9 },
      ],
    },
  ])
})

it('is for users who may read it', async () => {
  const app = await createTestApp({ ports: { radio: null } })
  const none = { read: false, write: false }
  const other = await app.user('other', { info: none })
  const reader = await app.user('reader', { info: { read: true, write: false } })
  expect((await app.request('/api/info')).status).toBe(401)
  expect((await other.send('GET', '/api/info')).status).toBe(403)
  expect((await reader.send('GET', '/api/info')).status).toBe(200)
})
