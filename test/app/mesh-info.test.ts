import { expect, it } from 'vitest'
import type { CollectorInfo, LinkInfo, Radio } from '../../src/app/context.ts'
import { createTestApp, START } from '../support/app.ts'

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
  reason: 'the target has trouble (503)',
}

const radio: Radio = Object({ links: () => [LINK, LOST], collector: () => COLLECTOR })

it('tells of all links, and of the first one at the top', async () => {
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
    },
  ])
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
  })
})

it('is for those who may read it, and then 501 where there can be no radio', async () => {
  const app = await createTestApp({ ports: { radio: null } })
  const none = { read: false, write: false }
  const other = await app.user('other', { info: none })
  const reader = await app.user('reader', { info: { read: true, write: false } })
  expect((await app.request('/api/info')).status).toBe(401)
  expect((await other.send('GET', '/api/info')).status).toBe(403)
  for (const client of [reader, await app.admin()]) {
    const answer = await client.send('GET', '/api/info')
    expect([answer.status, await answer.json()]).toMatchObject([501, { code: 'unsupported_on_this_runtime' }])
  }
})
