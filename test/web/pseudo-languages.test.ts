import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Config_DeviceConfig_RoleSchema } from '../../src/meshtastic/gen/config_pb.ts'
import { openDatabase } from '../../src/node/database.ts'
import { LANGUAGES } from '../../src/shared/languages.ts'
import { humanize } from '../../src/web/format.ts'
import { inEnglish } from '../support/web/any-wording.ts'
import { DIALOGS, LAST_DIALOGS } from '../support/web/dialogs.ts'
import { type FilledSite, openFilledSite, spoil } from '../support/web/filled-site.ts'
import { follow } from '../support/web/follow.ts'
import { lookAt } from '../support/web/layout.ts'
import { STATES } from '../support/web/opened.ts'
import { pagesWith } from '../support/web/pages.ts'
import type { State } from '../support/web/states.ts'

const SIZES = {
  'at a desk': { width: 1440, height: 900 },
  'on a phone': { width: 375, height: 780 },
} as const
const CONTENT = '.card, tbody tr, .log li, .leaflet-container, .empty'
const FILTERED = '.toolbar, .chat-pane, .leaflet-container'

/** Pages, the same without anything to show, and pages that only their own address leads to. */
const PATHS = [
  ...pagesWith('!a0cb0001'),
  '/automation/new?kind=schedule',
  '/configuration/lora',
  '/configuration/channels',
  '/users/new',
  '/users/2',
  '/public-access',
  '/nodes?q=nobody',
  '/map?q=nobody',
  '/messages?q=nothing',
  '/packets?from=!00000001',
  '/audit?q=nothing',
]

type Language = 'en-XA' | 'ar-XB'
type Walked = State & { readonly onlyOnPhone?: boolean }

let filled: FilledSite
const pages: (readonly [Language, Page])[] = []
/** What the pages said in the language whose letters have accents, and where. */
const said = new Map<string, string>()

async function openIn(language: Language, page: Page): Promise<void> {
  await page.addInitScript(`localStorage.setItem('language', '${language}')`)
  await page.goto(filled.admin.page.url())
  await page.locator('h1:not(.boot *)').waitFor()
  await page.locator(`html[lang=${language}]`).waitFor()
  pages.push([language, page])
}

beforeAll(async () => {
  filled = await openFilledSite()
  const { page } = filled.admin
  await openIn('ar-XB', await page.context().newPage())
  await openIn('en-XA', page)
})
afterAll(() => filled.close())

async function resize(page: Page, size: keyof typeof SIZES): Promise<void> {
  await page.setViewportSize(SIZES[size])
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
}

/** What is wrong with a page in a language, at a desk and then, as it is, on a phone. */
async function faultsIn(page: Page, language: Language, { name, onlyOnPhone }: Pick<Walked, 'name' | 'onlyOnPhone'>) {
  const found: string[] = []
  for (const size of onlyOnPhone === true ? (['on a phone'] as const) : (['at a desk', 'on a phone'] as const)) {
    await resize(page, size)
    const { faults, texts } = await lookAt(page)
    found.push(...faults.map((fault) => `${language} ${size}: ${fault}`))
    if (language === 'en-XA') for (const text of texts) said.set(text, name)
  }
  return found
}

async function walk(state: Walked): Promise<string[]> {
  const found: string[] = []
  for (const [language, page] of pages) {
    const english = inEnglish(page)
    await resize(page, state.onlyOnPhone === true ? 'on a phone' : 'at a desk')
    await follow(english, state.path)
    await page
      .locator(state.path.includes('q=no') ? FILTERED : CONTENT)
      .first()
      .waitFor()
    // What a new answer moves just then would not be pressed; mesh/first-taps.test.ts is about that.
    await page.locator('.progress p').waitFor({ state: 'detached' })
    await state.open(english)
    found.push(...(await faultsIn(page, language, state)))
  }
  return found
}

test.each(PATHS)('page: %s', async (path) => {
  expect(await walk({ name: path, of: '', path, open: (page) => page.locator('h1').waitFor() })).toEqual([])
})

describe('what opens', () => {
  test.each(DIALOGS)('dialog: $name', async (dialog) => {
    expect(await walk(dialog)).toEqual([])
  })

  test.each(STATES)('state: $name', async (state) => {
    expect(await walk(state)).toEqual([])
  })
})

