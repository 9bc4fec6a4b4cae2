import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildSite, type Service, startService } from '../support/built/built-service.ts'
import { freePort } from '../support/servers/free-port.ts'
import { openBrowser, overflowOf, type SiteBrowser, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }

let dataDir: string
let base: string
let service: Service
let browser: SiteBrowser
let visitor: Visitor
let env: Record<string, string>
let isOver = false

/** Starts the service, and again whenever it ends itself, as a supervisor does. */
async function supervise(): Promise<void> {
  service = await startService(buildSite(), env)
  service.process.once('exit', (code) => {
    if (code === 75 && !isOver) void supervise()
  })
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'mesh-restore-'))
  const port = await freePort()
  base = `http://127.0.0.1:${port}`
  env = { DATA_DIR: dataDir, PORT: String(port), DEMO: 'true', ADMIN_PASSWORD, RESTART_BY: 'supervisor' }
  await supervise()
  browser = await openBrowser(base)
  visitor = await browser.visit()
  await visitor.goto('/backups')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('button', { name: 'Back up now' }).click()
  await visitor.page.locator('tbody tr').waitFor()
})
afterAll(async () => {
  isOver = true
  await browser.close()
  const ended = once(service.process, 'exit')
  service.process.kill()
  await ended
  rmSync(dataDir, { recursive: true })
})

const backupName = async () => (await visitor.page.locator('tbody tr .mono').first().textContent()) ?? ''

test('the dialog says what is lost and what comes back, also on a phone; cancelled, nothing happens', async () => {
  const { page } = visitor
  const name = await backupName()
  await page.getByRole('button', { name: `Restore ${name}` }).click()
  const dialog = page.getByRole('dialog', { name: `Restore the backup ${name}` })
  await dialog.getByRole('heading', { name: /^Lost: everything since / }).waitFor()
  await dialog.getByRole('heading', { name: /^Comes back: the state of .*, by version / }).waitFor()
  await dialog.getByText('All sessions end.').waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await page.setViewportSize(PHONE.viewport)
  expect(await overflowOf(page)).toBe(0)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 1360, height: 860 })
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Restore…')
})

test('a restore restarts the service; the page waits, says that it is back, and the page Backups how it went', async () => {
  const { page } = visitor
  const name = await backupName()
  // Made after the backup, and gone with it.
  const made = await page.request.post(`${base}/api/users`, {
    data: { username: 'anna', password: 'a bench under the oak' },
    headers: { origin: base },
  })
  expect(made.status()).toBe(201)
  await page.getByRole('button', { name: `Restore ${name}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1 new user', { exact: false }).waitFor()
  await dialog.getByRole('button', { name: 'Restore and restart' }).click()
  await page.getByRole('heading', { name: 'Restarting' }).waitFor()
  await page.getByRole('heading', { name: 'The service is back' }).waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('link', { name: 'Sign in' }).click()
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await page.getByText(`${name} is restored`).waitFor()
  const users = await (await page.request.get(`${base}/api/users`)).json()
  expect(users.users.map(({ username }: { username: string }) => username)).toStrictEqual(['admin'])
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await page.getByText(`${name} is restored`).waitFor({ state: 'detached' })
})

test('a damaged backup is refused in words; one that is damaged after that leaves the database, and the page says why', async () => {
  const { page } = visitor
  await page.getByRole('button', { name: 'Back up now' }).click()
  await expect.poll(() => page.locator('tbody tr').count()).toBe(2)
  const name = await backupName()
  const users = join(dataDir, 'system-backups', name, 'users.json')
  writeFileSync(users, '{}')
  await page.getByRole('button', { name: `Restore ${name}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Restore and restart' }).click()
  await dialog.getByText('The next start would refuse this backup: users.json', { exact: false }).waitFor()
  await page.keyboard.press('Escape')
})

test('where nobody starts it again the page says how, and the restore can be cancelled', async () => {
  const { page } = visitor
  env['RESTART_BY'] = 'hand'
  const ended = once(service.process, 'exit')
  service.process.kill()
  await ended
  await supervise()
  await visitor.goto('/backups')
  await page.locator('tbody tr .mono').first().waitFor()
  const names = await page.locator('tbody tr .mono').allTextContents()
  const name = names.at(-1) ?? ''
  await page.getByRole('button', { name: `Restore ${name}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Nothing starts this service again by itself.', { exact: false }).waitFor()
  await dialog.getByRole('button', { name: 'Prepare the restore' }).click()
  await page.getByRole('heading', { name: `The next start restores ${name}` }).waitFor()
  await page.getByText('docker compose restart mesh').waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await page.setViewportSize(PHONE.viewport)
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })
  await page.getByRole('button', { name: 'Cancel the restore' }).click()
  await page.getByRole('heading', { name: `The next start restores ${name}` }).waitFor({ state: 'detached' })

  // A backup that is damaged between the two leaves everything as it was.
  await page.getByRole('button', { name: `Restore ${name}` }).click()
  await dialog.getByRole('button', { name: 'Prepare the restore' }).click()
  await page.getByRole('heading', { name: `The next start restores ${name}` }).waitFor()
  writeFileSync(join(dataDir, 'system-backups', name, 'users.json'), '{}')
  const stopped = once(service.process, 'exit')
  service.process.kill()
  await stopped
  await supervise()
  await visitor.goto('/backups')
  await page.getByText(`${name} was not restored`).waitFor()
  await page.getByText('Integrity validation failed: users.json', { exact: false }).waitFor()
  await visitor.goto('/system')
  await page.getByText('A backup could not be restored: the database is as it was.').waitFor()
})
