import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { neighbors, nodes, packets, traceroutes } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { demoNode } from '../../support/mesh/topology.ts'
import { closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openDemoMap } from '../../support/web/demo-map.ts'
import { overflowOf, type Site } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const DAY = 86_400_000
/** A node of which the demo knows nothing, so that it sends nothing in its name. */
const PACKETS_OF = 0xa0cb9999

afterEach(closeVisits)

let site: Site
beforeAll(async () => {
  site = await openDemoMap()
  const store = openDatabase(join(site.data, 'mesh.db'))
  const [boat, farm, lake] = [12, 15, 18].map(demoNode)
  await store.db.insert(neighbors).values([
    { nodeNum: boat ?? 0, neighborNum: lake ?? 0, snr: -19.5, t: Date.now() - 3 * DAY },
    { nodeNum: lake ?? 0, neighborNum: farm ?? 0, snr: -12, t: Date.now() - 60_000 },
    // Older than the limit, although it is weaker.
    { nodeNum: farm ?? 0, neighborNum: lake ?? 0, snr: -15, t: Date.now() - 3 * DAY },
  ])
  const [hall, hut, castle, tower, ridge] = [0, 17, 1, 2, 10].map(demoNode)
  const trace = (requestId: number, from: number | undefined, to: number | undefined, route: object | null) => ({
    fromNodeNum: from ?? 0,
    toNodeNum: to ?? 0,
    requestId,
    timestamp: Date.now() - (9000 - requestId) * 60_000,
    answeredAt: route === null ? null : Date.now() - (9000 - requestId) * 60_000,
    state: route === null ? ('unknown' as const) : ('delivered' as const),
    route: route === null ? null : JSON.stringify(route),
    requestedBy: from === hall ? 'admin' : null,
  })
  const back = { routeBack: [], snrBack: [-3] }
  await store.db.insert(traceroutes).values([
    // Before: by Castle Hill Relay and South Ridge Solar, and back by South Ridge Solar and Water Tower North.
    trace(8994, hall, hut, {
      route: [castle, tower],
      snrTowards: [1, 2, 3],
      routeBack: [ridge, tower],
      snrBack: [-1, -2, -3],
    }),
    trace(8995, hall, hut, null),
    ...[1, 2, 3].map((n) => trace(8995 + n, castle, hut, { route: [], snrTowards: [-5], ...back })),
  ])
  const logged = (packetId: number, port: number, payload: object) => ({
    sourceId: 1,
    t: Date.now(),
    packetId,
    fromNodeNum: PACKETS_OF,
    toNodeNum: 0xffffffff,
    channel: 0,
    port,
    hopsAway: 3,
    hopLimit: 0,
    viaMqtt: true,
    pkiEncrypted: false,
    replayed: false,
    payload: JSON.stringify(payload),
  })
  const time = 1_768_478_400_000
  const fix = { latitude: 49.5, longitude: 10.25, altitude: 210, precisionBits: 32, time, satsInView: null }
  const named = { longName: 'Quiet Corner', shortName: 'QUIE', publicKey: null, isUnmessagable: null }
  const way = { route: [castle, null], snrTowards: [4, null], routeBack: [], snrBack: [] }
  const at = { firstHeard: Date.now() - DAY, lastHeard: Date.now() }
  await store.db.insert(nodes).values({ nodeNum: PACKETS_OF, longName: 'Quiet Corner', ...at })
  await store.db.insert(packets).values([
    logged(9001, 3, { kind: 'position', fix }),
    logged(9002, 4, {
      kind: 'nodeinfo',
      user: { ...named, hwModel: 'HELTEC_V3', role: 'CLIENT_MUTE', isLicensed: false },
    }),
    logged(9003, 67, {
      kind: 'telemetry',
      variant: 'deviceMetrics',
      time,
      metrics: { 'deviceMetrics.batteryLevel': 90, 'deviceMetrics.voltage': 3.9000000953674316 },
    }),
    logged(9004, 5, { kind: 'routing', error: 'NONE', errorCode: 0 }),
    logged(9005, 70, { kind: 'traceroute', isReply: true, route: way }),
  ])
  store.close()
})
afterAll(() => site.close())

