import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { ADMIN_PASSWORD, createTestApp, type TestApp } from '../../../support/app.ts'

const KNOWN = 'nine herons over a broken mill'
const hashOf = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()

let server: Server
let url: string
let answer: (prefix: string) => { status: number; body: string } | 'stall'
let asked: { path: string; padding: unknown }[]
let app: TestApp

beforeEach(async () => {
  asked = []
  // The format of api.pwnedpasswords.com: lines end with CRLF, and lines of padding have the count 0.
  answer = () => ({ status: 200, body: `${'0'.repeat(35)}:0\r\n${hashOf(KNOWN).slice(5)}:231\r\n${'F'.repeat(35)}:2` })
  server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', padding: request.headers['add-padding'] })
    const said = answer(request.url?.slice(-5) ?? '')
    if (said !== 'stall') response.writeHead(said.status).end(said.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${Object(server.address()).port}/range`
  app = await createTestApp({ env: { BREACHED_PASSWORDS_URL: url } })
  asked = []
})
afterEach(async () => {
  app.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const create = async (password: string) =>
  outcomeOf((await app.admin()).send('POST', '/api/users', { username: 'anna', password }))

test('a breached password is refused, and only the first five digits of its hash are sent', async () => {
  expect(await create(KNOWN)).toBe('422 weak_password')
  expect(asked).toEqual([{ path: `/range/${hashOf(KNOWN).slice(0, 5)}`, padding: 'true' }])
  expect(await create('another password that nobody knows')).toBe('201')
})

test('a password is also looked up when it is changed', async () => {
  const admin = await app.admin()
  const change = (newPassword: string) =>
    outcomeOf(admin.send('POST', '/api/auth/change-password', { currentPassword: ADMIN_PASSWORD, newPassword }))
  expect(await change(KNOWN)).toBe('422 weak_password')
  expect(await change('another password that nobody knows')).toBe('204')
})

test('a line of padding does not count as a breach', async () => {
  answer = () => ({ status: 200, body: `${hashOf(KNOWN).slice(5)}:0` })
  expect(await create(KNOWN)).toBe('201')
})

test.each([
  ['503', () => ({ status: 503, body: '' })],
  ['a redirect', () => ({ status: 302, body: '' })],
  ['HTML', () => ({ status: 200, body: '<html>' })],
  ['far too much text', () => ({ status: 200, body: 'x'.repeat(600_000) })],
])('a password is accepted if the service answers with %s', async (_what, said) => {
  answer = said
  expect(await create(KNOWN)).toBe('201')
})

test('a password is accepted if the service does not answer', async () => {
  answer = () => 'stall'
  expect(await create(KNOWN)).toBe('201')
  expect(app.logged.join('\n')).toContain('not checked for breaches')
  expect(app.logged.join('\n')).not.toContain(hashOf(KNOWN).slice(0, 5))
})

test('nothing is looked up without the setting, or for a password that breaks another rule', async () => {
  expect(await create('short')).toBe('422 weak_password')
  app.close()
  app = await createTestApp()
  expect(await create(KNOWN)).toBe('201')
  expect(asked).toEqual([])
})
