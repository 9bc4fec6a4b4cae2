import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { z } from 'zod'
import { settings } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { buildSite, programEnv } from '../built/built-service.ts'
import { CHROMIUM_PATH } from './chromium.ts'

const CHROMIUM = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A page in its own browser, and everything it complained about: script errors, requests to other hosts. */
export type Visitor = {
  readonly page: Page
  readonly complaints: string[]
  goto(path: string): Promise<void>
  signIn(username: string, password: string): Promise<void>
  /** The findings of axe-core on the current page, light and dark, or as the visitor chose; empty when there are none. */
  violations(): Promise<string[]>
}

export type SiteBrowser = {
  visit(options?: BrowserContextOptions): Promise<Visitor>
  close(): Promise<void>
}

export type Site = SiteBrowser & {
  readonly base: string
  /** The folder of the built web application. */
  readonly files: string
  /** Its DATA_DIR. */
  readonly data: string
  /** The password of the first administrator; null when the environment gives one. */
  readonly temporaryPassword: string | null
}

/**
 * Starts the built service with its web application, and a browser. `fill`: writes into its database before.
 * `asksAboutMap`: nobody has said yet what the map shows, so it asks; tests of other things have the answer *as it is*.
 */
export async function openSite(
  env: Record<string, string> = {},
  fill?: (store: ReturnType<typeof openDatabase>) => Promise<unknown>,
  asksAboutMap = 'MAP_TILE_URL' in env || 'MAP_PMTILES' in env,
): Promise<Site> {
  const { main, files } = buildSite()
  const data = mkdtempSync(join(tmpdir(), 'mesh-web-'))
  if (fill !== undefined || !asksAboutMap) {
    const store = openDatabase(join(data, 'mesh.db'))
    if (!asksAboutMap)
      await store.db.insert(settings).values({ key: 'mapTiles', value: '{"kind":"none"}', updatedAt: 0 })
    await fill?.(store)
    store.close()
  }
  const service = spawn(process.execPath, [main], {
    env: {
      ...programEnv(),
      DATA_DIR: data,
      HOST: '127.0.0.1',
      PORT: '0',
      LOG_FORMAT: 'json',
      DEMO: 'true',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stopped = new Promise((resolve) => service.once('exit', resolve))
  let printed = ''
  const port = await new Promise<number>((resolve, reject) => {
    service.once('exit', (code) => reject(new Error(`the service stopped with ${code}: ${printed}`)))
    service.stdout.on('data', (chunk) => {
      printed += String(chunk)
      const found = /"Listening".*"port":(\d+)/.exec(printed)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
  })
  const base = `http://127.0.0.1:${port}`
  const browser = await openBrowser(base)
  return {
    base,
    files,
    data,
    temporaryPassword: /temporary password {2}(\S+)/.exec(printed)?.[1] ?? null,
    visit: browser.visit,
    close: async () => {
      await browser.close()
      service.kill()
      await stopped
      rmSync(data, { recursive: true })
    },
  }
}

/** By how many pixels a page is wider than the screen. */
export async function overflowOf(page: Page): Promise<number> {
  // A phone widens its window to what it shows, but not this.
  return Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'))
}

/** Until the service worker handles the requests of this page, and the files of the application are kept. */
export async function areFilesKept(page: Page): Promise<void> {
  await expect
    .poll(() => page.evaluate("navigator.serviceWorker.controller !== null && caches.match('/').then(Boolean)"))
    .toBe(true)
}

/**
 * Delivers a push to the service worker until it shows exactly this one: Chromium can lose a message while it starts the
 * worker, and the same message again takes the place of the first.
 */
export async function showPush(page: Page, push: { id: string; title: string; text: string }): Promise<void> {
  const cdp = await page.context().newCDPSession(page)
  const { promise: registered, resolve } = Promise.withResolvers<string>()
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [registration] }) => {
    if (registration !== undefined) resolve(registration.registrationId)
  })
  await cdp.send('ServiceWorker.enable')
  await areFilesKept(page)
  const message = { origin: new URL(page.url()).origin, registrationId: await registered, data: JSON.stringify(push) }
  const shown = `navigator.serviceWorker.ready.then((each) => each.getNotifications())
    .then((all) => all.map(({ title, body, tag }) => [title, body, tag]))`
  const deliver = async () => {
    await cdp.send('ServiceWorker.deliverPushMessage', message)
    return page.evaluate(shown)
  }
  await expect.poll(deliver, { interval: 500 }).toStrictEqual([[push.title, push.text, push.id]])
}

/** A browser for a site that already runs at `base`. */
export async function openBrowser(base: string, executablePath = CHROMIUM_PATH): Promise<SiteBrowser> {
  const browser = await chromium.launch({ executablePath, args: CHROMIUM })
  return { visit: (options = {}) => visit(browser, base, options), close: () => browser.close() }
}

async function visit(browser: Browser, base: string, options: BrowserContextOptions): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: 1360, height: 860 },
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(`${base}/`) && !request.url().startsWith('data:')) complaints.push(request.url())
  })
  return {
    page,
    complaints,
    goto: async (path) => {
      await page.goto(base + path)
      await page.locator('h1:not(.boot *)').waitFor()
    },
    signIn: async (username, password) => {
      await page.getByLabel('Username').fill(username)
      await page.getByLabel('Password', { exact: true }).fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
    },
    violations: async () => {
      const { colorScheme } = options
      const light = await findViolations(page)
      if (colorScheme !== undefined) return light
      await page.emulateMedia({ colorScheme: 'dark' })
      const dark = await findViolations(page, COLOR_RULES)
      await page.emulateMedia({ colorScheme: 'light' })
      return [...light, ...dark.map((found) => `dark: ${found}`)]
    },
  }
}

/** The rules of axe-core whose result depends on colours. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

async function findViolations(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Elements in transition have other colours.
  await page.evaluate(
    'Promise.allSettled(document.getAnimations().filter((each) => each.effect.getComputedTiming().endTime !== Infinity).map((each) => each.finished))',
  )
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe.source)
  const only = rules === undefined ? '' : JSON.stringify({ runOnly: { type: 'rule', values: rules } })
  const found = await page.evaluate(
    `axe.run(${only}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`,
  )
  return z.array(z.string()).parse(found)
}
