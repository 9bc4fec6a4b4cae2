import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readQr } from '../support/web/qr.ts'
import { openSite, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'

let site: Site
let visitor: Visitor
let disk: string

beforeAll(async () => {
  disk = mkdtempSync(join(tmpdir(), 'mesh-copies-disk-'))
  site = await openSite({ ADMIN_PASSWORD })
  visitor = await site.visit()
  await visitor.goto('/backups')
  await visitor.signIn('admin', ADMIN_PASSWORD)
})
afterAll(async () => {
  await site.close()
  rmSync(disk, { recursive: true })
})

test('a key is made in the browser and never leaves it; a copy on another disk is opened with it', async () => {
  const { page, violations } = visitor
  const sent: string[] = []
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
  await page.getByRole('button', { name: 'Back up now' }).click()
  await page.locator('tbody tr').waitFor()
  await page.getByRole('link', { name: 'Copies elsewhere' }).click()
  await page.getByRole('button', { name: 'Make a key' }).click()
  const dialog = page.getByRole('dialog')
  const key = (await dialog.locator('code').textContent())?.trim() ?? ''
  expect(key).toMatch(/^AGE-SECRET-KEY-1/)
  expect(readQr(await dialog.getByRole('img').screenshot()).trim()).toBe(key)
  expect(await violations()).toEqual([])
  await dialog.getByLabel('Who keeps it').fill('the safe')
  await dialog.getByLabel('Its last four characters').fill('0000')
  await dialog.getByRole('button', { name: 'Encrypt for this key' }).click()
  await dialog.getByText('These are not its last four characters.').waitFor()
  await dialog.getByLabel('Its last four characters').fill(key.slice(-4).toLowerCase())
  await dialog.getByRole('button', { name: 'Encrypt for this key' }).click()
  await page.getByText('the safe').waitFor()

  // The private key in the wrong field is not sent either.
  await page.getByRole('button', { name: 'Add a public key' }).click()
  await dialog.getByLabel('Public key').fill(key)
  await dialog.getByLabel('Who keeps it').fill('nobody')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('This is a private key.').waitFor()
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'Add a place' }).click()
  await dialog.getByLabel('Kind').selectOption('folder')
  await dialog.getByLabel('Name').fill('USB disk')
  await dialog.getByRole('textbox', { name: 'Folder' }).fill(disk)
  await dialog.getByRole('button', { name: 'Test' }).click()
  await dialog.getByText('It works').waitFor()
  expect(readdirSync(disk)).toEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('complete and checked').waitFor()
  expect(await violations()).toEqual([])
  await page.getByRole('button', { name: 'I have done this' }).click()
  await page.getByText('by admin').waitFor()

  const file = readdirSync(disk).find((name) => name.endsWith('.age')) ?? ''
  const identity = join(disk, 'key.txt')
  writeFileSync(identity, `${key}\n`)
  const archive = execFileSync('age', ['-d', '-i', identity, join(disk, file)], { maxBuffer: 1e9 })
  const names = execFileSync('tar', ['tz'], { input: archive, encoding: 'utf8' })
  expect(names).toContain('/manifest.json')
  expect(sent.filter((one) => one.toUpperCase().includes('AGE-SECRET-KEY'))).toEqual([])

  // On the edge with a bucket: backups, but nothing that copies them.
  await page.route('**/api/auth/status', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, headers: { ...response.headers(), 'x-unsupported': 'radio' } })
  })
  await page.reload()
  await page.getByText('Only the service on Node copies backups').waitFor()
  expect(await page.getByRole('button', { name: 'Add a place' }).count()).toBe(0)
  const stored = readdirSync(site.data, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  for (const { parentPath, name } of stored) {
    expect(readFileSync(join(parentPath, name), 'latin1'), name).not.toContain(key.slice(20))
  }
})
