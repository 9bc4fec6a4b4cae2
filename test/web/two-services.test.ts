import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Built, buildSite, type Service, startService } from '../support/built/built-service.ts'
import { type PathProxy, startPathProxy } from '../support/servers/path-proxy.ts'
import { ADMIN_PASSWORD } from '../support/signed-in.ts'
import { openBrowser, type SiteBrowser, type Visitor } from '../support/web/site.ts'

let built: Built
let proxy: PathProxy
let browser: SiteBrowser
beforeAll(async () => {
  built = buildSite()
  proxy = await startPathProxy()
  browser = await openBrowser(proxy.url)
})
afterAll(async () => {
  await browser.close()
  await proxy.close()
})

let dir: string
const running: Service[] = []
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-two-'))
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop('SIGKILL')))
  rmSync(dir, { recursive: true })
})

async function serve(path: string): Promise<void> {
  const service = await startService(built, {
    DATA_DIR: join(dir, `data-${path.slice(1)}`),
    ADMIN_PASSWORD,
    DEMO: 'true',
    PUBLIC_URL: proxy.url + path,
    // Chromium treats loopback as secure, so it applies the rules of __Host- cookies.
    COOKIE_SECURE: 'true',
  })
  running.push(service)
  proxy.serve(path, service.url)
}

async function signIn({ goto, page, signIn: fill }: Visitor, path: string): Promise<void> {
  await goto(`${path}/login`)
  await fill('admin', ADMIN_PASSWORD)
  await page.getByRole('navigation').first().waitFor()
}

const SESSIONS = /^__Host-mesh_session/

describe.each([
  ['/a', '/b', ['.a', '.b']],
  ['', '/b', ['', '.b']],
])('in Chromium, of services at %j and %j', (one, two, ends) => {
  test('signing out of one leaves cookies, stored data and pages of the other', async () => {
    await serve(one)
    await serve(two)
    const visitor = await browser.visit()
    const { page, goto } = visitor
    await signIn(visitor, one)
    await signIn(visitor, two)
    const sessions = async () =>
      (await page.context().cookies()).map(({ name }) => name).filter((name) => SESSIONS.test(name))
    expect((await sessions()).toSorted()).toStrictEqual(ends.map((end) => `__Host-mesh_session${end}`))
    await goto(`${one}/nodes`)
    await page.getByText('Castle Hill Relay').first().waitFor()
    await page.getByRole('button', { name: 'Sign out' }).first().click()
    await page.waitForURL(`${proxy.url}${one}/login*`)
    expect(await sessions()).toStrictEqual([`__Host-mesh_session${ends[1]}`])
    const stored = await page.evaluate("Object.keys(localStorage).filter((key) => key.endsWith('status'))")
    expect(stored).toStrictEqual([`${two}/status`])
    await goto(`${two}/nodes`)
    await page.getByText('Castle Hill Relay').first().waitFor()
    expect(page.url()).toBe(`${proxy.url}${two}/nodes`)
    await page.context().close()
  })
})
