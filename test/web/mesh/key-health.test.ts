import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../../src/db/schema.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const HILL = 0x40000001
const base64 = (byte: number) => Buffer.alloc(32, byte).toString('base64')

let site: Site
let admin: Visitor
beforeAll(async () => {
  const now = Date.now()
  const node = (nodeNum: number, longName: string, byte: number, more: object = {}) => ({
    nodeNum,
    longName,
    publicKey: base64(byte),
    firstHeard: now - 3_600_000,
    lastHeard: now,
    ...more,
  })
  site = await openSite({ ADMIN_PASSWORD }, ({ db }) =>
    db
      .insert(nodes)
      .values([
        node(HILL, 'Hill', 1),
        node(HILL + 1, 'Copy of Hill', 1),
        node(HILL + 2, 'Contradicted', 2, { keyMismatch: true, refusedPublicKey: base64(3) }),
        node(HILL + 3, 'Sound', 4),
        node(HILL + 4, 'Hill before', 1, { firstHeard: now - 9_000_000, lastHeard: now - 8_000_000 }),
      ]),
  )
  admin = await site.visit()
  await admin.goto('/')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
})
afterAll(() => site.close())

const looksWell = async () => expect([await admin.violations(), await overflowOf(admin.page)]).toEqual([[], 0])

test('nodes with a doubtful key are listed, with what is wrong and what to do', async () => {
  const { page, goto } = admin
  await goto('/nodes?keys=any')
  const shown = () => page.getByRole('status').filter({ hasText: / of \d+ nodes/ })
  await expect.poll(() => shown().textContent()).toMatch(/^3 of /)
  await page.getByText('Do not send them anything confidential before that is settled.').waitFor()
  await page.getByLabel('Public key', { exact: true }).selectOption('of several nodes')
  await expect.poll(() => shown().textContent()).toMatch(/^2 of /)
  await page.getByText('Their owners should each create a new key, and not restore').waitFor()
  const groups = page.getByRole('region', { name: 'Who shares a key' }).getByRole('listitem')
  // A silent one is no longer a danger to direct messages, but it has the key.
  await expect
    .poll(() => groups.allInnerTexts())
    .toEqual(['Hill, Copy of Hill Nodes with this key, silent ones included: 3'])
  await looksWell()
  await page.getByLabel('Public key', { exact: true }).selectOption('changed')
  await expect.poll(() => shown().textContent()).toMatch(/^1 of /)
  await page.getByLabel('Public key', { exact: true }).selectOption('weak')
  await page.getByText('No node matches.').waitFor()
})

test('the page of a node names the others with its key', async () => {
  const { page, goto } = admin
  await goto(`/nodes/!${HILL.toString(16)}`)
  const warning = page.locator('.notice-bad', { hasText: 'Key of several nodes' })
  await warning.getByRole('link', { name: 'Copy of Hill' }).waitFor()
  await warning.getByText('Nodes with this key, silent ones included: 3').waitFor()
  await looksWell()
  await goto(`/nodes/!${(HILL + 3).toString(16)}`)
  await page.getByRole('heading', { name: 'Sound', level: 1 }).waitFor()
  expect(await page.locator('.notice-bad').count()).toBe(0)
})

test('a weak key of an own radio needs somebody', async () => {
  const { page, goto } = admin
  // Weak keys are known by their hashes only, so no test can have one.
  await page.route('**/api/nodes/!*', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), weakKey: true } })
  })
  await goto('/')
  const need = page.getByRole('list', { name: 'What needs you' }).getByRole('listitem').filter({ hasText: 'is weak' })
  await need.getByText(/^The key of .+ is weak: others have it too\.$/).waitFor()
  await need.getByRole('link', { name: /^Open its security settings/ }).waitFor()
  await looksWell()
  await page.unroute('**/api/nodes/!*')
})