describe('neighbours', () => {
  test('one row for both directions, the weakest first, with their difference', async () => {
    const { page, complaints, violations } = await openSignedIn(site, '/neighbors')
    const rows = page.locator('tbody tr:not(.gap)')
    const first = rows.first()
    await first.getByText('Water Tower North').waitFor()
    await expect
      .poll(() => first.locator('th, td').allInnerTexts())
      .toEqual([
        'Water Tower North',
        'Windmill Park',
        expect.stringMatching(/^−18 dB\s+\d+ min$/),
        expect.stringMatching(/^–\s+not reported$/),
        expect.stringMatching(/^–\s+not reported$/),
        expect.stringMatching(/min$/),
      ])
    const both = rows.filter({ hasText: 'Water Tower North' }).filter({ hasText: 'Town Hall Gateway' })
    await expect.poll(() => both.count()).toBe(1)
    expect((await both.locator('td').allInnerTexts()).slice(0, 4).join('|')).toMatch(
      /^Town Hall Gateway\|−4.75 dB\s+\d+ min\|3 dB\s+\d+ min\|7.75 dB$/,
    )
    const signals = async () =>
      (await rows.locator('td:nth-child(3) > .direction .hop').allTextContents()).map((text) =>
        Number.parseFloat(text.replace('−', '-')),
      )
    const found = await signals()
    expect(found).toEqual(found.toSorted((a, b) => a - b))
    await page.getByRole('button', { name: 'Difference' }).click()
    await expect.poll(() => page.url()).toContain('sort=difference&order=down')
    await expect.poll(() => first.locator('td').nth(3).innerText()).toMatch(/^\d.* dB$/)
    expect(await violations()).toEqual([])
    expect(complaints).toEqual([])
  })

  test('an age limit that stays in the address; an old direction beside a recent one is no difference', async () => {
    const { page } = await openSignedIn(site, '/neighbors?q=lake')
    const rows = page.locator('tbody tr:not(.gap)')
    const lakeAndFarm = rows.filter({ hasText: 'Farm Lindenhof' })
    await lakeAndFarm.waitFor()
    await expect.poll(() => rows.count()).toBe(2)
    expect((await lakeAndFarm.locator('td').allInnerTexts()).slice(1, 4).join('|')).toMatch(
      /^−12 dB\s+\d+ min\|−15 dB\s+3 d\|–/,
    )
    await page.getByLabel('Reported').selectOption('Last 7 days')
    await expect.poll(() => rows.count()).toBe(3)
    expect(new URL(page.url()).searchParams.get('range')).toBe('7d')
    await page.reload()
    await expect.poll(() => rows.count()).toBe(3)
    // With the weaker direction first again.
    await expect.poll(() => rows.nth(1).locator('td').nth(3).innerText()).toBe('3 dB')
  })

  test('the file and the map show what the filter shows', async () => {
    const { page, complaints } = await openSignedIn(site, '/neighbors?q=quarry&age=168')
    const rows = page.locator('tbody tr:not(.gap)')
    await expect.poll(() => rows.count()).toBe(3)
    const waiting = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export CSV' }).click()
    const lines = readFileSync(await (await waiting).path(), 'utf8')
      .trim()
      .split('\r\n')
    expect(lines[0]).toBe(
      'Node,Node ID,Hears,Node ID,Signal (dB),Last report,Other direction (dB),Last report,Difference (dB)',
    )
    expect(lines).toHaveLength(4)
    expect(lines.filter((line) => !line.includes('Quarry Lake')).slice(1)).toEqual([])
    await page.getByRole('link', { name: 'Show on the map' }).click()
    await page.getByText(/^4 of 25 nodes on the map$/).waitFor()
    const names = await page.locator('.map-panel tbody .link-button').allTextContents()
    expect(names.toSorted()).toEqual(expect.arrayContaining(['Farm Lindenhof', 'Quarry Lake', 'Water Tower North']))
    // Without the search, the map has all nodes again.
    await page.getByLabel('Search nodes').fill('')
    await page.getByText(/^25 nodes on the map$/).waitFor()
    await page.getByRole('button', { name: 'Layers' }).click()
    const range = page.getByLabel('Lines heard')
    expect(await range.inputValue()).toBe('7d')
    await range.selectOption('Last 24 hours')
    await expect.poll(() => new URL(page.url()).searchParams.has('range')).toBe(false)
    expect(complaints).toEqual([])
  })

  test('on a phone both directions are in one row of two lines', async () => {
    const { page, violations } = await openSignedIn(site, '/neighbors', PHONE)
    const row = page.locator('tbody tr', { hasText: 'Water Tower North' }).filter({ hasText: 'Town Hall Gateway' })
    await expect
      .poll(() => row.innerText())
      .toMatch(/^Water Tower North\s+Town Hall Gateway\s+−4.75 dB\s+\d+ min\s+3 dB\s+\d+ min\s+7.75 dB$/)
    const cut = await page
      .locator('tbody .direction')
      .evaluateAll(
        (all) =>
          all.filter(
            (each) =>
              each.getClientRects().length > 0 &&
              each.getBoundingClientRect().right > (each.closest('td')?.getBoundingClientRect().right ?? 0),
          ).length,
      )
    expect(cut).toBe(0)
    expect(await overflowOf(page)).toBe(0)
    expect(await violations()).toEqual([])
  })
})

