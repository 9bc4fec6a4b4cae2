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
  // A browser that offers no passkeys in the name field; offered-passkeys.test.ts has one that does.
  await owner.page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable')
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

/** Puts a copy with this counter in the place of the only passkey of the authenticator. */
async function copy(signCount: number): Promise<void> {
  const original = await credential()
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
  await devtools.send('WebAuthn.addCredential', { authenticatorId, credential: { ...original, signCount } })
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
  await page.getByRole('dialog').getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('button', { name: `Remove ${name}` }).waitFor()
}

async function remove(name: string): Promise<void> {
  const { page } = owner
  await page.getByRole('button', { name: `Remove ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await expect.poll(() => page.getByRole('button', { name: `Remove ${name}` }).count()).toBe(0)
}

const useAlone = () => owner.page.getByRole('button', { name: 'Continue with a passkey' }).click()

async function useAfterPassword(): Promise<void> {
  await owner.signIn('admin', ADMIN_PASSWORD)
  await owner.page.getByRole('button', { name: 'Use a passkey' }).click()
}

const isAtHome = () => owner.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()

test('the first passkey comes with recovery codes', async () => {
  const { page } = owner
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByLabel('Name of the passkey').fill('my laptop')
  expect(await owner.violations()).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('heading', { name: 'Keep these recovery codes' }).waitFor()
  expect(await owner.violations()).toEqual([])
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByRole('button', { name: 'Remove my laptop' }).waitFor()
  expect(await owner.violations()).toEqual([])
})

// The passkey of the laptop stays in the account, but its authenticator is gone from the second test on.
test.each([
  ['a security key', 'usb', true],
  ['another device', 'internal', true],
  ['a security key without user verification', 'usb', false],
  ['a device without user verification', 'internal', false],
] as const)(
  '%s signs in after the password, and without one only if it verifies its user',
  async (name, kind, isVerified) => {
    const { page } = owner
    await plugIn(kind, isVerified)
    await owner.goto('/account')
    await add(name)
    // Without user verification the browser does not offer it before a name is typed.
    expect((await credential()).isResidentCredential).toBe(isVerified)
    await signOut()
    await useAfterPassword()
    await isAtHome()
    if (isVerified) {
      await signOut()
      await useAlone()
      await isAtHome()
    }

    // A copy, whose counter does not increase.
    const { signCount } = await credential()
    expect(signCount).toBeGreaterThan(0)
    await copy(0)
    await signOut()
    await useAfterPassword()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('This passkey is not accepted')
    if (isVerified) {
      await copy(0)
      await signOut()
      await useAlone()
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('This passkey is not accepted')
    }
    await copy(signCount + 10)
    await signOut()
    await useAfterPassword()
    await isAtHome()
    await owner.goto('/account')
    await remove(name)
  },
)

test('a key that does not recognise its user does not sign in', async () => {
  const { page } = owner
  await plugIn('usb', true)
  await owner.goto('/account')
  await add('a stolen key')
  await devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await signOut()
  await useAlone()
  await expect.poll(() => page.getByRole('alert').count()).toBe(1)
  expect(await page.getByRole('heading', { name: 'Sign in' }).count()).toBe(1)
})
