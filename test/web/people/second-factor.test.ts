import { afterAll, beforeAll, expect, test } from 'vitest'
import { readQr } from '../../support/web/qr.ts'
import { codeAt } from '../../support/factors/oathtool.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../../support/signed-in.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

let site: Site
let admin: Visitor

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  admin = await openSignedIn(site, '/account')
})
afterAll(() => site.close())

let secret = ''
let codes: string[] = []

/** The latest code that was used: none works twice. */
let used = ''
async function nextCode(): Promise<string> {
  await expect.poll(() => codeAt(secret, Date.now() + 30_000) !== used, { timeout: 60_000, interval: 500 }).toBe(true)
  used = codeAt(secret, Date.now() + 30_000)
  return used
}

test('an authenticator app is set up with a QR code, and recovery codes are shown once', async () => {
  const { page } = admin
  await page.getByRole('button', { name: 'Set up an app' }).click()
  const code = page.getByRole('img', { name: 'QR code for the authenticator app' })
  await code.waitFor()
  secret = (await page.getByLabel('Or type this key into the app').textContent()) ?? ''
  expect(secret).toMatch(/^[A-Z2-7]{32}$/)
  // As a phone's camera sees it, also in dark mode.
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const seen = new URL(readQr(await code.screenshot()))
    expect(decodeURIComponent(`${seen.protocol}//${seen.host}${seen.pathname}`)).toBe(
      'otpauth://totp/Mesh Monitoring Service:admin',
    )
    expect(Object.fromEntries(seen.searchParams)).toMatchObject({ secret, digits: '6', period: '30' })
  }
  await page.emulateMedia({ colorScheme: 'light' })
  used = codeAt(secret, Date.now())
  await page.getByLabel('Six digits from the app').fill(used)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('heading', { name: 'Keep these recovery codes' }).waitFor()
  const shown = await page.locator('code', { hasText: /^[a-z0-9]{4}-/ }).textContent()
  codes = (shown ?? '').split('\n')
  expect(codes).toHaveLength(10)
  // On paper are the codes and what they belong to, and nothing else.
  await page.evaluate('window.print = () => { document.title = "printed" }')
  await page.getByRole('button', { name: 'Print' }).click()
  await expect.poll(() => page.title()).toBe('printed')
  await page.emulateMedia({ media: 'print' })
  const paper = await page.locator('body').innerText()
  expect(paper.split('\n').filter((line) => line.trim() !== '')).toStrictEqual([
    'Recovery codes',
    'Account',
    'admin',
    'Service',
    `${site.base}/`,
    'Created',
    expect.stringMatching(/\d{4}/),
    ...codes,
  ])
  await page.emulateMedia({ media: null })
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByText('10 recovery codes left').waitFor()
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
})

test('from then on sign-in asks for the code; without the phone a recovery code signs in', async () => {
  const other = await site.visit()
  const { page } = other
  await other.goto('/login')
  await other.signIn('admin', ADMIN_PASSWORD)
  await page.getByText('Your password was right.').waitFor()
  expect(await other.violations()).toEqual([])
  const focused = page.locator('input:focus')
  await expect.poll(() => focused.getAttribute('name')).toBe('code')
  await page.getByLabel('Six digits from the app').fill('000000')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('This code is wrong')
  await page.getByLabel('Six digits from the app').fill(await nextCode())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  expect(other.complaints.filter((line) => !line.includes('401'))).toEqual([])

  const lost = await site.visit()
  await lost.goto('/account')
  await lost.signIn('admin', ADMIN_PASSWORD)
  await lost.page.getByRole('button', { name: 'Use a recovery code' }).click()
  await lost.page.getByLabel('Recovery code').fill('aaaa-bbbb-cccc-dddd')
  await lost.page.getByRole('button', { name: 'Sign in' }).click()
  await lost.page.getByText('This recovery code is wrong or already used. Each one works once.').waitFor()
  await lost.page.getByLabel('Recovery code').fill(codes[0] ?? '')
  await lost.page.getByRole('button', { name: 'Sign in' }).click()
  await lost.page.getByText('9 recovery codes left').waitFor()
})
