import { afterAll, beforeAll, expect, test } from 'vitest'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import type { SqliteStore } from '../../src/node/database.ts'
import { heard, myInfo, packet, text, user } from '../support/mesh/mesh.ts'
import { smallControls } from '../support/web/controls.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const TEXT = 'Whoever climbs up to the chapel next week: the lantern is broken'
const CHAPEL = 0xa0cc0001

let site: Site
let visitor: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD }, fill)
  visitor = await site.visit()
  await visitor.goto('/system')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'System', level: 1 }).waitFor()
})
afterAll(() => site.close())

async function fill(store: SqliteStore): Promise<void> {
  const at = Date.now() - 60_000
  const named = packet(user({ id: 'x', longName: 'Chapel Lookout', shortName: 'CL' }), { from: CHAPEL })
  const said = packet(text(TEXT), { from: CHAPEL })
  await createIngest(store).store([myInfo, named, said].map((each) => heard(each, { at })))
}

async function type({ page }: Visitor, words: string, box = 'What to find'): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: box }).fill(words)
}

const focusedName = `(() => {
  const { labels, textContent } = document.activeElement
  return labels?.[0]?.textContent ?? textContent
})()`

test('a setting of the radio is found in spite of a typing error, and has the focus then', async () => {
  const { page } = visitor
  await type(visitor, 'hop limti')
  await page.getByRole('option', { name: 'Hop limit Configuration · LoRa', selected: true }).waitFor()
  expect(await visitor.violations()).toEqual([])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'LoRa' }).waitFor()
  await expect.poll(() => page.evaluate(focusedName)).toBe('Hop limit')
  await type(visitor, 'battery')
  await expect
    .poll(() => page.getByRole('listbox', { name: 'Find' }).getByRole('option').allInnerTexts())
    .toEqual([
      'Battery INA address\nConfiguration · Power',
      'Shutdown on battery after\nConfiguration · Power',
      'ADC multiplier override\nConfiguration · Power',
    ])
  await page.getByRole('option', { name: 'Shutdown on battery after' }).click()
  await expect.poll(() => page.evaluate(focusedName)).toBe('Shutdown on battery after')
})

