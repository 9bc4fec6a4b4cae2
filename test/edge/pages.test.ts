import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEFAULT_PUBLIC_ACCESS } from '../../src/shared/access/public-access.ts'
import { HSTS, pagePolicy, SECURITY_HEADERS } from '../../src/app/http/security.ts'
import { ADMIN_PASSWORD, SCENARIO_ENV } from '../contract/service.ts'
import { openBrowser, type SiteBrowser } from '../support/web/site.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const PAGE = readFileSync(fileURLToPath(new URL('../../src/web/index.html', import.meta.url)), 'utf8')
const TITLE = /<title>(.*)<\/title>/.exec(PAGE)?.[1] ?? ''

const MAP_TILE_URL = 'https://tiles.example.org/{z}/{x}/{y}.png'
const PAGE_POLICY = pagePolicy(['https://tiles.example.org'])

const READ = { read: true, write: false }
const OPEN = {
  ...DEFAULT_PUBLIC_ACCESS,
  enabled: true,
  permissions: { ...DEFAULT_PUBLIC_ACCESS.permissions, nodes: READ },
}

let workerd: Workerd
beforeAll(async () => {
  workerd = await openWorkerd({ ...SCENARIO_ENV, MAP_TILE_URL })
})
afterAll(() => workerd.close())

const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(new URL(path, workerd.url), { headers })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

