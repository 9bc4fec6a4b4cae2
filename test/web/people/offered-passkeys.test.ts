import { join } from 'node:path'
import { type CDPSession } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { auditLog, rateLimits } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { ADMIN_PASSWORD } from '../../support/signed-in.ts'
import { openBrowser, openSite, type Site, type SiteBrowser, type Visitor } from '../../support/web/site.ts'

let site: Site
let browser: SiteBrowser
let owner: Visitor
let devtools: CDPSession
let authenticatorId: string
let asked = 0

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  browser = await openBrowser(site.base.replace('127.0.0.1', 'localhost'))
  owner = await browser.visit()
  const { page } = owner
  // Writes down each request to the authenticator, and how it ended.
  await page.addInitScript(`{
    const get = navigator.credentials.get.bind(navigator.credentials)
    window.requests = []
    navigator.credentials.get = async (options) => {
      const entry = { kind: options.mediation ?? 'dialog', end: 'open' }
      window.requests.push(entry)
      try {
        const answer = await get(options)
        entry.end = 'taken'
        return answer
      } catch (error) {
        entry.end = options.signal.aborted ? 'withdrawn' : error.name
        throw error
      }
    }
  }`)
  page.on('request', (request) => {
    if (request.url().includes('/login/passkey/options')) asked++
  })
  devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  ;({ authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  }))
  await owner.goto('/account')
  await owner.signIn('admin', ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByLabel('Name of the passkey').fill('my laptop')
  await page.getByRole('dialog').getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByRole('button', { name: 'Remove my laptop' }).waitFor()
})
afterAll(async () => {
  await browser?.close()
  await site?.close()
})
beforeEach(async () => {
  // The page of the test before must not show its form, and ask, when it finds itself signed out.
  await owner.page.goto('about:blank')
  await owner.page.context().clearCookies()
  await userIsThere(false)
  asked = 0
})

/** Whether somebody touches the authenticator when it asks. */
async function userIsThere(enabled: boolean): Promise<void> {
  await devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
}

const requests = () => owner.page.evaluate<unknown>('requests.map(({ kind, end }) => `${kind} ${end}`)')
const isAtHome = () => owner.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()

test('a passkey taken in the name field signs in', async () => {
  await userIsThere(true)
  await owner.goto('/login')
  await isAtHome()
  expect(await requests()).toEqual(['conditional taken'])
  expect(asked).toBe(1)
})

/** The rows that sign-ins write: the audit log and the counters of limits. */
async function written(): Promise<readonly number[]> {
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const counts = [await db.$count(auditLog), await db.$count(rateLimits)]
  close()
  return counts
}

test('an offer that nobody takes leaves the form as it is, asks once and writes nothing', async () => {
  const before = await written()
  await owner.goto('/login')
  await expect.poll(requests).toEqual(['conditional open'])
  expect(asked).toBe(1)
  expect(await owner.page.getByLabel('Username').getAttribute('autocomplete')).toBe('username webauthn')
  expect(await owner.page.getByRole('alert').count()).toBe(0)
  expect(await owner.violations()).toEqual([])
  expect(await written()).toEqual(before)
})

test('a password withdraws the offer, and a wrong one brings it back', async () => {
  const { page } = owner
  await owner.goto('/login')
  await expect.poll(requests).toEqual(['conditional open'])
  await owner.signIn('admin', 'a wrong password')
  await expect.poll(() => page.getByRole('alert').count()).toBe(1)
  await expect.poll(requests).toEqual(['conditional withdrawn', 'conditional open'])
  await owner.signIn('admin', ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Use a passkey' }).waitFor()
  await expect.poll(requests).toEqual(['conditional withdrawn', 'conditional withdrawn'])
  await userIsThere(true)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await isAtHome()
})

test('the button withdraws the offer and signs in', async () => {
  const { page } = owner
  await owner.goto('/login')
  await expect.poll(requests).toEqual(['conditional open'])
  await userIsThere(true)
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await isAtHome()
  expect(await requests()).toEqual(['conditional withdrawn', 'dialog taken'])
})

test('leaving the page withdraws the offer', async () => {
  const { page } = owner
  await owner.goto('/login')
  await expect.poll(requests).toEqual(['conditional open'])
  await page.evaluate("history.pushState(null, '', '/forgot-password'), dispatchEvent(new PopStateEvent('popstate'))")
  await expect.poll(requests).toEqual(['conditional withdrawn'])
})

test('an offer is renewed before its challenge ends, but only while somebody sees the page', async () => {
  const { page } = owner
  await page.clock.install()
  await owner.goto('/login')
  await expect.poll(requests).toEqual(['conditional open'])
  await page.clock.runFor('03:50')
  expect(asked).toBe(1)
  await page.clock.runFor('00:20')
  await expect.poll(requests).toEqual(['conditional withdrawn', 'conditional open'])
  expect(asked).toBe(2)
  await page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
  await page.clock.runFor('20:00')
  expect(asked).toBe(2)
  await page.evaluate("delete document.visibilityState, document.dispatchEvent(new Event('visibilitychange'))")
  await expect.poll(requests).toEqual(['conditional withdrawn', 'conditional withdrawn', 'conditional open'])
})
