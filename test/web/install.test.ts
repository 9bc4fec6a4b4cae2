import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let site: Site
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
})
afterAll(() => site.close())

/** What a browser on Android or at a desk says; `asked` counts how often it asks the user. */
const OFFER = `{
  const event = new Event('beforeinstallprompt', { cancelable: true })
  window.asked = 0
  event.prompt = async () => { window.asked++; return { outcome: 'accepted' } }
  dispatchEvent(event)
}`

/** Another visit in the same browser. */
async function visitAgain({ page }: Visitor) {
  const next = await page.context().newPage()
  await next.goto(site.base)
  await next.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await next.locator('.progress p').waitFor({ state: 'detached' })
  return next
}

const HINT = { name: 'Install this as an app' }

async function firstVisit(options: Parameters<Site['visit']>[0] = {}): Promise<Visitor> {
  const visitor = await site.visit(options)
  await visitor.goto('/')
  await visitor.page.evaluate(OFFER)
  expect(await visitor.page.getByRole('region', HINT).count()).toBe(0)
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await visitor.page.locator('.progress p').waitFor({ state: 'detached' })
  expect(await visitor.page.getByRole('region', HINT).count()).toBe(0)
  return visitor
}

test('from the second visit on, a hint offers to install, until it is declined', async () => {
  const visitor = await firstVisit()
  const second = await visitAgain(visitor)
  expect(await second.getByRole('region', HINT).count()).toBe(0)
  await second.evaluate(OFFER)
  await second.getByRole('region', HINT).waitFor()
  // Only where people begin.
  await second.getByRole('link', { name: 'Nodes', exact: true }).click()
  await second.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
  expect(await second.getByRole('region', HINT).count()).toBe(0)
  await second.getByRole('link', { name: 'Dashboard', exact: true }).click()
  await second.getByRole('button', { name: 'No, thanks' }).click()
  await second.getByRole('region', HINT).waitFor({ state: 'detached' })
  expect(await second.evaluate('asked')).toBe(0)
  const third = await visitAgain(visitor)
  await third.evaluate(OFFER)
  await third.getByRole('link', { name: 'Alerts', exact: true }).click()
  await third.getByRole('heading', { name: 'Alerts', level: 1 }).waitFor()
  expect(await third.getByRole('region', HINT).count()).toBe(0)
  await visitor.page.context().close()
})

test('who accepts is asked by the browser once', async () => {
  const visitor = await firstVisit()
  const second = await visitAgain(visitor)
  await second.evaluate(OFFER)
  await second.getByRole('region', HINT).getByRole('button', { name: 'Install', exact: true }).click()
  await expect.poll(() => second.evaluate('asked')).toBe(1)
  await second.getByRole('region', HINT).waitFor({ state: 'detached' })
  await visitor.page.context().close()
})

test('an iPhone, which offers nothing, is told in words', async () => {
  const visitor = await firstVisit({ ...PHONE, userAgent: IPHONE })
  const second = await visitAgain(visitor)
  await second.getByText('Press “Share” in your browser, then “Add to Home Screen”.').waitFor()
  expect(await overflowOf(second)).toBe(0)
  await second.getByRole('button', { name: 'Got it' }).click()
  await second.getByRole('region', HINT).waitFor({ state: 'detached' })
  expect(visitor.complaints).toEqual([])
  await visitor.page.context().close()
})
