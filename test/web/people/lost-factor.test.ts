import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildCli, runCli } from '../../support/built/built-service.ts'
import { codeAt } from '../../support/factors/oathtool.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../../support/signed-in.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

let dir: string
let env: Record<string, string>
let site: Site
let admin: Visitor

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-lost-'))
  env = { ADMIN_PASSWORD, DEMO: 'false', DATA_DIR: dir, PORT: String(await freePort()) }
  site = await openSite(env)
  admin = await openSignedIn(site, '/account')
})
afterAll(async () => {
  await site.close()
  rmSync(dir, { recursive: true })
})

/** As if everybody had signed in a quarter of an hour earlier. */
function age(): void {
  const database = new Database(join(dir, 'mesh.db'))
  database.prepare('update sessions set authenticated_at = authenticated_at - 900000').run()
  database.close()
}

async function setUpApp({ page }: Visitor): Promise<string> {
  await page.getByRole('button', { name: 'Set up an app' }).click()
  const secret = (await page.getByLabel('Or type this key into the app').textContent()) ?? ''
  await page.getByLabel('Six digits from the app').fill(codeAt(secret, Date.now()))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByText('10 recovery codes left').waitFor()
  return secret
}

let created = 0
/** A new user with an app, signed in on the account page. */
async function newUser(): Promise<{ username: string; visitor: Visitor }> {
  const username = `user${++created}`
  const json = { username, password: ADMIN_PASSWORD }
  const answer = await admin.page.request.post(`${site.base}/api/users`, { data: json })
  expect(answer.status()).toBe(201)
  const visitor = await site.visit()
  await visitor.goto('/account')
  await visitor.signIn(username, ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Your account' }).waitFor()
  await setUpApp(visitor)
  return { username, visitor }
}

/** The user signs in with the password alone, and reads that somebody removed the factors. */
async function isTold({ username, visitor }: { username: string; visitor: Visitor }): Promise<void> {
  const { page } = visitor
  await visitor.goto('/account')
  await visitor.signIn(username, ADMIN_PASSWORD)
  await page.getByText('An administrator removed your second factors on').waitFor()
  expect(await visitor.violations()).toEqual([])
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  await page.getByRole('button', { name: 'Understood' }).click()
  await expect.poll(() => page.getByText('An administrator removed').count()).toBe(0)
  await page.getByText('You sign in with your password alone.').waitFor()
}

/** The administrator begins to remove the factors of a user, long after signing in: the dialog that asks for a proof. */
async function beginRemoval(username: string): Promise<Locator> {
  const { page } = admin
  await admin.goto('/users')
  await page.getByRole('link', { name: username, exact: true }).click()
  age()
  await page.getByRole('button', { name: 'Remove second factors' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove second factors' }).click()
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await proof.waitFor()
  return proof
}

test('an administrator removes the factors of a user, after a proof, and the user is notified', async () => {
  const lost = await newUser()
  const proof = await beginRemoval(lost.username)
  await proof.getByLabel('Password', { exact: true }).fill('not this one at all')
  await proof.getByRole('button', { name: 'Confirm' }).click()
  await proof.getByRole('alert').waitFor()
  await proof.getByLabel('Password', { exact: true }).fill(ADMIN_PASSWORD)
  await proof.getByRole('button', { name: 'Confirm' }).click()
  // The page repeats what was begun.
  await admin.page.getByText('Second factors removed').waitFor()
  await expect.poll(() => proof.count()).toBe(0)
  await isTold(lost)
  await lost.visitor.page.context().close()
})

test('without the proof nothing is changed', async () => {
  const lost = await newUser()
  const proof = await beginRemoval(lost.username)
  await admin.page.keyboard.press('Escape')
  await expect.poll(() => proof.count()).toBe(0)
  await lost.visitor.goto('/account')
  await lost.visitor.page.getByText('10 recovery codes left').waitFor()
  await lost.visitor.page.context().close()
})

test('the console removes them too', async () => {
  const lost = await newUser()
  const run = await runCli(buildCli(), ['reset-second-factor', lost.username], { DATA_DIR: dir })
  expect(run).toMatchObject({ code: 0, err: '' })
  await isTold(lost)
  await lost.visitor.page.context().close()
})

test('where administrators need a second factor from now on, an open session leads to setting one up', async () => {
  const state = await admin.page.context().storageState()
  await site.close()
  site = await openSite({ ...env, REQUIRE_SECOND_FACTOR: 'admins' })
  const visitor = await site.visit({ storageState: state })
  const { page } = visitor
  await visitor.goto('/nodes')
  await page.getByRole('heading', { name: 'Set up a second factor', level: 1 }).waitFor()
  expect(await visitor.violations()).toEqual([])
  await expect.poll(() => page.getByRole('navigation').count()).toBe(0)
  // Setting one up needs a proof as well: the session is older than 15 minutes.
  age()
  await page.getByRole('button', { name: 'Set up an app' }).click()
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await proof.getByLabel('Password', { exact: true }).fill(ADMIN_PASSWORD)
  await proof.getByRole('button', { name: 'Confirm' }).click()
  const secret = (await page.getByLabel('Or type this key into the app').textContent()) ?? ''
  await page.getByLabel('Six digits from the app').fill(codeAt(secret, Date.now()))
  await page.getByRole('button', { name: 'Confirm' }).click()
  // The page behind the dialog continues; the codes stay until the user confirms that they are stored.
  await page.getByRole('heading', { name: 'Nodes', level: 1, includeHidden: true }).waitFor()
  expect(await page.locator('code', { hasText: /^[a-z0-9]{4}-/ }).textContent()).toMatch(/^([a-z0-9-]{19}\n){9}/)
  expect(await visitor.violations()).toEqual([])
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  await page.getByRole('navigation').first().waitFor()
})
