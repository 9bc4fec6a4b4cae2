import { readdirSync, readFileSync } from 'node:fs'
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
  // Other colours are seen at once.
  const colours = () =>
    page.evaluate(`(() => {
      const canvas = document.querySelector('.leaflet-past-dots-pane canvas')
      return [...new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer))]
        .filter((pixel) => pixel >>> 24 === 255).toSorted().join(' ')
    })()`)
  const light = await colours()
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect.poll(colours).not.toBe(light)
  await page.emulateMedia({ colorScheme: 'light' })
  await expect.poll(colours).toBe(light)
  // What lies below is a finished picture meanwhile.
  await expect.poll(() => page.locator('.leaflet-world-pane canvas').evaluateAll(areHidden)).toEqual([true, false])
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
  // Nothing is kept of its canvases, and they come back.
  const canvases = phone.page.locator('.leaflet-past-dots-pane canvas, .leaflet-past-lines-pane canvas')
  const kept = await canvases.first().elementHandle()
  await panel.getByRole('button', { name: 'Close' }).tap()
  await expect.poll(() => canvases.count()).toBe(0)
  expect(await kept?.getProperty('width').then((width) => width.jsonValue())).toBe(0)
  await phone.page.getByRole('button', { name: 'Playback' }).tap()
  await expect.poll(() => inkOf(phone.page, 'past-dots')).toBeGreaterThan(0)
  await panel.getByRole('button', { name: 'Close' }).tap()
  await expect.poll(() => inkOf(phone.page, 'dots')).toBeGreaterThan(0)
  expect(await canvases.count()).toBe(0)
  expect(await phone.page.locator('.leaflet-dots-pane, .leaflet-ground-pane').evaluateAll(areHidden)).toEqual([
    false,
    false,
  ])
  expect(await phone.page.locator('.leaflet-world-pane canvas').evaluateAll(areHidden)).toEqual([false])
  expect(Object.fromEntries(new URL(phone.page.url()).searchParams)).toEqual({ range: '1h' })
  expect([...desk.complaints, ...phone.complaints]).toEqual([])
  await phone.page.context().close()
})

/** Milliseconds of processor time that the threads of all pages have taken, by their names, without numbers at the end. */
async function threadTimes(page: Page): Promise<Map<string, number>> {
  const session = await page.context().browser()?.newBrowserCDPSession()
  const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {}
  const times = new Map<string, number>()
  for (const { id } of processInfo.filter(({ type }) => type === 'renderer')) {
    for (const thread of readdirSync(`/proc/${id}/task`)) {
      const [name, spent] = ['comm', 'schedstat'].map((file) =>
        readFileSync(`/proc/${id}/task/${thread}/${file}`, 'utf8'),
      )
      const key = name?.trim().replace(/[/\d]+$/, '') ?? ''
      times.set(key, (times.get(key) ?? 0) + Number(spent?.split(' ')[0]) / 1e6)
    }
  }
  return times
}

test.runIf(MEASURED > 0).each([
  ['500 nodes that drive 30 km in a day', 1],
  ['500 nodes that drive 75 km in an hour, there and back', 60],
] as const)('what %s cost', { timeout: 120_000 }, async (title, times) => {
  const storageState = await desk.page.context().storageState()
  // Without motion there is one picture a second.
  const { page, goto } = await site.visit({ storageState, reducedMotion: 'no-preference' })
  if (times > 1) {
    await page.route('**/api/playback/tracks?*', async (route) => {
      const answer: { tracks: { points: number[] }[] } = await (await route.fetch()).json()
      for (const { points } of answer.tracks) {
        for (let at = 3; at < points.length; at++) {
          const way = at % 6 < 3 ? times : -times
          if (at % 3 !== 0) points[at] = (points[at] ?? 0) * way
        }
      }
      await route.fulfill({ json: answer })
    })
  }
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
    const { putImageData } = CanvasRenderingContext2D.prototype
    globalThis.pictures = 0
    let [isStarted, frame] = [false, 0]
    CanvasRenderingContext2D.prototype.putImageData = function (...given) {
      // The first in which there is a node.
      isStarted ||= new Uint32Array(given[0].data.buffer).some(Boolean)
      if (isStarted) done(performance.now() - begun)
      // A picture is put on the canvas in several parts.
      if (frame !== document.timeline.currentTime) globalThis.pictures++
      frame = document.timeline.currentTime
      return putImageData.apply(this, given)
    }
    ;[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Playback').click()
  }))()`)
  await panelOf(page).getByText('Loading the rest…').waitFor({ state: 'detached', timeout: 60_000 })
  const pictures = async () => Number(await page.evaluate('globalThis.pictures'))
  // Until the engine has compiled what runs often.
  await expect.poll(pictures, { timeout: 60_000, interval: 1000 }).toBeGreaterThan(20)
  const [before, first, threads] = [await metrics(), await pictures(), await threadTimes(page)]
  await expect.poll(pictures, { timeout: 60_000, interval: 1000 }).toBeGreaterThan(first + 50)
  const after = await metrics()
  const count = (await pictures()) - first
  const others = [...(await threadTimes(page))].flatMap(([name, spent]) => {
    const each = (spent - (threads.get(name) ?? 0)) / count
    // Chromium calls the main thread by the beginning of its own name.
    return each < 0.05 || name.startsWith('chrom') ? [] : [`${name} ${each.toFixed(1)} ms`]
  })
  await session.send('HeapProfiler.collectGarbage')
  const used = ((await metrics()).get('JSHeapUsedSize') ?? 0) - heap
  const spent = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
  const each = (name: string) => ((1000 * spent(name)) / count).toFixed(1)
  const [rate, share] = [count / spent('Timestamp'), (1000 * spent('ThreadTime')) / spent('Timestamp')]
  console.log(
    `${MEASURED} nodes, ${title}: started after ${Math.round(Number(started))} ms; ${rate.toFixed(1)} pictures a second, ` +
      `each ${each('ThreadTime')} ms of processor time of the page's thread; others: ${others.join(', ')}; ` +
      `${Math.round(share)} ms a second; ${(used / 1e6).toFixed(0)} MB more`,
  )
  expect(count).toBeGreaterThan(0)
  await page.context().close()
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
