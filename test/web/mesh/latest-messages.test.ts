import { afterAll, beforeAll, expect, test } from 'vitest'
import { messages } from '../../../src/db/schema.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { openSite, type Site } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const [OWN, TOWER] = [0xa0cb0001, 0xa0cb0203]

let site: Site
beforeAll(async () => {
  const said = (packetId: number, toNodeNum: number, text: string) => {
    const timestamp = Date.now() - 1000 * (10 - packetId)
    return { packetId, fromNodeNum: TOWER, toNodeNum, channel: 0, text, timestamp, direction: 'in' as const }
  }
  site = await openSite({ ADMIN_PASSWORD }, ({ db }) =>
    db.insert(messages).values([said(1, BROADCAST, 'To everybody'), said(2, OWN, 'Only for you')]),
  )
})
afterAll(() => site.close())

test('each of the latest texts says to whom it went, and never flashes an id while names are loading', async () => {
  const visitor = await site.visit({ serviceWorkers: 'block' })
  const { page } = visitor
  await visitor.goto('/nodes')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await page.getByText('Water Tower North').waitFor()
  const gate = Promise.withResolvers<void>()
  await page.route(/\/api\/nodes(?:\?|$)/, async (route) => {
    await gate.promise
    await route.continue().catch(() => {})
  })
  // What the browser keeps for a time without a connection would have the names at once.
  await page.evaluate('indexedDB.databases().then((all) => all.forEach(({ name }) => indexedDB.deleteDatabase(name)))')
  await visitor.goto('/')
  const row = (text: string) => page.getByRole('listitem').filter({ hasText: text })
  await row('Only for you').waitFor()
  const shown = async () =>
    String(await row('Only for you').textContent()) + String(await row('To everybody').textContent())
  expect(await shown()).not.toMatch(/![0-9a-f]{8}/)
  gate.resolve()
  await row('To everybody').getByText('Water Tower North').waitFor()
  await row('Only for you').getByRole('link', { name: 'direct to Town Hall Gateway' }).waitFor()
  await row('To everybody').getByRole('link', { name: /^on / }).click()
  await page.getByRole('heading', { name: 'Messages', level: 1 }).or(page.locator('.chat')).first().waitFor()
  expect(new URL(page.url()).search).toBe('?channel=0')
})
