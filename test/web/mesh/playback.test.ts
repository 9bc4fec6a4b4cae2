import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fillPast, FIRST } from '../../support/mesh/past.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true } as const
const HOUR = 3_600_000
/** `PLAYBACK_NODES=2000` measures what playback costs, and prints it. */
const MEASURED = Number(process.env['PLAYBACK_NODES'] ?? 0)

let site: Site
let desk: Visitor
const now = Math.floor(Date.now() / 1000) * 1000
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' }, async (store) =>
    fillPast(store, MEASURED === 0 ? 120 : MEASURED, now),
  )
  desk = await site.visit()
  await desk.goto('/map')
  await desk.signIn('admin', ADMIN_PASSWORD)
  await desk.page.getByRole('button', { name: 'Playback' }).waitFor()
})
afterAll(() => site.close())

const panelOf = (page: Page) => page.getByRole('region', { name: 'Playback' })
/** The moment that is shown, in milliseconds. */
const momentOf = async (page: Page) =>
  Date.parse((await panelOf(page).locator('.playback-time time').getAttribute('datetime')) ?? '')
const areHidden = (boxes: readonly { readonly hidden: boolean }[]) => boxes.map(({ hidden }) => hidden)
/** How many pixels of a layer have a colour. */
const inkOf = (page: Page, pane: string) =>
  page.evaluate(`(() => {
    const canvas = document.querySelector('.leaflet-${pane}-pane canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let ink = 0
    for (let at = 3; at < data.length; at += 4) if (data[at] > 0) ink++
    return ink
  })()`)

test('a press plays the last day: nodes, lines, texts and silences, and the keyboard alone stops and seeks', async () => {
  const { page } = desk
  await page.getByRole('button', { name: 'Playback' }).click()
  const panel = panelOf(page)
  await panel.getByRole('button', { name: 'Pause' }).waitFor()
  const first = await momentOf(page)
  expect(Math.abs(first - (now - 24 * HOUR))).toBeLessThan(HOUR)
  await expect.poll(() => momentOf(page)).toBeGreaterThan(first + 10 * 60_000)
  await expect.poll(() => inkOf(page, 'past-dots')).toBeGreaterThan(1000)
  // The present is not drawn, and its empty sheets cost nothing.
  expect(await inkOf(page, 'dots')).toBe(0)
  expect(await page.locator('.leaflet-dots-pane, .leaflet-ground-pane').evaluateAll(areHidden)).toEqual([true, true])
  await panel.getByText('Loading the rest…').waitFor({ state: 'detached' })
  // The button has the focus since the panel opened.
  await page.keyboard.press('Space')
  await panel.getByRole('button', { name: 'Play', exact: true }).waitFor()
  const stopped = await momentOf(page)
  const { searchParams } = new URL(page.url())
  expect(Number(searchParams.get('at'))).toBe(stopped)
  await page.keyboard.press('Tab')
  await page.keyboard.press('PageUp')
  await expect.poll(() => momentOf(page)).toBeGreaterThan(stopped + HOUR)
  await page.keyboard.press('End')
  const list = panel.getByRole('list', { name: 'What happened' })
  await expect.poll(() => list.textContent()).toContain('text 199')
  await page.keyboard.press('Home')
  await expect.poll(() => list.textContent()).not.toContain('text 199')
  expect(await desk.violations()).toEqual([])
})

test('a link shows the same moment to somebody else, on a phone and without motion', async () => {
  const { page } = desk
  const at = now - 6 * HOUR
  const { searchParams } = new URL(page.url())
  searchParams.set('at', String(at))
  const storageState = await page.context().storageState()
  const phone = await site.visit({ ...PHONE, storageState, reducedMotion: 'reduce' })
  await phone.goto(`/map?${searchParams}`)
  const panel = panelOf(phone.page)
  await panel.getByText('Loading the rest…').waitFor({ state: 'detached' })
  await expect.poll(() => momentOf(phone.page)).toBe(at)
  await expect
    .poll(() => panel.getByRole('list', { name: 'What happened' }).textContent())
    .toContain('Node 1 has fallen silent')
  expect(await overflowOf(phone.page)).toBe(0)
  expect(await phone.violations()).toEqual([])
  // Without motion, it goes on in steps of a second.
  await panel.getByLabel('Speed').selectOption('600 ×')
  await panel.getByRole('button', { name: 'Play', exact: true }).tap()
  await expect.poll(async () => (await momentOf(phone.page)) - at).toBe(600_000)
  await panel.getByRole('button', { name: 'Pause' }).tap()
  await panel.getByLabel('Time', { exact: true }).selectOption('Last hour')
  await panel.getByRole('button', { name: 'Pause' }).waitFor()
  await panel.getByRole('button', { name: 'Close' }).tap()
  await expect.poll(() => inkOf(phone.page, 'dots')).toBeGreaterThan(0)
  expect(await inkOf(phone.page, 'past-dots')).toBe(0)
  expect(await phone.page.locator('.leaflet-dots-pane, .leaflet-ground-pane').evaluateAll(areHidden)).toEqual([
    false,
    false,
  ])
  expect(Object.fromEntries(new URL(phone.page.url()).searchParams)).toEqual({ range: '1h' })
  expect([...desk.complaints, ...phone.complaints]).toEqual([])
  await phone.page.context().close()
})

