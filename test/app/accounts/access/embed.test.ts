import { afterEach, beforeEach, expect, test } from 'vitest'
import { createApp } from '../../../../src/app/app.ts'
import { type Client, createTestApp, type TestApp } from '../../../support/app.ts'

const ORIGIN = 'https://town.example.org'
let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp({ env: { EMBED_ORIGINS: ORIGIN } })
  admin = await app.admin()
})
afterEach(() => app.close())

const get = (path: string) =>
  createApp(
    () => app.ports,
    async () => new Response('page'),
  ).request(path)
const policyOf = (answer: Response) =>
  /frame-ancestors ([^;]+)/.exec(answer.headers.get('content-security-policy') ?? '')?.[1]
const put = (body: unknown) => admin.send('PUT', '/api/public-access', body)

test('two pages may be framed by the named sites while public access shows nodes', async () => {
  const page = '/embed/node/!a0cb0001'
  const outcome = async (path: string) => {
    const answer = await get(path)
    return [answer.status, policyOf(answer)]
  }
  expect([await outcome('/embed/map'), await outcome(page)]).toEqual([
    [404, "'none'"],
    [404, "'none'"],
  ])
  await put({ enabled: true })
  expect([await outcome('/embed/map'), await outcome(page)]).toEqual([
    [200, ORIGIN],
    [200, ORIGIN],
  ])
  expect([await outcome('/map'), await outcome('/login')]).toEqual([
    [200, "'none'"],
    [200, "'none'"],
  ])
  expect(policyOf(await get('/api/nodes'))).toBe("'none'")
  const NONE = { read: false, write: false }
  await put({ permissions: { dashboard: NONE, nodes: NONE, messages: NONE, info: NONE } })
  expect(await outcome('/embed/map')).toEqual([404, "'none'"])
})

test('search engines may index no page unless a setting allows it', async () => {
  expect((await get('/map')).headers.get('x-robots-tag')).toBe('noindex')
  const open = await createTestApp({ env: { PUBLIC_INDEXING: 'true' } })
  const answer = await createApp(
    () => open.ports,
    async () => new Response('page'),
  ).request('/map')
  expect(answer.headers.get('x-robots-tag')).toBeNull()
  open.close()
})

test.each([['https://town.example.org/path'], ['*'], ['http://town.example.org'], ['https://a.example;script-src *']])(
  'EMBED_ORIGINS=%s stops the start',
  async (value) => {
    await expect(createTestApp({ env: { EMBED_ORIGINS: value } })).rejects.toThrow('EMBED_ORIGINS')
  },
)
