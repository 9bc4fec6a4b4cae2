import { afterAll, beforeAll, expect, test } from 'vitest'
import { pagesWith } from '../support/web/pages.ts'
import { smallControls } from '../support/web/controls.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
let site: Site
let visitor: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  visitor = await site.visit()
  await visitor.goto('/nodes')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByText('Town Hall Gateway').waitFor()
})
afterAll(() => site.close())

test('Ctrl K finds pages, nodes and actions', async () => {
  const { page } = visitor
  await page.keyboard.press('Control+k')
  const box = page.getByRole('combobox', { name: 'What to find' })
  await box.fill('town hall')
  await page.getByRole('option', { name: 'Town Hall Gateway' }).waitFor()
  expect(await visitor.violations()).toEqual([])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Town Hall Gateway', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await box.fill('backups')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Backups', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await box.fill('dark')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate('document.documentElement.style.colorScheme')).toBe('dark')
  await page.keyboard.press('Control+k')
  await box.fill('no such thing')
  await page.getByText('Nothing was found.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('a list is one tab stop, and arrow keys lead through it', async () => {
  const { page } = visitor
  await visitor.goto('/nodes?sort=name&order=up')
  await page.getByText('Town Hall Gateway').waitFor()
  await page.getByRole('region', { name: 'Nodes' }).focus()
  const focused = () => page.evaluate("document.activeElement.closest('tr')?.getAttribute('aria-rowindex') ?? null")
  await page.keyboard.press('ArrowDown')
  await expect.poll(focused).toBe('2')
  await page.keyboard.press('ArrowDown')
  await expect.poll(focused).toBe('3')
  await page.keyboard.press('End')
  const last = String(1 + (await page.locator('table').getAttribute('aria-rowcount').then(Number)) - 1)
  await expect.poll(focused).toBe(last)
  await page.keyboard.press('Home')
  await expect.poll(focused).toBe('2')
  await page.keyboard.press('Tab')
  expect(await page.evaluate("document.activeElement.closest('tbody')")).toBe(null)
  expect(await visitor.violations()).toEqual([])
})

/** On a wall: what is cut off at an edge, or could be pressed. */
const FAULTS_ON_WALL = `
  [...document.querySelectorAll('#content :is(.figure, .card, .rows > li, .needs > li, tbody tr:not(.gap), .log li, .map-box)')]
    .filter((each) => {
      const { left, top, bottom } = each.getBoundingClientRect()
      const box = (each.parentElement.closest('.rows, .needs, .virtual, .log ol') ?? document.documentElement).getBoundingClientRect()
      const isInSight = each.checkVisibility() && left < box.right && top < box.bottom - 1 && bottom > box.top + 1
      return isInSight && (top < box.top - 1 || bottom > Math.min(box.bottom, innerHeight) + 1)
    })
    .concat([...document.querySelectorAll('.button:not(.wall-leave), .icon-button, .message-action, input, select, textarea')]
      .filter((each) => each.checkVisibility()))
    .concat([...document.querySelectorAll('#content :is(.rows .clip, .figure-value, .row-link, tbody td)')]
      .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1))
    .map((each) => each.outerHTML.slice(0, 80))`

test('on a wall the pages are large, alternate automatically and have no controls', async () => {
  const wall = await site.visit({
    viewport: { width: 1920, height: 1080 },
    storageState: await visitor.page.context().storageState(),
  })
  const { page } = wall
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Browser.grantPermissions', { origin: site.base, permissions: ['wakeLockScreen'] })
  await page.addInitScript(`
    window.locks = []
    const ask = navigator.wakeLock.request.bind(navigator.wakeLock)
    navigator.wakeLock.request = async (kind) => {
      // A browser without windows has no screen to keep on, and refuses.
      const lock = await ask(kind).catch(() => ({ type: kind, released: false, async release() { this.released = true } }))
      locks.push(lock)
      return lock
    }`)
  const awake = () => page.evaluate('locks.filter(({ released }) => !released).map(({ type }) => type)')
  await page.clock.install()
  await wall.goto('/?wall=1')
  await page.getByText('Town Hall Gateway').first().waitFor()
  await expect.poll(() => page.locator('.sidebar').isVisible()).toBe(false)
  const size = async () => Number.parseFloat(String(await page.evaluate('getComputedStyle(document.body).fontSize')))
  expect(await size()).toBeGreaterThanOrEqual(20)
  await expect.poll(awake).toEqual(['screen'])
  expect(await wall.violations()).toEqual([])
  expect(await overflowOf(page)).toBe(0)
  for (const name of ['Map', 'Nodes', 'Messages', 'Dashboard']) {
    await page.clock.runFor(20_000)
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await expect.poll(() => overflowOf(page)).toBe(0)
  }
  await page.keyboard.press('Escape')
  await page.locator('.sidebar').waitFor()
  await expect.poll(awake).toEqual([])
  await page.context().close()
})

test('on a wall nothing is cut off, and the state of radio and data is in sight', async () => {
  const { page } = visitor
  const before = page.viewportSize() ?? { width: 1360, height: 860 }
  for (const size of [
    { width: 1920, height: 1080 },
    { width: 1080, height: 1920 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(size)
    for (const [path, content] of [
      ['/', '.rows li'],
      ['/map', '.leaflet-container'],
      ['/nodes', 'tbody tr'],
      ['/messages', '.log li'],
    ] as const) {
      await visitor.goto(`${path}?wall=1`)
      await page.locator(content).first().waitFor()
      await page.locator('.wall-states').getByText('Radio connected').waitFor()
      // Before the wall goes on to its next page.
      await expect.poll(() => page.evaluate(FAULTS_ON_WALL), { timeout: 10_000 }).toEqual([])
    }
  }
  await page.keyboard.press('Escape')
  await page.setViewportSize(before)
})

const PAGES = [
  ...pagesWith('!a0cb0001'),
  '/users/new',
  '/public-access',
  '/automation/new',
  '/automation/new?kind=schedule',
]

test('on a phone each control is 44 px high, and a toast covers none of them at the end of a page', async () => {
  const phone = await site.visit({
    viewport: { width: 390, height: 780 },
    isMobile: true,
    hasTouch: true,
    storageState: await visitor.page.context().storageState(),
  })
  const { page } = phone
  const small: unknown[] = []
  for (const path of PAGES) {
    await phone.goto(path)
    await page
      .locator('.card, tbody tr, .log li, .leaflet-container, .empty, .sections, form')
      .filter({ visible: true })
      .first()
      .waitFor()
    await page.locator('.progress p').waitFor({ state: 'detached' })
    const found = await smallControls(page)
    if (found.length > 0) small.push([path, found])
  }
  expect(small).toEqual([])
  await phone.goto('/settings')
  await page.getByRole('button', { name: 'Save' }).first().tap()
  const toast = page.locator('.toast')
  await toast.waitFor()
  const covered = await page.evaluate(`(() => {
    document.querySelector('.scroller').scrollTo(0, 1e9)
    const { left, right, top, bottom } = document.querySelector('.toast').getBoundingClientRect()
    return [...document.querySelectorAll('button, select, input, a, label')].filter((each) => {
      const box = each.getBoundingClientRect()
      return each.checkVisibility() && !each.closest('.sr-only, .skip') && box.width > 0 && box.left < right && box.right > left && box.top < bottom && box.bottom > top
    }).map((each) => each.textContent)
  })()`)
  expect(covered).toEqual([])
  expect(await phone.violations()).toEqual([])
  await page.context().close()
})