test('pages without a place in the navigation are found', async () => {
  const { page } = visitor
  for (const [words, name] of [
    ['new user', 'New user'],
    ['compare', 'Compare nodes'],
    ['conections', 'Connections'],
  ] as const) {
    await type(visitor, words)
    await page.getByRole('option', { name: `${name} Page`, selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  }
})

test('settings of the service and of the account are found, by other words as well', async () => {
  const { page } = visitor
  await type(visitor, 'mesh name')
  await page.getByRole('option', { name: 'Name of the mesh', selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate(focusedName)).toBe('Name of the mesh')
  await type(visitor, 'retention')
  await page.getByRole('option', { name: 'How long data is kept Settings', selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate(focusedName)).toBe('How long data is kept')
  await type(visitor, 'time zone')
  await page.getByRole('option', { name: 'Time zone Your account · Quiet hours' }).click()
  await page.getByRole('heading', { name: 'Your account' }).waitFor()
  // The field is shown when there are quiet hours.
  await expect.poll(() => page.evaluate(focusedName)).toBe('Quiet hours')
})

test('a text is found when typing pauses, after three letters, and earlier searches are given up', async () => {
  const { page } = visitor
  const searches: string[] = []
  const failed: string[] = []
  const wordsOf = (url: string) => (url.includes('/api/messages?') ? new URL(url).searchParams.get('q') : null)
  page.on('request', (request) => searches.push(...[wordsOf(request.url())].filter((each) => each !== null)))
  page.on('requestfailed', (request) => failed.push(...[wordsOf(request.url())].filter((each) => each !== null)))
  const first = Promise.withResolvers<void>()
  await page.route(/api\/messages\?.*q=lan(?:&|$)/, async (route) => {
    await first.promise
    await route.continue().catch(() => {})
  })
  await type(visitor, 'la')
  await page.keyboard.type('n')
  await expect.poll(() => searches).toEqual(['lan'])
  await page.keyboard.type('tern is')
  await page.getByRole('option', { name: '…week: the lantern is broken Message from Chapel Lookout' }).waitFor()
  expect(searches).toEqual(['lan', 'lantern is'])
  expect(failed).toEqual(['lan'])
  first.resolve()
  expect(await visitor.violations()).toEqual([])
  await page.keyboard.press('Enter')
  await page.locator('.log').getByText(TEXT).waitFor()
  expect(page.url()).toContain('message=')
  // A search that was given up is no outage.
  expect(await page.getByText('The service does not respond').count()).toBe(0)
})

test('a node is found in spite of a typing error on pages without the list of nodes, and what was visited comes first', async () => {
  const { page, goto } = visitor
  await goto('/settings')
  await type(visitor, 'chapl lokout')
  await page.getByRole('option', { name: 'Chapel Lookout' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Chapel Lookout', level: 1 }).waitFor()
  const named = async (words: string) => {
    await page.getByRole('combobox', { name: 'What to find' }).fill(words)
    return page.getByRole('listbox', { name: 'Find' }).getByRole('option').allInnerTexts()
  }
  await page.keyboard.press('Control+k')
  await expect.poll(() => named('s')).toContain('Settings\nPage')
  const before = (await named('s')).filter((each) => /^(?:System|Settings)\n/.test(each))
  expect(before).toEqual(['Settings\nPage', 'System\nPage'])
  await page.keyboard.press('Escape')
  await type(visitor, 'system')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'System', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  const after = (await named('s')).filter((each) => /^(?:System|Settings)\n/.test(each))
  expect(after).toEqual(['System\nPage', 'Settings\nPage'])
  await page.keyboard.press('Escape')
})

test('on a German phone it is in the menu, finds German and English names, and fits', async () => {
  const phone = await site.visit({
    viewport: { width: 390, height: 780 },
    isMobile: true,
    hasTouch: true,
    locale: 'de-DE',
    storageState: await visitor.page.context().storageState(),
  })
  const { page, goto, complaints } = phone
  await goto('/')
  await page.getByRole('button', { name: 'Mehr' }).tap()
  await page.getByRole('button', { name: 'Suchen' }).tap()
  const box = page.getByRole('combobox', { name: 'Was gesucht wird' })
  const hopLimit = page.getByRole('option', { name: 'Maximale Sprungweite Konfiguration · LoRa' })
  await box.fill('Sprungwiete')
  await hopLimit.waitFor()
  expect(await overflowOf(page)).toBe(0)
  expect(await page.evaluate("document.querySelector('.dialog-body').scrollLeft")).toBe(0)
  expect(await smallControls(page)).toEqual([])
  expect(await phone.violations()).toEqual([])
  await box.fill('hop limit')
  await hopLimit.tap()
  await page.getByRole('heading', { name: 'LoRa' }).waitFor()
  await expect.poll(() => page.evaluate(focusedName)).toBe('Maximale Sprungweite')
  expect(complaints).toEqual([])
  await page.context().close()
})

test('nobody finds what they may not open', async () => {
  const NONE = { read: false, write: false }
  await visitor.page.request.post(`${site.base}/api/users`, {
    data: {
      username: 'guest',
      password: 'a bench beside the chapel',
      permissions: { messages: NONE, configuration: NONE, settings: NONE },
    },
    headers: { origin: site.base },
  })
  const guest = await site.visit()
  await guest.goto('/login')
  await guest.signIn('guest', 'a bench beside the chapel')
  await guest.page.getByRole('button', { name: 'Sign out' }).first().waitFor()
  const asked: string[] = []
  guest.page.on('request', (request) => asked.push(request.url()))
  for (const words of ['hop limit', 'retention', 'name of the mesh', 'daily schedule', 'lantern']) {
    await type(guest, words)
    await guest.page.getByText('Nothing was found.').waitFor()
    expect(await guest.page.getByRole('listbox').getByRole('option').count()).toBe(0)
    await guest.page.keyboard.press('Escape')
  }
  await type(guest, 'quiet hours')
  await guest.page.getByRole('option', { name: 'Quiet hours Your account' }).waitFor()
  expect(asked.filter((url) => url.includes('/api/messages'))).toEqual([])
  expect(guest.complaints).toEqual([])
  await guest.page.context().close()
})
