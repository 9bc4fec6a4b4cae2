import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, type Site, type Visitor } from '../../support/web/site.ts'

const PASSWORD = 'three radios on one hill'
let site: Site
let admin: Visitor

beforeAll(async () => {
  site = await openSite({ LOGIN_MAX_FAILURES: '4' })
  admin = await site.visit()
})
afterAll(() => site.close())

test('a temporary password only leads to choosing a new one, and then to the requested page', async () => {
  const { page } = admin
  await admin.goto('/nodes?show=active')
  await expect.poll(() => new URL(page.url()).pathname).toBe('/login')
  await admin.signIn('admin', site.temporaryPassword ?? '')
  await page.getByRole('heading', { name: 'Choose your own password' }).waitFor()
  // Told before anything is typed, also to a screen reader.
  const description = await page.getByLabel('New password', { exact: true }).getAttribute('aria-describedby')
  await expect.poll(() => page.locator(`[id="${description}"]`).textContent()).toMatch(/^At least 15 characters\. /)
  await page.getByLabel('New password', { exact: true }).fill('short')
  await page.getByLabel('Repeat the new password').fill('short')
  await page.getByRole('button', { name: 'Change password' }).click()
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('At least 15 characters')
  await page.getByLabel('New password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Repeat the new password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Change password' }).click()
  await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
  await expect.poll(() => new URL(page.url()).pathname + new URL(page.url()).search).toBe('/nodes?show=active')
})

test('nodes appear and are updated without a reload', async () => {
  const { page } = admin
  await admin.goto('/nodes')
  await page.getByText('Town Hall Gateway').waitFor()
  const newest = page.locator('tbody time').first()
  const before = await newest.getAttribute('datetime')
  await expect.poll(() => newest.getAttribute('datetime')).not.toBe(before)
  await page.getByLabel('Search nodes').fill('castle')
  await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
  await page.getByText(/^1 of \d+ nodes$/).waitFor()
})

test('a message is sent, and its receiver confirms it', async () => {
  const { page } = admin
  await admin.goto('/nodes?sort=name')
  await page.getByRole('link', { name: 'Castle Hill Relay' }).click()
  await page.getByRole('link', { name: 'Write a message' }).click()
  await expect
    .poll(() => page.getByLabel('Write a message').getAttribute('placeholder'))
    .toBe('Write to: Castle Hill Relay')
  await page.getByLabel('Write a message').fill('Are you there, castle? ⚡')
  await page.getByText('26 of 200 bytes').waitFor()
  await page.getByRole('button', { name: 'Send' }).click()
  const message = page.locator('.message.out', { hasText: 'Are you there, castle? ⚡' })
  await message.getByText('Delivered', { exact: true }).waitFor()
})

test('a user created with a preset sees what it allows, and is told what is missing', async () => {
  const { page } = admin
  await admin.goto('/users')
  await page.getByRole('link', { name: 'New user' }).click()
  await page.getByLabel('Username').fill('anna')
  await page.getByLabel('Name', { exact: true }).fill('Anna on the bike')
  await page.getByRole('radio', { name: 'Operator' }).check()
  await page.getByLabel('Messages: read', { exact: true }).uncheck()
  await expect.poll(() => page.getByLabel('Messages: write', { exact: true }).isChecked()).toBe(false)
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByRole('heading', { name: 'anna can sign in now' }).waitFor()
  const password = (await page.getByLabel('Temporary password').textContent()) ?? ''

  const anna = await site.visit()
  await anna.goto('/')
  await anna.signIn('anna', password)
  await anna.page.getByLabel('New password', { exact: true }).fill('a bench under the oak')
  await anna.page.getByLabel('Repeat the new password').fill('a bench under the oak')
  await anna.page.getByRole('button', { name: 'Change password' }).click()
  await anna.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  const links = anna.page.getByRole('navigation', { name: 'Main' }).first().getByRole('link')
  await expect
    .poll(() => links.allTextContents())
    .toEqual(expect.arrayContaining(['Dashboard', 'Map', 'Nodes', 'Packets', 'Settings', 'Anna on the bike']))
  const others = (await links.allTextContents()).filter((name) => /^(Messages|Users|Audit log|Backups)$/.test(name))
  expect(others).toEqual([])
  await anna.goto('/messages')
  await anna.page.getByText('It needs the permission “Messages: read”. An administrator can give you that.').waitFor()
  await anna.goto('/users')
  await anna.page.getByText('It needs an administrator account. An administrator can give you that.').waitFor()
  await anna.page.getByRole('link', { name: 'Go to the start page' }).click()
  await anna.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  expect(anna.complaints).toEqual([])
})

