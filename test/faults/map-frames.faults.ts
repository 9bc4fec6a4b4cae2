import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { neighbors, nodes } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../support/signed-in.ts'
import { openSite, type Site } from '../support/web/site.ts'
import { figure } from './figures.ts'

const FIRST = 0x10000000
const NODES = 2000
const LINKS = 4000
const ROUNDS = 3
const STEPS = 40

let site: Site
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  const store = openDatabase(join(site.data, 'mesh.db'))
  const now = Date.now()
  const many = Array.from({ length: NODES }, (_, index) => ({
    nodeNum: FIRST + index,
    longName: `Crowd ${index}`,
    shortName: `C${index}`,
    firstHeard: now,
    lastHeard: now - index * 60_000,
    latitude: 48 + ((index * 7919) % 1000) / 500,
    longitude: 9 + ((index * 104_729) % 997) / 400,
    precisionBits: index % 3 === 0 ? 14 : 32,
  }))
  const links = Array.from({ length: LINKS }, (_, index) => ({
    nodeNum: FIRST + (index % NODES),
    neighborNum: FIRST + ((index * 31 + 1 + Math.floor(index / NODES)) % NODES),
    snr: (index % 120) / 4 - 20,
    t: now,
  }))
  for (let at = 0; at < NODES; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  for (let at = 0; at < LINKS; at += 500) {
    await store.db
      .insert(neighbors)
      .values(links.slice(at, at + 500))
      .onConflictDoNothing()
  }
  store.close()
}, 300_000)
afterAll(() => site.close())

test('a map of two thousand nodes pans and zooms with all lines, grouped and one by one', async () => {
  const { page, complaints } = await openSignedIn(site, '/map')
  await page.getByText(`${NODES.toLocaleString('en-GB')} nodes on the map`).waitFor()
  const box = await page.locator('.map').boundingBox()
  if (box === null) throw new Error('the map has no box')
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  const rest = () => page.waitForTimeout(1000)
  const pan = async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await page.mouse.move(x, y)
      await page.mouse.down()
      for (let step = 1; step <= STEPS; step++) await page.mouse.move(x + step * 4, y + step * 2)
      await page.mouse.up()
    }
  }
  const zoom = async () => {
    for (const delta of [-240, -240, 240, 240]) {
      await page.mouse.move(x, y)
      await page.mouse.wheel(0, delta)
      await rest()
    }
  }
  const set = async (layer: string, isOn: boolean) => {
    await page.getByRole('button', { name: 'Layers' }).click()
    await page.getByRole('checkbox', { name: layer, exact: true }).setChecked(isOn)
    await page.keyboard.press('Escape')
    await rest()
  }
  const all = async (what: string) => {
    figure(`${what}, at rest`, await framesOf(page, rest))
    figure(`${what}, panned`, await framesOf(page, pan))
    figure(`${what}, zoomed`, await framesOf(page, zoom))
  }
  await all('grouped')
  await set('Neighbours', true)
  await all('grouped with lines')
  await set('Group close nodes', false)
  await all('one by one with lines')
  expect(complaints).toEqual([])
})

/** Times between the frames while `act` runs, as this machine shows them. */
async function framesOf(page: Page, act: () => Promise<void>): Promise<string> {
  await page.evaluate(`(() => {
    const times = (window.frameTimes = [])
    const step = (time) => {
      times.push(time)
      if (times === window.frameTimes) requestAnimationFrame(step)
    }
    requestAnimationFrame(step)
  })()`)
  await act()
  const times = z
    .array(z.number())
    .parse(await page.evaluate('(() => { const found = window.frameTimes; window.frameTimes = null; return found })()'))
  const gaps = times
    .slice(1)
    .map((time, index) => time - (times[index] ?? time))
    .toSorted((a, b) => a - b)
  const at = (part: number) => (gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))] ?? 0).toFixed(1)
  return `${gaps.length} frames, median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(1)} ms`
}
