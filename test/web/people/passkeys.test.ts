import { type CDPSession } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD } from '../../support/signed-in.ts'
import { openBrowser, openSite, type Site, type SiteBrowser, type Visitor } from '../../support/web/site.ts'

let site: Site
let browser: SiteBrowser
let owner: Visitor
let devtools: CDPSession
let authenticatorId: string

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  // Passkeys belong to a host name, not to an address.
  browser = await openBrowser(site.base.replace('127.0.0.1', 'localhost'))
  owner = await browser.visit()
  devtools = await owner.page.context().newCDPSession(owner.page)
  await devtools.send('WebAuthn.enable')
  await plugIn('internal', true)
  await owner.goto('/account')
  await owner.signIn('admin', ADMIN_PASSWORD)
  await owner.page.getByRole('heading', { name: 'Your account' }).waitFor()
})
afterAll(async () => {
  await browser.close()
  await site.close()
})

/** Replaces the authenticator: built into the platform or a security key, with or without user verification. */
async function plugIn(transport: 'internal' | 'usb', hasUserVerification: boolean): Promise<void> {
  if (authenticatorId !== undefined) await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
  const options = {
    protocol: 'ctap2',
    transport,
    hasResidentKey: hasUserVerification,
    hasUserVerification,
    isUserVerified: hasUserVerification,
    automaticPresenceSimulation: true,
  } as const
  ;({ authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', { options }))
}

async function credential() {
  const { credentials } = await devtools.send('WebAuthn.getCredentials', { authenticatorId })
  const [first] = credentials
  if (first === undefined) throw new Error('the authenticator holds no passkey')
  return first
}

async function signOut(): Promise<void> {
  await owner.page.context().clearCookies()
  await owner.goto('/login')
}

async function add(name: string): Promise<void> {
  const { page } = owner
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByLabel('Name of the passkey').fill(name)
  expect(await owner.violations()).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Add a passkey' }).click()
}

async function remove(name: string): Promise<void> {
  const { page } = owner
  await page.getByRole('button', { name: `Remove ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await expect.poll(() => page.getByText(name, { exact: true }).count()).toBe(0)
}

const isAtHome = () => owner.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()

test('a passkey of this device is added with recovery codes, and signs in without a password', async () => {
  const { page } = owner
  await add('my laptop')
  await page.getByRole('heading', { name: 'Keep these recovery codes' }).waitFor()
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByText('my laptop').waitFor()
  expect(await owner.violations()).toEqual([])
  await signOut()
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await isAtHome()
})

test('after the password it is the second step', async () => {
  const { page } = owner
  await signOut()
  await owner.signIn('admin', ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await isAtHome()
})

test('a copy of it, whose counter does not grow, does not sign in', async () => {
  const { page } = owner
  const copied = await credential()
  await signOut()
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await isAtHome()
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
  await devtools.send('WebAuthn.addCredential', { authenticatorId, credential: { ...copied, signCount: 0 } })
  await signOut()
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('This passkey is not accepted')
  expect(copied.signCount).toBeGreaterThan(0)
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
  await devtools.send('WebAuthn.addCredential', {
    authenticatorId,
    credential: { ...copied, signCount: copied.signCount + 10 },
  })
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await isAtHome()
})

test('a security key without user verification is a second step, and never the only one', async () => {
  const { page } = owner
  await plugIn('usb', false)
  await owner.goto('/account')
  await add('blue key')
  await page.getByText('blue key').waitFor()
  // Chromium may wait for ever for the device that was taken away, instead of asking the key.
  await remove('my laptop')
  await signOut()
  await owner.signIn('admin', ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await isAtHome()
  await owner.goto('/account')
  await remove('blue key')
})
