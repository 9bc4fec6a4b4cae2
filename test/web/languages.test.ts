import type { BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LANGUAGE_TAGS, LANGUAGES } from '../../src/shared/languages.ts'
import { lookAt } from '../support/web/layout.ts'
import { pagesWith } from '../support/web/pages.ts'
import { openSite, type Site } from '../support/web/site.ts'

const PASSWORD = 'three radios on one hill'
/** What *Nodes* is called in the navigation. */
const NODES = { en: 'Nodes', de: 'Knoten', es: 'Nodos', fr: 'Nœuds', 'pt-BR': 'Nós', pl: 'Węzły' }
const PATHS = [
  '/',
  '/nodes',
  '/map',
  '/messages',
  '/alerts',
  '/automation/new?kind=schedule',
  '/settings',
  '/account',
  '/users',
]
const SIZES = [
  { width: 1440, height: 900 },
  { width: 375, height: 780 },
]

let site: Site
let storageState: Exclude<BrowserContextOptions['storageState'], undefined>

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD: PASSWORD })
  const admin = await site.visit()
  await admin.goto('/login')
  await admin.signIn('admin', PASSWORD)
  await admin.page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
  storageState = await admin.page.context().storageState()
  await admin.page.context().close()
})
afterAll(() => site.close())

test.each(LANGUAGE_TAGS)('a browser in %s gets pages in it, which fit at a desk and on a phone', async (tag) => {
  const { page, goto, complaints } = await site.visit({ storageState, locale: tag })
  const faults: string[] = []
  for (const path of tag === 'de' ? [...new Set([...PATHS, ...pagesWith('!a0cb0001')])] : PATHS) {
    await page.setViewportSize({ width: 1440, height: 900 })
    await goto(path)
    await page.locator('h1:not(.boot *)').waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe(tag)
    for (const size of SIZES) {
      await page.setViewportSize(size)
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      faults.push(...(await lookAt(page)).faults.map((fault) => `${path} at ${size.width}: ${fault}`))
    }
  }
  expect(faults).toEqual([])
  await page.setViewportSize({ width: 1440, height: 900 })
  expect(await page.getByRole('navigation').first().innerText()).toContain(NODES[tag])
  expect(complaints).toEqual([])
  await page.context().close()
})

test('the language of an account follows its user to other browsers, and can be given back to the browser', async () => {
  const { page, goto } = await site.visit({ storageState, locale: 'en-GB' })
  await goto('/account')
  await page.getByLabel('Language', { exact: true }).selectOption(LANGUAGES.de)
  await page.locator('html[lang=de]').waitFor()
  await page.getByRole('heading', { name: 'Knoten', exact: true }).waitFor({ state: 'detached' })
  const other = await site.visit({ storageState, locale: 'fr-FR' })
  await other.goto('/nodes')
  await other.page.locator('html[lang=de]').waitFor()
  await other.page.getByRole('heading', { level: 1, name: 'Knoten' }).waitFor()
  await goto('/account')
  await page.getByLabel('Sprache', { exact: true }).selectOption('')
  await page.locator('html[lang=en]').waitFor()
  await page.context().close()
  await other.page.context().close()
})

test('the page for signing in can be read by anybody, and refuses in their language', async () => {
  const { page, goto } = await site.visit({ locale: 'en-GB' })
  await goto('/login')
  await page.getByLabel('Language', { exact: true }).selectOption(LANGUAGES.pl)
  await page.locator('html[lang=pl]').waitFor()
  await page.locator('input[autocomplete^=username]').fill('nobody')
  await page.locator('input[type=password]').fill('a wrong password')
  const refused = page.waitForResponse((answer) => answer.url().endsWith('/api/auth/login'))
  await page.keyboard.press('Enter')
  expect((await refused).headers()['content-language']).toBe('pl')
  await page.context().close()
})