test.runIf(MEASURED > 0)('what it costs', { timeout: 120_000 }, async () => {
  const storageState = await desk.page.context().storageState()
  // Without motion there is one picture a second.
  const { page, goto } = await site.visit({ storageState, reducedMotion: 'no-preference' })
  await goto('/map')
  await page.getByRole('button', { name: 'Playback' }).waitFor()
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  const metrics = async () => {
    const { metrics: all } = await session.send('Performance.getMetrics')
    return new Map(all.map(({ name, value }) => [name, value]))
  }
  await session.send('HeapProfiler.collectGarbage')
  const heap = (await metrics()).get('JSHeapUsedSize') ?? 0
  const started = await page.evaluate(`(() => new Promise((done) => {
    const begun = performance.now()
    const { drawImage } = CanvasRenderingContext2D.prototype
    globalThis.pictures = 0
    CanvasRenderingContext2D.prototype.drawImage = function (...given) {
      // A node. The ground is copied once for each picture.
      if (given[0] instanceof ImageBitmap) done(performance.now() - begun)
      if (given[0] instanceof HTMLCanvasElement && this.canvas.closest('.leaflet-past-dots-pane')) globalThis.pictures++
      return drawImage.apply(this, given)
    }
    ;[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Playback').click()
  }))()`)
  await panelOf(page).getByText('Loading the rest…').waitFor({ state: 'detached', timeout: 60_000 })
  const pictures = async () => Number(await page.evaluate('globalThis.pictures'))
  const [before, first] = [await metrics(), await pictures()]
  await expect.poll(pictures, { timeout: 60_000, interval: 1000 }).toBeGreaterThan(first + 50)
  const after = await metrics()
  const count = (await pictures()) - first
  await session.send('HeapProfiler.collectGarbage')
  const used = ((await metrics()).get('JSHeapUsedSize') ?? 0) - heap
  const spent = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
  const each = (name: string) => ((1000 * spent(name)) / count).toFixed(1)
  const [rate, share] = [count / spent('Timestamp'), (1000 * spent('ThreadTime')) / spent('Timestamp')]
  console.log(
    `${MEASURED} nodes from ${FIRST}: started after ${Math.round(Number(started))} ms; ${rate.toFixed(1)} pictures a second, ` +
      `each ${each('ThreadTime')} ms of processor time of the page's thread (${each('ScriptDuration')} ms in scripts); ` +
      `${Math.round(share)} ms a second, ${(share / 30).toFixed(1)} a frame of thirty; ${(used / 1e6).toFixed(0)} MB more`,
  )
  expect(count).toBeGreaterThan(0)
})

test.runIf(MEASURED > 0)('what moving the graph of who hears whom costs', { timeout: 120_000 }, async () => {
  const storageState = await desk.page.context().storageState()
  const { page, goto } = await site.visit({ storageState, reducedMotion: 'no-preference' })
  const edges = Array.from({ length: 2 * MEASURED }, (_, i) => ({
    from: FIRST + (i % MEASURED),
    to: FIRST + (i < MEASURED ? Math.floor(0.7 * i) : (i + 1 + ((i * 7919) % 40)) % MEASURED),
    snr: (i % 30) - 20,
    at: now - (i % 5) * 12 * HOUR,
    by: ['heard'],
  })).filter(({ from, to }) => from !== to)
  await page.route('**/api/topology?*', (route) =>
    route.fulfill({ json: { edges, receivers: [FIRST], isWhole: true } }),
  )
  await goto('/topology')
  await page.locator('.topology-note').waitFor({ state: 'attached' })
  await page.locator('.topology-note').waitFor({ state: 'detached' })
  const box = await page.locator('.topology-box').boundingBox()
  const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2]
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  const threadSeconds = async () =>
    (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'ThreadTime')?.value ?? 0
  const costOf = async (move: (step: number) => Promise<void>) => {
    const before = await threadSeconds()
    for (let step = 0; step < 150; step++) {
      await move(step)
      // One move in each frame.
      await page.evaluate('new Promise(requestAnimationFrame)')
    }
    return `${((1000 * ((await threadSeconds()) - before)) / 150).toFixed(1)} ms`
  }
  await page.mouse.move(x, y)
  const wheel = await costOf((step) => page.mouse.wheel(0, step % 50 < 25 ? -30 : 30))
  await page.mouse.down()
  const drag = await costOf((step) => page.mouse.move(x + 150 * Math.sin(step / 12), y + 100 * Math.sin(step / 9)))
  await page.mouse.up()
  console.log(
    `${MEASURED} nodes, ${edges.length} links: of the page's thread a move takes ${drag} dragged, ${wheel} zoomed`,
  )
  expect(edges.length).toBeGreaterThan(MEASURED)
})