test.each(['/', '/map', '/users', '/settings'])('a failure of the service on %s', async (path) => {
  const isData = (url: URL) => /^\/api\/(?!auth\/|events$|info$)/.test(url.pathname)
  const refuse = (route: Route) =>
    route.fulfill({ status: 500, json: { error: { code: 'internal', message: 'Broken', requestId: 'req-1' } } })
  for (const [language, page] of pages) {
    await page.route(isData, refuse)
    await follow(inEnglish(page), path)
    await inEnglish(page).getByText('Something went wrong in the service').first().waitFor()
    expect(await faultsIn(page, language, { name: `failure on ${path}` })).toEqual([])
    await page.unroute(isData, refuse)
  }
})

test('without a connection, and without an account', async () => {
  for (const [language, page] of pages) {
    await page.context().setOffline(true)
    await inEnglish(page).getByText('This device is offline').first().waitFor()
    expect(await faultsIn(page, language, { name: 'offline' })).toEqual([])
    await page.context().setOffline(false)
    const { page: stranger } = await filled.browser.visit()
    await stranger.addInitScript(`localStorage.setItem('language', '${language}')`)
    for (const path of ['/login', '/forgot-password', '/link']) {
      await stranger.goto(new URL(path, page.url()).href)
      await stranger.locator('h1:not(.boot *)').waitFor()
      expect(await faultsIn(stranger, language, { name: path })).toEqual([])
    }
    await stranger.context().close()
  }
})

describe('what changes other pages', () => {
  beforeAll(() => spoil(filled.site))

  test.each(LAST_DIALOGS)('dialog: $name', async (dialog) => {
    expect(await walk(dialog)).toEqual([])
  })
})

/** Where the names and texts of people and of radios are. */
const DATA = [
  'select long_name, short_name, firmware_version, public_key from nodes',
  'select username from users',
  'select text from messages',
  'select name from channels',
  'select name from sources',
  'select name from automations',
  'select name from alert_rules',
  'select name from api_tokens',
  'select name from boards',
  'select name from copy_places',
  'select name from overlays',
  "select names.value from service_state state, json_each(state.value, '$.losses') losses, json_each(losses.value, '$.names') names where state.name = 'import'",
]
const ROLES = Config_DeviceConfig_RoleSchema.values.map(({ name }) => name)
/** Names of hardware and protocols, what is typed into a search as it is, days as `Intl` has them, time zones, browsers, hosts and who somebody is to a provider. */
const NAMES =
  /\b[A-Z\d_]{2,}\b|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b|\b[A-Z][a-z]+\/[\w/ -]+|Chrome|Linux|\bhas:[a-z]+|https?:\S+|\S+\.example\.org|subject \d+|![\da-f]{8}/g
/** The service writes these. */
const OF_THE_SERVICE = ['the host name is not known', /^Only packets of the last \d+ h are looked at\.$/]

const isEnglish = (text: string) =>
  (text.match(/\p{L}/gu) ?? []).length >= 3 && /[aceghilnosuyz]/i.test(text) && !/[\u0080-\u024f]/.test(text)

test('every text of a page is in a catalogue, if it is not data', () => {
  const store = openDatabase(join(filled.site.data, 'mesh.db'))
  const values = DATA.flatMap((query) => store.sqlite.prepare(query).raw().all().flat())
  store.close()
  const texts = [...values, ...ROLES.map(humanize), ...Object.values(LANGUAGES)].filter(
    (value) => typeof value === 'string',
  )
  const data = texts.filter((text) => text !== '').toSorted((a, b) => b.length - a.length)
  const wordsOf = (text: string) => data.reduce((rest, each) => rest.replaceAll(each, ''), text).replaceAll(NAMES, '')
  const isOfService = (text: string) => OF_THE_SERVICE.some((known) => text.search(known) >= 0)
  const found = [...said].filter(([text]) => isEnglish(text) && isEnglish(wordsOf(text)) && !isOfService(text))
  expect(said.size).toBeGreaterThan(1000)
  expect(found.map(([text, name]) => `${name}: ${text}`)).toEqual([])
})
