import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, closeVisits, openSignedIn } from '../support/signed-in.ts'
import { openSite, type Site, type Visitor } from '../support/web/site.ts'

let site: Site
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
})
afterAll(() => site.close())
afterEach(closeVisits)

/** The session ends while somebody types, and the same person signs in again. */
async function endAndReturn({ page, signIn }: Visitor): Promise<void> {
  await page.context().clearCookies()
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
  await page.getByText('Your session has ended').waitFor()
  await signIn('admin', ADMIN_PASSWORD)
}

/** The drafts that are still there at the moment when the dialog closes. */
async function whatIsLeftAtTheEnd({ page }: Visitor): Promise<unknown> {
  return page.evaluate(`new Promise((resolve) => {
    const look = () => {
      if (document.querySelector('dialog[open]') === null) resolve(Object.keys(sessionStorage).filter((key) => key.startsWith('draft:')))
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true })
  })`)
}

test('creating a token continues after signing in again, but not after it was cancelled', async () => {
  const visitor = await openSignedIn(site, '/account')
  const { page } = visitor
  const dialog = page.getByRole('dialog', { name: 'New token' })
  await page.getByRole('button', { name: 'New token' }).click()
  await dialog.getByLabel('Name').fill('backup script on the NAS')
  await dialog.getByLabel('Nodes and map: read').check()
  await dialog.getByLabel('Ends after').selectOption('a year')
  await endAndReturn(visitor)
  await dialog.waitFor()
  await expect.poll(() => dialog.getByLabel('Name').inputValue()).toBe('backup script on the NAS')
  await expect.poll(() => dialog.getByLabel('Nodes and map: read').isChecked()).toBe(true)
  await expect.poll(() => dialog.locator('input:checked').count()).toBe(1)
  await expect.poll(() => dialog.getByLabel('Ends after').inputValue()).toBe('365')
  const left = whatIsLeftAtTheEnd(visitor)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect(await left).toEqual([])
  await page.reload()
  await page.getByText('No tokens yet.').waitFor()
  await page.getByRole('button', { name: 'New token' }).click()
  await expect.poll(() => dialog.getByLabel('Name').inputValue()).toBe('')
  await expect.poll(() => dialog.locator('input:checked').count()).toBe(0)
})

test('a new user and a changed profile survive the end of the session; saving removes the draft', async () => {
  const visitor = await openSignedIn(site, '/users/new')
  const { page, goto } = visitor
  await page.getByLabel('Username').fill('greta')
  await page.getByLabel('Name', { exact: true }).fill('Greta of the lighthouse')
  await page.getByLabel('Messages: write', { exact: true }).check()
  await endAndReturn(visitor)
  await page.getByRole('heading', { name: 'New user' }).waitFor()
  await expect.poll(() => page.getByLabel('Username').inputValue()).toBe('greta')
  await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('Greta of the lighthouse')
  await expect.poll(() => page.getByLabel('Messages: write', { exact: true }).isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByRole('heading', { name: 'greta can sign in now' }).waitFor()
  await page.getByRole('link', { name: 'Open the user' }).click()
  await page.getByLabel('E-mail').fill('greta@lighthouse.test')
  await endAndReturn(visitor)
  await expect.poll(() => page.getByLabel('E-mail').inputValue()).toBe('greta@lighthouse.test')
  await page.getByRole('button', { name: 'Save' }).first().click()
  await page.getByText('User saved').waitFor()
  await goto('/users/new')
  await expect.poll(() => page.getByLabel('Username').inputValue()).toBe('')
  await expect.poll(() => page.getByLabel('Messages: write', { exact: true }).isChecked()).toBe(false)
})

test('a password being typed is not stored anywhere', async () => {
  const visitor = await openSignedIn(site, '/account')
  const { page } = visitor
  await page.getByLabel('Current password').fill(ADMIN_PASSWORD)
  await page.getByLabel('New password', { exact: true }).fill('seven gulls over the harbour')
  await endAndReturn(visitor)
  await page.getByRole('heading', { name: 'Your account' }).waitFor()
  await expect.poll(() => page.getByLabel('New password', { exact: true }).inputValue()).toBe('')
  const kept = String(await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])'))
  expect(kept).toContain('{')
  expect(kept).not.toContain('gulls')
  expect(kept).not.toContain(ADMIN_PASSWORD)
})
