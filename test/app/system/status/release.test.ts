import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkRelease } from '../../../../src/app/system/status/release.ts'
import { openOutbound } from '../../../../src/node/alerts/outbound.ts'
import { createTestApp, START, type TestApp } from '../../../support/app.ts'
import { portOf } from '../../../support/servers/port-of.ts'

const DAY = 86_400_000

let server: Server
let app: TestApp
let asked: IncomingMessage[]
let answer: (response: ServerResponse) => void

beforeEach(async () => {
  asked = []
  answer = (response) => response.end('{"tag_name":"v1.3.0","html_url":"https://evil.example/"}')
  server = createServer((request, response) => {
    asked.push(request)
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  app = await openApp('/releases/latest')
})
afterEach(() => {
  app.close()
  server.closeAllConnections()
  server.close()
})

/** A service of version 1.2.3. */
function openApp(path: string): Promise<TestApp> {
  return createTestApp({
    env: { UPDATE_CHECK_URL: `http://127.0.0.1:${portOf(server)}${path}` },
    ports: { outbound: openOutbound({ totalMs: 500 }) },
  })
}

async function seen(): Promise<Record<string, unknown>> {
  const admin = await app.admin()
  return Object(await (await admin.send('GET', '/api/system')).json())
}

test('a newer version is shown as what the address says', async () => {
  expect(await seen()).toMatchObject({
    release: { host: `127.0.0.1:${portOf(server)}`, askedAt: null, latest: null, isNewer: false, problem: null },
  })
  await checkRelease(app.ports)
  expect(await seen()).toMatchObject({
    version: '1.2.3',
    release: { askedAt: START, latest: '1.3.0', isNewer: true, problem: null },
    problems: [{ code: 'release_newer', severity: 'info', subject: '1.3.0' }],
  })
})

test('the request is a plain GET that says nothing about this service', async () => {
  await checkRelease(app.ports)
  expect(asked.map(({ method, url }) => [method, url])).toStrictEqual([['GET', '/releases/latest']])
  expect(asked[0]?.headers).toStrictEqual({
    host: `127.0.0.1:${portOf(server)}`,
    accept: 'application/json',
    'user-agent': 'mesh-monitoring-service',
    connection: 'close',
  })
})

test('it is asked once a day, whatever it answers, also after a restart', async () => {
  answer = (response) => response.writeHead(500).end()
  for (const _ of [1, 2, 3]) {
    await checkRelease(app.ports)
    app.clock.advance(DAY / 2 - 1)
  }
  expect(asked).toHaveLength(1)
  app.clock.advance(3)
  await checkRelease(app.ports)
  expect(asked).toHaveLength(2)
  // The clock was wrong: it does not wait for the time to come again.
  app.clock.advance(-3 * DAY)
  await checkRelease(app.ports)
  expect(asked).toHaveLength(3)
})

test('a version that was named stays known while the address does not answer', async () => {
  await checkRelease(app.ports)
  app.clock.advance(DAY)
  answer = (response) => response.writeHead(503).end()
  await checkRelease(app.ports)
  expect(await seen()).toMatchObject({ release: { latest: '1.3.0', isNewer: true, problem: 'it answered 503' } })
})

test.each([
  ['an older version', '{"version":"1.2.2"}', { latest: '1.2.2', isNewer: false, problem: null }],
  ['the same version', '{"version":"1.2.3"}', { latest: '1.2.3', isNewer: false, problem: null }],
  ['a page', '<html>', { latest: null, isNewer: false, problem: 'its answer names no version' }],
  ['a text instead', '{"version":"<b>buy</b>"}', { latest: null, problem: 'its answer names no version' }],
  ['a list', '["9.9.9"]', { latest: null, problem: 'its answer names no version' }],
  ['a flood', `{"version":"9.9.9","x":"${'x'.repeat(70_000)}"}`, { latest: null, problem: 'the answer is too large' }],
])('what it may answer: %s', async (_, text, release) => {
  answer = (response) => response.end(text)
  await checkRelease(app.ports)
  expect(await seen()).toMatchObject({ release })
})

test('no redirect is followed, and a silent address costs half a second', async () => {
  answer = (response) => response.writeHead(302, { location: '/elsewhere' }).end()
  await checkRelease(app.ports)
  expect(await seen()).toMatchObject({ release: { problem: 'it answered 302' } })
  answer = () => {}
  app.clock.advance(DAY)
  await checkRelease(app.ports)
  expect(await seen()).toMatchObject({ release: { problem: 'no answer in time' } })
  expect(asked.map(({ url }) => url)).toStrictEqual(['/releases/latest', '/releases/latest'])
})

test('what another address said does not count, and without an address nobody is asked', async () => {
  await checkRelease(app.ports)
  const { store } = app
  const moved = await createTestApp({
    env: { UPDATE_CHECK_URL: `http://127.0.0.1:${portOf(server)}/other` },
    ports: { store, outbound: openOutbound() },
  })
  const admin = await moved.admin()
  const read = async () => Object(await (await admin.send('GET', '/api/system')).json()).release
  expect(await read()).toMatchObject({ askedAt: null, latest: null, isNewer: false })
  await checkRelease(moved.ports)
  expect(asked.map(({ url }) => url)).toStrictEqual(['/releases/latest', '/other'])
  const off = await createTestApp({ ports: { store, outbound: openOutbound() } })
  await checkRelease(off.ports)
  expect(asked).toHaveLength(2)
  expect(Object(await (await (await off.admin()).send('GET', '/api/system')).json()).release).toBeNull()
})
