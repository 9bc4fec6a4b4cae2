import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, openCutProxy } from '../support/servers/cut-proxy.ts'
import { user } from '../support/mesh/mesh.ts'
import { isLive, openRadioSite, type RadioSite, SITE_PASSWORD } from '../support/radio/site.ts'
import { areFilesKept, openBrowser, type SiteBrowser, type Visitor } from '../support/web/site.ts'

const READ = { read: true, write: false }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let mesh: RadioSite
let proxy: CutProxy
let browser: SiteBrowser
let reader: Visitor & { readonly id: number }

beforeAll(async () => {
  mesh = await openRadioSite()
  proxy = await openCutProxy(Number(new URL(mesh.site.base).port))
  browser = await openBrowser(proxy.base)
  mesh.hear(user({ longName: 'Lighthouse', shortName: 'LITE' }), { from: 0xa0cb0010 })
  reader = await mesh.join('reader', { nodes: READ, messages: READ, info: READ, dashboard: READ }, browser)
})
afterAll(async () => {
  await browser.close()
  await proxy.close()
  await mesh.close()
})

/** The names of the kept answers in the browser. */
async function cachedNames(page: Page): Promise<unknown> {
  return page.evaluate(`new Promise((resolve, reject) => {
    const request = indexedDB.open('offline-cache')
    request.onerror = () => reject(request.error)
    request.onsuccess = () => {
      const all = request.result.transaction('answers').objectStore('answers').getAllKeys()
      all.onsuccess = () => { request.result.close(); resolve(all.result.map((key) => key.replace(/^\\d+ /, ''))) }
    }
  })`)
}

test('the known list is shown at once with its age, and the new one replaces it', async () => {
  const { page } = reader
  await reader.goto('/nodes')
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await expect.poll(() => cachedNames(page)).toContain('nodes')
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/nodes', async (route) => {
    await released
    await route.continue()
  })
  await reader.goto('/nodes')
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await page.getByText(/^Loading… Shown below: what this browser knew at \d\d:\d\d:\d\d\.$/).waitFor()
  expect(await reader.violations()).toEqual([])
  // A page without nodes does not wait for them.
  await page.getByRole('link', { name: 'reader' }).click()
  await page.getByText('Shown below').waitFor({ state: 'detached' })
  await page.goBack()
  await page.getByText('Shown below').waitFor()
  release()
  await page.getByText('Shown below').waitFor({ state: 'detached' })
  await page.unroute('**/api/nodes')
})

test('offline, loaded data stays readable even after a reload, and one bar says so', async () => {
  const { page } = reader
  await reader.goto('/nodes')
  await areFilesKept(page)
  await reader.goto('/packets')
  await page.locator('tbody tr').first().waitFor()
  await reader.goto('/')
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await expect.poll(() => cachedNames(page)).toEqual(expect.arrayContaining(['nodes', 'dashboard', 'packets   ']))
  proxy.setBroken(true)
  await page.reload()
  await page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await page.getByText('The service does not respond. Trying again…').waitFor()
  await page.getByText(/This page shows data from \d\d:\d\d:\d\d/).waitFor()
  expect(await page.locator('.notice-bad').count()).toBe(0)
  expect(await reader.violations()).toEqual([])
  const nav = page.getByRole('navigation', { name: 'Main' }).first()
  await nav.getByRole('link', { name: 'Nodes' }).click()
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await nav.getByRole('link', { name: 'Messages' }).click()
  await nav.getByRole('link', { name: 'Traceroutes' }).click()
  await nav.getByRole('link', { name: 'Packets' }).click()
  await page.locator('tbody tr').first().waitFor()
  expect(await page.locator('.notice-bad').count()).toBe(0)
  proxy.setBroken(false)
  await page.getByText('Connected again').waitFor()
  await page.getByText('Trying again').waitFor({ state: 'detached' })
  await isLive(reader)
})