test.each(['/', '/login?error=oidc_denied', '/users/7', '/nodes/!a0cb0001?sort=name'])(
  '%s is the application for everybody',
  async (path) => {
    for (const headers of [{}, { 'sec-fetch-mode': 'navigate' }]) {
      const page = await get(path, headers)
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(page.text).toContain(`<title>${TITLE}</title>`)
      expect(page.headers.get('cache-control')).toBe('public, max-age=0, must-revalidate')
      expect(Object.fromEntries(page.headers)).toMatchObject(
        lowerCase({ ...SECURITY_HEADERS, 'Content-Security-Policy': PAGE_POLICY }),
      )
      expect(page.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(page.headers.get('strict-transport-security')).toBeNull()
      expect(PAGE_POLICY).toContain(' https://tiles.example.org;')
    }
  },
)

test('tiles chosen by a setting change the policy of the next page', async () => {
  const mapTiles = {
    kind: 'url',
    url: 'https://own.example.org/{z}/{x}/{y}',
    darkUrl: null,
    maxZoom: 9,
    attribution: null,
  }
  await workerd.sql(`insert into settings values ('mapTiles', '${JSON.stringify(mapTiles)}', 0)`)
  expect((await get('/map')).headers.get('content-security-policy')).toBe(pagePolicy(['https://own.example.org']))
  await workerd.sql(`delete from settings`)
  expect((await get('/map')).headers.get('content-security-policy')).toBe(PAGE_POLICY)
})

test('a frame is for the sites of its profile at once, and begins as the profile says', async () => {
  const profile = { name: 'Town', origins: ['https://town.example.org'], center: null, zoom: 9, layers: ['labels'] }
  const value = JSON.stringify({ ...profile, width: 800, height: 500 })
  const shown = async (query: string) => {
    const answer = await fetch(new URL(`/embed/map${query}`, workerd.url), { redirect: 'manual' })
    await answer.arrayBuffer()
    const [, ancestors] = /frame-ancestors ([^;]+)/.exec(answer.headers.get('content-security-policy') ?? '') ?? []
    return [answer.status, ancestors, answer.headers.get('location')]
  }
  const known = '?profile=0123456789ab'
  expect(await shown(known)).toEqual([404, "'none'", null])
  await workerd.sql(`insert into settings values ('publicAccess', '${JSON.stringify(OPEN)}', 0)`)
  // Public access is read again after five seconds.
  await expect.poll(() => shown(''), { timeout: 30_000 }).toEqual([200, "'none'", null])
  expect(await shown(known)).toEqual([404, "'none'", null])
  await workerd.sql(`insert into settings values ('embedProfile.0123456789ab', '${value}', 0)`)
  const [query, origins] = [`${known}&zoom=9&layers=labels`, "'self' https://town.example.org"]
  expect([await shown(known), await shown(query)]).toEqual([
    [302, origins, query],
    [200, origins, null],
  ])
  const stored = await get(`/embed/map${query}`)
  const again = () => get(`/embed/map${query}`, { 'if-none-match': stored.headers.get('etag') ?? '' })
  expect((await again()).headers.get('content-security-policy')).toContain(`frame-ancestors ${origins};`)
  await workerd.sql("delete from settings where key = 'embedProfile.0123456789ab'")
  expect((await again()).status).toBe(404)
  expect(await shown(query)).toEqual([404, "'none'", null])
  await workerd.sql('delete from settings')
  await expect.poll(() => shown(''), { timeout: 30_000 }).toEqual([404, "'none'", null])
})

test('an unknown path is 404, answered by the application', async () => {
  for (const path of ['/other/nodes', '/users/0']) {
    const answer = await get(path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    expect(answer.text).toContain('<div id="app"')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'self'")
  }
})

test('a hashed file may be cached forever, and never becomes a page when it is missing', async () => {
  const script = /\/assets\/[^"]+\.js/.exec((await get('/')).text)?.[0] ?? ''
  const found = await get(script)
  expect([found.status, found.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  expect(found.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(Object.fromEntries(found.headers)).toMatchObject(lowerCase(SECURITY_HEADERS))
  const again = await fetch(new URL(script, workerd.url), {
    headers: { 'if-none-match': found.headers.get('etag') ?? '' },
  })
  expect([again.status, await again.text()]).toEqual([304, ''])
  for (const answer of [found, again]) expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  for (const path of ['/assets/index-old.js', '/favicon.ico', '/_headers.txt']) {
    const gone = await get(path)
    expect([gone.status, gone.headers.get('cache-control')]).toEqual([404, 'no-store'])
    expect(gone.text).toBe('Not found\n')
    expect(Object.fromEntries(gone.headers)).toMatchObject(lowerCase(SECURITY_HEADERS))
  }
})

test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  '%s on a page is refused in the same way as by the API',
  async (method) => {
    const answer = await fetch(new URL('/users', workerd.url), { method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(Object.fromEntries(answer.headers)).toMatchObject(lowerCase(SECURITY_HEADERS))
    const body = { code: 'method_not_allowed', requestId: answer.headers.get('x-request-id') }
    expect(await answer.json()).toMatchObject(body)
  },
)

test('HSTS is sent over https only, on pages, files and missing ones', async () => {
  const script = /\/assets\/[^"]+\.js/.exec((await get('/')).text)?.[0] ?? ''
  for (const path of ['/', script, '/assets/index-old.js']) {
    const answer = await workerd.dispatch(`https://mesh.example.org${path}`)
    expect([path, answer.headers.get('strict-transport-security')]).toEqual([path, HSTS])
    expect((await get(path)).headers.get('strict-transport-security')).toBeNull()
    await answer.arrayBuffer()
  }
})

test.each(['/api', '/api/nowhere', '/api/auth/statuses'])(
  '%s is a request to the API, and never a page',
  async (path) => {
    const answer = await get(path, { 'sec-fetch-mode': 'navigate' })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'application/problem+json'])
  },
)

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

describe('in a browser', () => {
  let browser: SiteBrowser
  beforeAll(async () => {
    browser = await openBrowser(workerd.url.origin)
  })
  afterAll(() => browser.close())

  test('an administrator signs in, sees the nodes and creates a user', async () => {
    await workerd.sql(
      "insert into nodes (node_num, long_name, short_name, first_heard, last_heard) values (2697658369, 'Ridge over the edge', 'EDGE', 1, 1)",
    )
    const { page, goto, signIn, violations, complaints } = await browser.visit()
    await goto('/nodes')
    await signIn('admin', ADMIN_PASSWORD)
    await page.getByRole('link', { name: 'Ridge over the edge' }).click()
    await page.getByRole('heading', { name: 'Ridge over the edge', level: 1 }).waitFor()
    await goto('/users/new')
    await page.getByLabel('Username').fill('anna')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByRole('heading', { name: 'anna can sign in now' }).waitFor()
    expect(await page.getByLabel('Temporary password').textContent()).toMatch(/^[A-Za-z0-9]{20}$/)
    expect(await violations()).toEqual([])
    expect(complaints).toEqual([])
  })

  test('pages for what needs no radio work on this runtime, without showing an error', async () => {
    const { page, goto, signIn, violations, complaints } = await browser.visit()
    await goto('/')
    await signIn('admin', ADMIN_PASSWORD)
    await page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.getByText('Radios connect to a Node service, which delivers the received packets here.').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    for (const name of ['Findings', 'Topology', 'Boards']) {
      await page.getByRole('navigation').first().getByRole('link', { name, exact: true }).click()
      await page.getByRole('heading', { name, level: 1 }).waitFor()
      await page.locator('main .progress, main .skeleton').first().waitFor({ state: 'detached' })
      expect(await page.getByRole('alert').count()).toBe(0)
    }
    await goto('/backups')
    await page.getByRole('button', { name: 'Back up now' }).click()
    await page.getByRole('row').filter({ hasText: 'by hand' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(await violations()).toEqual([])
    await goto('/packets')
    await page.getByRole('heading', { name: 'No packets here' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('controls that need a radio are not offered without one', async () => {
    await workerd.sql(
      "insert into nodes (node_num, long_name, first_heard, last_heard) values (2697658370, 'Valley', 1, 1)",
    )
    const { page, goto, signIn, complaints } = await browser.visit()
    await goto('/nodes/!a0cb0002')
    await signIn('admin', ADMIN_PASSWORD)
    await page.getByRole('heading', { name: 'Valley', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Messages', exact: true }).last().waitFor()
    await page.getByRole('heading', { name: 'Traceroutes' }).waitFor()
    expect(await page.getByText('Start a traceroute').count()).toBe(0)
    await goto('/traceroutes')
    await page.getByText('No radio can send from here').waitFor()
    expect(await page.getByLabel('Node', { exact: true }).count()).toBe(0)
    await goto('/automation')
    await page.getByText('Rules send through a radio. This runtime has none').waitFor()
    expect(await page.getByRole('link', { name: 'New rule' }).count()).toBe(0)
    await goto('/messages?with=!a0cb0002')
    await page.getByText('No radio can send from here').waitFor()
    expect(await page.getByRole('button', { name: 'Send' }).count()).toBe(0)
    await page.getByText('Live', { exact: true }).first().waitFor()
    expect(complaints).toEqual([])
  })
  test('radios of collectors are listed with where they are changed, and nothing can be changed here', async () => {
    const { page, goto, signIn, violations, complaints } = await browser.visit()
    await goto('/configuration/connections?add=radio')
    await signIn('admin', ADMIN_PASSWORD)
    await page.getByText('Radios connect to a Node service, which delivers the received packets here.').waitFor()
    await workerd.sql("insert into sources (id, kind, name, created_at) values (7, 'ingest', 'Club / Hill', 1)")
    await goto('/configuration/connections?add=radio')
    const row = page.getByRole('listitem').filter({ hasText: 'Club / Hill' })
    // Nobody knows here when the latest packet came.
    await expect.poll(() => row.allInnerTexts()).toEqual(['Club / Hill'])
    await page.getByText('They are connected and changed there.', { exact: false }).waitFor()
    expect([await page.locator('main').getByRole('button').count(), await page.getByRole('dialog').count()]).toEqual([
      0, 0,
    ])
    expect(await violations()).toEqual([])
    expect(complaints).toEqual([])
    await workerd.sql('delete from sources where id = 7')
  })
})