describe('traceroutes', () => {
  const rowsOf = (page: Page) => page.getByRole('list', { name: 'Traceroutes, newest first' }).locator('.trace')
  const inSight = async (page: Page) =>
    Number(
      await page.evaluate(
        "[...document.querySelectorAll('.trace')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight - 56).length",
      ),
    )

  test('own and overheard ones, with and without a reply, are told apart', async () => {
    const { page, violations } = await openSignedIn(site, '/traceroutes')
    const rows = rowsOf(page)
    await expect.poll(() => rows.count()).toBe(11)
    expect(await page.locator('.origin.own').count()).toBe(7)
    expect(await inSight(page)).toBeGreaterThanOrEqual(6)
    await page.getByLabel('Requested by').selectOption('others (overheard)')
    await expect.poll(() => rows.count()).toBe(4)
    await expect
      .poll(() => page.locator('.origin').allTextContents())
      .toEqual(Array.from({ length: 4 }, () => 'overheard'))
    await page.getByLabel('Requested by').selectOption('this service')
    await page.getByLabel('Reply').selectOption('without a reply')
    await expect.poll(() => rows.count()).toBe(4)
    await page.getByText('The mesh found no route to the node. (No response)').waitFor()
    await page.reload()
    await expect.poll(() => rows.count()).toBe(4)
    expect(await violations()).toEqual([])
  })

  test('a route that is another one than before says what has changed, and its pair has a history', async () => {
    const { page, complaints, violations } = await openSignedIn(site, '/traceroutes')
    const changed = rowsOf(page).filter({ hasText: 'Changed since' })
    await expect.poll(() => changed.count()).toBe(1)
    await expect
      .poll(() => changed.innerText())
      .toMatch(/Changed since .+: now by Water Tower North instead of South Ridge Solar$/)
    await changed.locator('.expander').click()
    await expect
      .poll(() => changed.locator('.way').allTextContents())
      .toEqual([
        expect.stringMatching(/^TowardsHALL1 dB →CSTL2 dB →.+3 dB →/),
        expect.stringMatching(/^Back.+−1 dB →.+−2 dB →.+−3 dB →HALL$/),
      ])
    await changed.getByRole('button', { name: 'History of this pair' }).click()
    await page.getByText('Only between Town Hall Gateway and Forest Hut').waitFor()
    await expect.poll(() => rowsOf(page).count()).toBe(3)
    expect(await rowsOf(page).locator('.trace-state').allTextContents()).toEqual(['no reply', 'replied', 'replied'])
    await page.getByText('Only between Town Hall Gateway and Forest Hut').click()
    await expect.poll(() => rowsOf(page).count()).toBe(11)
    expect(await violations()).toEqual([])
    expect(complaints).toEqual([])
  })

  test('on a phone at least four are in sight', async () => {
    const { page, violations } = await openSignedIn(site, '/traceroutes', PHONE)
    await expect.poll(() => rowsOf(page).count()).toBe(11)
    expect(await inSight(page)).toBeGreaterThanOrEqual(4)
    expect(await overflowOf(page)).toBe(0)
    expect(await violations()).toEqual([])
  })
})

describe('packets', () => {
  test('one line in words for each packet, and on opening everything by its name', async () => {
    const { page, complaints, violations } = await openSignedIn(site, '/packets?from=!a0cb9999')
    const rows = page.locator('tbody tr')
    const rowOf = (words: RegExp) => rows.filter({ hasText: words }).first()
    await expect.poll(() => rows.count()).toBe(5)
    await expect
      .poll(() =>
        rowOf(/Position/)
          .locator('td')
          .allInnerTexts(),
      )
      .toEqual([expect.any(String), 'Quiet Corner: Position', 'everyone', '3 hops away · MQTT'])
    await expect
      .poll(() =>
        rowOf(/Telemetry/)
          .locator('td')
          .nth(1)
          .innerText(),
      )
      .toBe('Quiet Corner: Telemetry, device')
    await expect
      .poll(() =>
        rowOf(/Routing/)
          .locator('td')
          .nth(1)
          .innerText(),
      )
      .toBe('Quiet Corner: Routing, acknowledged')
    for (const expander of await page.locator('tbody .expander').all()) await expander.click()
    const facts = async () => (await page.locator('.packet-detail').allInnerTexts()).join('\n')
    for (const last of ['Battery level', 'Castle Hill Relay, an unknown node', 'HELTEC V3']) {
      await expect.poll(facts).toContain(last)
    }
    const words = await facts()
    expect(words.replaceAll(/ dBm?/g, '')).not.toMatch(
      /4294967295|ffffffff|\d{13}|[a-z][A-Z]|_APP|CLIENT_MUTE|[{}[\]"]/,
    )
    expect(words).toContain('49.5°')
    expect(words).toMatch(/Measured\s+15 Jan 2026/)
    expect(words).toMatch(/Battery level\s+90 %\s+Voltage\s+3.9 V\s/)
    expect(words).toMatch(/Hardware\s+HELTEC V3/)
    expect(words).toMatch(/Role\s+Client mute/)
    expect(words).toMatch(/To\s+everyone/)
    expect(await violations()).toEqual([])
    expect(complaints).toEqual([])
  })

  test('on a phone a packet is in one cell, with how it arrived', async () => {
    const { page, violations } = await openSignedIn(site, '/packets?from=!a0cb9999', PHONE)
    const position = page.locator('tbody tr', { hasText: 'Position' }).first()
    await expect
      .poll(() => position.locator('.packet-line').innerText())
      .toMatch(/^Quiet Corner: Position\s+everyone · 3 hops away · MQTT$/)
    expect(await overflowOf(page)).toBe(0)
    expect(await violations()).toEqual([])
  })
})