test('offline, a page that is not here says so, and what was loaded has no sentence that it was not', async () => {
  const { page } = reader
  const chunk = '**/assets/traceroutes-*.js'
  // A service worker of the reader's browser could have the file.
  const plain = await page
    .context()
    .browser()
    ?.newContext({
      viewport: { width: 1360, height: 860 },
      serviceWorkers: 'block',
      storageState: await page.context().storageState(),
    })
  if (plain === undefined) throw new Error('no browser')
  const other = await plain.newPage()
  await other.route(chunk, (route) => route.abort())
  await other.goto(`${proxy.base}/nodes`)
  await other.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await expect.poll(() => cachedNames(other)).toContain('nodes')
  proxy.setBroken(true)
  await other.getByText('The service does not respond. Trying again…').waitFor()
  const nav = other.getByRole('navigation', { name: 'Main' }).first()
  await nav.getByRole('link', { name: 'Traceroutes' }).click()
  await other.getByText('this page is not stored here').waitFor()
  expect(await other.getByText('upgraded').count()).toBe(0)
  await plain.close()
  // The answer fails before the stored list is there.
  const again = await page.context().newPage()
  await again.addInitScript(`const open = indexedDB.open.bind(indexedDB)
    indexedDB.open = (...all) => {
      const request = open(...all)
      const listen = request.addEventListener.bind(request)
      request.addEventListener = (kind, then) => listen(kind, () => setTimeout(then, 2000))
      return request
    }`)
  await again.goto(`${proxy.base}/nodes`)
  await again.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await again.getByText('The service does not respond. Trying again…').waitFor()
  expect(await again.getByText('not loaded before').count()).toBe(0)
  await again.close()
  proxy.setBroken(false)
})

test('a read without an answer ends with a sentence and a button that tries again', async () => {
  const waiting = await mesh.join('waiting', { settings: READ })
  const { page } = waiting
  let asked = 0
  await page.route('**/api/settings', (route) => (++asked === 1 ? undefined : route.continue()))
  await page.clock.install()
  await waiting.goto('/settings')
  await expect.poll(() => asked).toBe(1)
  await page.getByText('Loading…').first().waitFor()
  // Another answer comes meanwhile: the service is there.
  await Promise.all([
    page.waitForResponse('**/api/auth/status'),
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))"),
  ])
  await page.clock.fastForward(30_000)
  const failure = page.getByRole('alert')
  await failure.getByText('The service took too long to answer.').waitFor()
  expect(await page.getByText('Loading…').count()).toBe(0)
  expect(await waiting.violations()).toEqual([])
  await failure.getByRole('button', { name: 'Try again' }).click()
  await failure.waitFor({ state: 'detached' })
  expect(asked).toBe(2)
})

test.each([
  ['a page', '/messages', 'messages', 'This page could not be loaded'],
  ['the map', '/map', 'view', 'The map could not be loaded.'],
])('%s whose code was lost on the way comes by itself', async (_, path, chunk, failure) => {
  const { page, goto } = await mesh.site.visit({
    storageState: await mesh.admin.page.context().storageState(),
    serviceWorkers: 'block',
  })
  const code = `**/assets/${chunk}-*.js`
  await page.route(code, (route) => route.abort())
  await goto(path)
  await page.getByText(failure).waitFor()
  await page.unroute(code)
  await page.getByText(failure).waitFor({ state: 'detached' })
  await page.locator(path === '/map' ? '.leaflet-container' : '.chat').waitFor()
  await page.context().close()
})

test('signing out deletes the offline cache, and the next user sees none of it', async () => {
  const { page } = reader
  await reader.goto('/nodes')
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  await expect.poll(() => cachedNames(page)).toContain('nodes')
  await page.evaluate("localStorage.setItem('map-view', JSON.stringify({ lat: 46, lng: 7, zoom: 12 }))")
  const traces = () => page.evaluate('Object.keys(localStorage).filter((key) => /^(map-view$|read:)/.test(key))')
  await expect.poll(traces).toEqual(expect.arrayContaining(['map-view', expect.stringMatching(/^read:\d+$/)]))
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await expect.poll(() => cachedNames(page)).toEqual([])
  expect(await traces()).toEqual([])
  expect(await page.evaluate("localStorage.getItem('status')")).toBe(null)
  await mesh.join('newcomer', { messages: READ, nodes: { read: false, write: false } })
  await reader.signIn('newcomer', SITE_PASSWORD)
  await isLive(reader)
  expect(await cachedNames(page)).not.toContain('nodes')
  proxy.setBroken(true)
  await page.reload()
  await page.getByText('The service does not respond.').first().waitFor()
  expect(await page.getByText('Lighthouse').count()).toBe(0)
  proxy.setBroken(false)
})