test('a password reset shows the new one once, and is in the audit log', async () => {
  const { page } = admin
  await admin.goto('/users?q=anna')
  await page.getByRole('link', { name: 'Anna on the bike' }).click()
  await page.getByRole('button', { name: 'Reset password' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Reset password' }).click()
  await page.getByRole('heading', { name: 'New password for Anna on the bike' }).waitFor()
  await expect.poll(() => page.getByLabel('Temporary password').textContent()).toMatch(/^[A-Za-z0-9]{20}$/)
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByLabel('Messages: read', { exact: true }).check()
  await page.getByRole('button', { name: 'Save' }).last().click()
  await page.getByText('Permissions saved').waitFor()

  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByLabel('Action').selectOption('password_reset')
  await expect
    .poll(() => page.locator('.audit tbody tr').allTextContents())
    .toEqual([expect.stringContaining('Reset a password anna')])
  await page.getByLabel('Action').selectOption('permissions_updated')
  await page.locator('.audit tbody tr', { hasText: 'Changed permissions anna' }).first().waitFor()
  await page.locator('.expander').first().click()
  await expect.poll(() => page.locator('.changes tbody tr').allTextContents()).toEqual(['Messages–read'])
})

test('a backup is created, verified, and its restore explained', async () => {
  const { page } = admin
  await admin.goto('/backups')
  await page.getByRole('button', { name: 'Back up now' }).click()
  const row = page.locator('tbody tr')
  await row.waitFor()
  const name = (await row.locator('.mono').textContent()) ?? ''
  expect(name).toMatch(/^\d{4}-\d{2}-\d{2}_\d{6}$/)
  await page.getByRole('button', { name: `Verify ${name}` }).click()
  await row.getByText(/^Intact: \d+ rows read and checked\.$/).waitFor()
  await expect
    .poll(() => page.getByLabel('Restore without this page').textContent())
    .toBe(`RESTORE_FROM_BACKUP=${name}`)
  await page.getByLabel('Make a backup every day').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Schedule saved').waitFor()
})

test('none of this caused an error in the console or a request to another host', () => {
  // Chromium logs each 4xx answer: the only one was for the password that was too short.
  const expected = 'Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)'
  expect(admin.complaints).toEqual([expected])
})

test('too many failures say how long to wait; an error of the provider says what to do', async () => {
  const guest = await site.visit()
  await guest.goto('/login?error=oidc_user_inactive')
  await expect.poll(() => guest.page.getByRole('alert').textContent()).toContain('deactivated. Ask an administrator')
  for (let attempt = 0; attempt < 5; attempt++) {
    await guest.signIn('nobody', `wrong ${attempt}`)
    const alert = guest.page.locator('form').getByRole('alert')
    await alert.filter({ hasText: attempt < 4 ? 'Username or password is wrong' : 'Too many attempts' }).waitFor()
  }
  await expect.poll(() => guest.page.locator('form').getByRole('alert').textContent()).toMatch(/try again in \d+ min/)
})

test('when the service is unreachable the page says so, keeps its data, and recovers by itself', async () => {
  const { page } = admin
  await admin.goto('/nodes')
  await page.getByText('Town Hall Gateway').waitFor()
  await page.context().setOffline(true)
  const banner = page.getByText('This device is offline. This page shows data from')
  await banner.waitFor()
  await page.getByText('Town Hall Gateway').waitFor()
  await expect.poll(() => page.getByRole('alert').count()).toBe(0)
  await page.context().setOffline(false)
  await banner.waitFor({ state: 'hidden' })
})
