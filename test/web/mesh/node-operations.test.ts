import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { formatNodeId } from '../../../src/meshtastic/node-id.ts'
import { demoNode } from '../../support/mesh/topology.ts'
import { closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openDemoMap } from '../../support/web/demo-map.ts'
import { overflowOf, type Site } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

/** Castle Hill Relay, in direct range. */
const CASTLE = formatNodeId(demoNode(1))

let site: Site
beforeAll(async () => {
  site = await openDemoMap()
})
afterEach(closeVisits)
afterAll(() => site.close())

test('a node is asked for its position, and the page shows that it answered', async () => {
  const { page, complaints, violations } = await openSignedIn(site, `/nodes/${CASTLE}`, PHONE)
  await page.getByRole('button', { name: 'Ask', exact: true }).click()
  await page.getByText('answered', { exact: true }).waitFor()
  expect([await violations(), await overflowOf(page), complaints]).toEqual([[], 0, []])
})

test('a favourite is one on the radio, which the page does not mention', async () => {
  const { page, goto } = await openSignedIn(site, `/nodes/${CASTLE}`)
  const favourite = page.getByRole('button', { name: 'Favourite' })
  await favourite.click()
  await expect.poll(() => favourite.getAttribute('aria-pressed')).toBe('true')
  const onRadio = async () => {
    const { radios } = await (await page.request.get(new URL(`/api/nodes/${CASTLE}/radios`, page.url()).href)).json()
    return radios
  }
  await expect.poll(onRadio, { timeout: 20_000 }).toMatchObject([{ isFavorite: true, problem: null }])
  await goto(`/nodes/${CASTLE}`)
  await page.getByRole('heading', { name: 'State' }).waitFor()
  expect(await page.getByText('Not the same on every radio').count()).toBe(0)
})

test('all in direct range answer, and the list shows both signals of each', async () => {
  const { page, violations } = await openSignedIn(site, '/traceroutes', PHONE)
  await page.getByRole('button', { name: 'New traceroute' }).click()
  await page.getByRole('button', { name: 'Ask all in range' }).click()
  // Newer rows wait until the list may move.
  await page.getByRole('button', { name: /newer$/ }).click()
  await page.getByRole('button', { name: /everybody in direct range/ }).click()
  const row = page.getByRole('row').filter({ hasText: 'Castle Hill Relay' })
  await row.waitFor()
  expect(await row.getByText(/dB$/).count()).toBe(2)
  expect([await violations(), await overflowOf(page)]).toEqual([[], 0])
})

test('a waypoint is shared in the middle of the map, changed and deleted', async () => {
  const { page, complaints, violations } = await openSignedIn(site, '/map?center=49.8917,10.8871&zoom=12')
  const part = page.locator('summary', { hasText: 'waypoint' })
  await page.getByRole('button', { name: 'New waypoint' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Camp')
  expect(Number(await dialog.getByLabel('Latitude').inputValue())).toBeCloseTo(49.8917, 2)
  expect(await violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Share' }).click()
  await dialog.waitFor({ state: 'detached' })
  // At the place that the other button of the mouse presses.
  const map = page.getByRole('region', { name: 'Map of the nodes' })
  const here = page.getByRole('button', { name: 'Waypoint here' })
  await map.click({ button: 'right', position: { x: 300, y: 80 } })
  await here.waitFor()
  expect(await violations()).toEqual([])
  await page.keyboard.press('Escape')
  await here.waitFor({ state: 'detached' })
  await map.click({ button: 'right', position: { x: 300, y: 80 } })
  await here.click()
  expect(Number(await dialog.getByLabel('Latitude').inputValue())).toBeGreaterThan(49.9)
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await expect.poll(() => here.count()).toBe(0)
  await part.click()
  const shown = page.getByRole('button', { name: 'Camp', exact: true })
  await shown.waitFor()
  await page.getByRole('button', { name: 'Change Camp' }).click()
  await dialog.getByLabel('Name').fill('Base camp')
  await dialog.getByRole('button', { name: 'Share' }).click()
  await page.getByRole('button', { name: 'Delete Base camp' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Base camp', exact: true }).waitFor({ state: 'detached' })
  expect([await violations(), complaints]).toEqual([[], []])
}, 120_000)