type Front = {
  readonly base: string
  /** From now on the files have other names. */
  upgrade(): void
  /** Answers the next request for this path as a proxy does while the service restarts. */
  refuse(path: string): { readonly isDone: boolean }
  close(): void
}

/** The site without its stream, behind a server that can be a later version of it. */
async function openFront(): Promise<Front> {
  // Another version has other names of all its files: each imports the first one by name.
  const renamed = (text: string) => text.replaceAll(/(-[\w-]{8})\.js\b/g, '$1-upgraded.js')
  let isUpgraded = false
  const refusals = new Map<string, { isDone: boolean }>()
  const server = createServer((asked, response) => {
    const path = asked.url ?? '/'
    const refusal = refusals.get(path)
    if (path.startsWith('/api/events') || refusal?.isDone === false) {
      if (refusal !== undefined) refusal.isDone = true
      response.writeHead(502).end()
      return
    }
    const { cookie = '' } = asked.headers
    // Without a connection that is kept: the service may end it at the moment when the next request is sent.
    const options = { method: asked.method, agent: false, headers: { cookie, accept: 'application/json' } }
    const forwarded = request(mesh.site.base + path.replace('-upgraded.js', '.js'), options, (answer) => {
      const type = answer.headers['content-type'] ?? 'text/plain'
      const isOld = isUpgraded && path.startsWith('/assets/') && renamed(path) !== path && !path.includes('-upgraded')
      response.writeHead(isOld ? 404 : (answer.statusCode ?? 500), {
        'Content-Type': type,
        'Cache-Control': 'no-cache',
      })
      const parts: Buffer[] = []
      const isRenamed = isUpgraded && /html|javascript/.test(type)
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('end', () => {
        const body = Buffer.concat(parts)
        response.end(isRenamed ? renamed(body.toString()) : body)
      })
    })
    forwarded.on('error', () => response.destroy())
    forwarded.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port')
  return {
    base: `http://127.0.0.1:${address.port}`,
    upgrade: () => void (isUpgraded = true),
    refuse: (path) => {
      const refusal = { isDone: false }
      refusals.set(path, refusal)
      return refusal
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

test.each(['/sw.js', '/offline.html'])('the files are kept although the request for %s failed', async (path) => {
  const front = await openFront()
  const refusal = front.refuse(path)
  const visitors = await openBrowser(front.base)
  const { page, goto } = await visitors.visit({ storageState: await mesh.admin.page.context().storageState() })
  await goto('/nodes')
  await areFilesKept(page)
  expect(refusal.isDone).toBe(true)
  await visitors.close()
  front.close()
})

test('a new version is used from the next page on, and kept in place of the old one', async () => {
  const front = await openFront()
  const visitors = await openBrowser(front.base)
  const { page, goto } = await visitors.visit(PHONE)
  await goto('/login')
  await page.evaluate(
    "navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).then(() => 1)",
  )
  await areFilesKept(page)
  const script = () => page.evaluate("document.querySelector('script[src]').getAttribute('src')")
  await goto('/login')
  expect(await script()).not.toContain('upgraded')
  front.upgrade()
  await goto('/login')
  expect(await script()).toContain('upgraded')
  const names = 'caches.keys().then((names) => names.join())'
  await expect.poll(() => page.evaluate(names)).toMatch(/^files-assets\/first-[\w-]{8}-upgraded\.js[^,]*$/)
  await visitors.close()
  front.close()
})
