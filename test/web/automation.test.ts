import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ANSWER_TOKENS, TOKENS } from '../../src/shared/automation/tokens.ts'
import { openDatabase } from '../../src/node/database.ts'
import { text } from '../support/mesh/mesh.ts'
import { openRadioSite, type RadioSite, readData, SITE_PASSWORD } from '../support/radio/site.ts'
import { follow } from '../support/web/follow.ts'
import { overflowOf, type Visitor } from '../support/web/site.ts'

let mesh: RadioSite
let admin: Visitor

beforeAll(async () => {
  mesh = await openRadioSite()
  admin = mesh.admin
})
afterAll(() => mesh.close())

const tryCard = (page: Page) => page.locator('.card', { hasText: 'Shows what the rule would do. Nothing is sent.' })
const writeText = (page: Page, words: string) => page.getByRole('textbox', { name: 'Text' }).fill(words)

test('an announcement is previewed while it is written, and is off until somebody switches it on', async () => {
  const { page } = admin
  await admin.goto('/automation')
  await page.getByText('No rules yet').waitFor()
  await page.getByRole('link', { name: 'New rule' }).click()
  await page.getByLabel('Name').fill('Morning')
  const card = tryCard(page)
  await card.getByText('Complete the form to see what it would do.').waitFor()
  await writeText(page, 'Hello from ')
  await page.getByRole('button', { name: 'long name of the radio', exact: true }).click()
  await page.getByText('up to 50 of 200 bytes when filled in').waitFor()
  await card.getByText('Hello from Test Radio').waitFor()
  await card.getByText(/^to everybody on Primary channel · 21 bytes, \d+ ms of airtime$/).waitFor()
  await card.getByText('Calculated for Long fast, because the radio has not reported its preset').waitFor()
  await expect.poll(() => card.getByRole('listitem').count()).toBe(5)
  await expect.poll(() => page.getByRole('switch', { name: 'On' }).isChecked()).toBe(false)
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByRole('heading', { name: 'Morning', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'All rules' }).click()

  const row = page.getByRole('row', { name: /^Morning/ })
  await row.getByText('every 1 d · Primary channel').waitFor()
  const lever = page.getByRole('switch', { name: 'Switch on Morning' })
  await expect.poll(() => lever.isChecked()).toBe(false)
  await lever.click()
  await page.getByText(/^“Morning” is on: about 1 packet and \d+ ms of airtime a day\.$/).waitFor()
  await expect.poll(() => lever.isChecked()).toBe(true)
  await row.locator('td').getByText('in 23 h').waitFor()
})

test('a ping that the radio hears is answered, and the log says by which rule', async () => {
  const { page } = admin
  await admin.goto('/automation/new?kind=acknowledge')
  await page.getByLabel('Name').fill('Ping')
  await page.getByRole('textbox', { name: 'Words' }).fill('ping\nrange test')
  await page.getByText('With a text', { exact: true }).click({ force: true })
  await writeText(page, 'heard you, {senderShortName}')
  await page.getByRole('switch', { name: 'On' }).check()
  const card = tryCard(page)
  await card.getByText('This would be answered.').waitFor()
  const sender = card.getByRole('combobox', { name: 'Sender' })
  expect(await sender.inputValue()).toBe('An unknown node')
  await sender.fill('far')
  await card.getByRole('option', { name: 'Far Hill' }).waitFor()
  await sender.press('Enter')
  await card.getByText('heard you, FH').waitFor()
  await card.getByLabel('Somebody writes').fill('shipping')
  await card.getByText('This would not be answered: the words or the channel do not match.').waitFor()
  await card.getByText(/^at most 480$/).waitFor()
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByText('This rule has not done anything yet.').waitFor()

  mesh.hear(text('Ping?'), { id: 4711 })
  const answer = readData(await mesh.sent())
  expect([new TextDecoder().decode(answer.payload), answer.replyId]).toEqual(['heard you, FH', 4711])
  const run = page.locator('.run-log tbody tr')
  await run.getByText('sent', { exact: true }).waitFor()
  await run.getByText('heard you, FH').waitFor()
  await run.getByText('for Far Hill · one packet').waitFor()
  mesh.hear(text('ping again'), { id: 4712 })
  await page.getByText('Its sender was answered in the last minute').waitFor()
  await expect.poll(() => run.locator('.tag').allTextContents()).toEqual(['skipped', 'sent'])
  await admin.goto('/automation')
  await page.getByText('1 of at most 20 answers in the last hour').waitFor()
  await page
    .getByRole('row', { name: /^Ping/ })
    .locator('td')
    .getByText('its sender was answered in the last minute')
    .waitFor()
})

test('times are shown in the time zone of the rule, and those in quiet hours are skipped', async () => {
  const { page } = admin
  await admin.goto('/automation/new?kind=schedule')
  await page.getByRole('button', { name: 'daily at 8:00' }).click()
  await page.getByLabel('Time zone').selectOption('Asia/Tokyo')
  const runs = tryCard(page).getByRole('listitem')
  await tryCard(page).getByText('in the time zone Asia/Tokyo, if it is on').waitFor()
  await expect.poll(() => runs.allTextContents()).toEqual(Array(5).fill(expect.stringMatching(/, 08:00$/)))
  await expect.poll(() => runs.first().locator('time').getAttribute('datetime')).toMatch(/T23:00:00\.000Z$/)
  await tryCard(page).getByText('Complete the form to see what it would do.').waitFor()
  await writeText(page, 'Net tonight')
  await tryCard(page).getByText('Net tonight').waitFor()
  await page.getByRole('switch', { name: 'Keep quiet hours' }).check()
  await page.getByLabel('Until').fill('09:00')
  await expect
    .poll(() => runs.allTextContents())
    .toEqual(Array(5).fill(expect.stringMatching(/08:00skipped: quiet hours$/)))
  await tryCard(page).getByText('about 0', { exact: true }).waitFor()
})

test('the counter knows the greatest length of each token', async () => {
  const { page } = admin
  await admin.goto('/automation/new?kind=acknowledge')
  await page.getByText('With a text', { exact: true }).click({ force: true })
  const all = Object.entries({ ...TOKENS, ...ANSWER_TOKENS })
  for (const [token, { widest }] of all) {
    const rest = 200 - new TextEncoder().encode(widest).length
    await writeText(page, `{${token}}${'x'.repeat(rest)}`)
    await page.getByText('up to 200 of 200 bytes when filled in').waitFor()
    await writeText(page, `{${token}}${'x'.repeat(rest + 1)}`)
    await page.getByText('1 too many: shorten the text').waitFor()
  }
  await expect.poll(() => page.locator('.chips').last().getByRole('button').count()).toBe(all.length)
})

test("a rule is changed and deleted; another user's version is not overwritten unseen", async () => {
  const { page } = admin
  await admin.goto('/automation/1')
  await writeText(page, 'Good morning')
  const other = await page.request.get(`${mesh.site.base}/api/automation/1`)
  const { rule } = Object(Object(await other.json()).automation)
  const headers = { origin: mesh.site.base }
  await page.request.put(`${mesh.site.base}/api/automation/1`, { headers, data: { ...rule, name: 'Evening' } })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('In the meantime admin changed this rule.').waitFor()
  await page.getByRole('link', { name: 'All rules' }).click()
  await page.getByRole('link', { name: 'Evening' }).click()
  await expect.poll(() => page.getByRole('textbox', { name: 'Text' }).inputValue()).toBe('Good morning')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Rule saved').waitFor()
  await expect.poll(() => page.getByRole('textbox', { name: 'Text' }).inputValue()).toBe('Good morning')
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Delete the rule “Morning” and its log?').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: 'Automation', level: 1 }).waitFor()
  await page.getByRole('row', { name: /^Ping/ }).waitFor()
  await expect.poll(() => page.getByRole('row', { name: /^Morning/ }).count()).toBe(0)
})

test('what another user saves at the last moment is not overwritten, and no rule of theirs is deleted', async () => {
  const { page } = admin
  const url = `${mesh.site.base}/api/automation`
  const headers = { origin: mesh.site.base }
  const rule = { kind: 'schedule', name: 'Net', cron: '0 8 * * *', action: { kind: 'text', text: 'Net tonight' } }
  const made = await page.request.post(url, { headers, data: rule })
  const { id } = Object(Object(await made.json()).automation)
  await admin.goto(`/automation/${id}`)
  await writeText(page, 'Mine')
  // After the page has decided what to send, and before the service receives it.
  await page.route(
    `**/api/automation/${id}`,
    async (route) => {
      await page.request.put(`${url}/${id}`, { headers, data: { ...rule, name: 'Theirs' } })
      await route.continue()
    },
    { times: 1 },
  )
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('In the meantime admin changed this rule. Your entries are kept').waitFor()
  await page.getByRole('heading', { name: 'Theirs', level: 1 }).waitFor()
  await expect.poll(() => page.getByRole('textbox', { name: 'Text' }).inputValue()).toBe('Mine')
  expect(await admin.violations()).toEqual([])
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Rule saved').waitFor()
  await page.getByRole('heading', { name: 'Net', level: 1 }).waitFor()

  await page.request.put(`${url}/${id}`, { headers, data: { ...rule, name: 'Theirs again' } })
  await page.getByRole('button', { name: 'Delete' }).click()
  const sure = page.getByRole('dialog')
  await sure.getByRole('button', { name: 'Delete' }).click()
  await sure.getByText('Somebody changed this rule in the meantime.').waitFor()
  await sure.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('heading', { name: 'Theirs again', level: 1 }).waitFor()
  expect((await page.request.get(`${url}/${id}`)).status()).toBe(200)
  // The browser itself logs a refusal in its console.
  const refusals = admin.complaints.splice(0)
  expect(refusals.filter((complaint) => !complaint.includes('412'))).toEqual([])
})

test('a rule that cannot be read is listed separately, and can be deleted', async () => {
  const { page } = admin
  const store = openDatabase(join(mesh.site.data, 'mesh.db'))
  try {
    store.sqlite.exec("update automations set rule = '{' where name = 'Theirs again'")
  } finally {
    store.close()
  }
  await admin.goto('/automation')
  await page.getByRole('row', { name: /^Ping/ }).waitFor()
  await page.getByRole('heading', { name: 'Rules that cannot be read' }).waitFor()
  expect(await admin.violations()).toEqual([])
  await page.getByRole('button', { name: 'Delete Theirs again' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Rule deleted').waitFor()
  await expect.poll(() => page.getByText('Rules that cannot be read').count()).toBe(0)
})

test('users with only the read permission see rules, their log and preview, and no controls to change them', async () => {
  const reader = await mesh.join('reader', { automation: { read: true, write: false } })
  const { page } = reader
  await reader.goto('/automation')
  await page.getByText('You can see the rules but not change them.').waitFor()
  await expect.poll(() => page.getByRole('switch').count()).toBe(0)
  await expect.poll(() => page.getByRole('link', { name: 'New rule' }).count()).toBe(0)
  await page.getByRole('link', { name: 'Ping' }).click()
  await page.getByText('heard you, {senderShortName}').waitFor()
  await tryCard(page).getByText('It would answer').waitFor()
  await page.locator('.run-log').getByText('skipped').waitFor()
  await expect.poll(() => page.getByRole('button', { name: /Save|Delete/ }).count()).toBe(0)
  await expect.poll(() => page.locator('form').count()).toBe(0)
  expect(await reader.violations()).toEqual([])
  await reader.goto('/automation/new')
  await page.getByText('It needs the permission “Automation: write”.').waitFor()
  expect(reader.complaints).toEqual([])
})

/** The values of fields that are longer than what is shown of them. */
const CUT = `[...document.querySelectorAll('main input')]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1).map(({ value }) => value)`

test.each([
  ['light and dark', {}],
  ['on a phone', { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }],
] as const)('axe-core finds nothing, no page is too wide, the console is empty: %s', async (_name, options) => {
  const { page, goto, signIn, violations, complaints } = await mesh.site.visit(options)
  await goto('/automation')
  await signIn('admin', SITE_PASSWORD)
  await page.getByRole('row', { name: /^Ping/ }).waitFor()
  const kinds = ['announce', 'acknowledge', 'traceroute', 'schedule']
  for (const path of ['', '/2', ...kinds.map((kind) => `/new?kind=${kind}`)]) {
    await follow(page, `/automation${path}`)
    await page.locator('.guards').waitFor()
    await page.getByText('Limits that protect the mesh').click()
    expect([path, ...(await violations())]).toEqual([path])
    await expect.poll(async () => [path, await overflowOf(page)]).toEqual([path, 0])
    expect([path, await page.evaluate(CUT)]).toEqual([path, []])
  }
  expect(complaints).toEqual([])
})

test('none of this caused an error in the console or a request to another host', () => {
  expect(admin.complaints).toEqual([])
})

test('a refusal is shown at its field, and the first such field has the focus', async () => {
  const { page, goto, signIn, violations } = await mesh.site.visit()
  await goto('/automation/new')
  await signIn('admin', SITE_PASSWORD)
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByText('Give it a name of up to 64 characters.').waitFor()
  await page.getByText('Write a text.').waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.getAttribute("aria-invalid")')).toBe('true')
  await page.getByLabel('Name').fill('Ping')
  await writeText(page, 'Hello {nobody}')
  await page.getByText('unknown token {nobody}').waitFor()
  await page.getByLabel('Hours between two runs').fill('2')
  await page.locator('.bad', { hasText: 'A whole number from 3 to 720' }).waitFor()
  expect(await violations()).toEqual([])
  await page.getByText('At certain times', { exact: true }).click({ force: true })
  await page.getByRole('textbox', { name: 'Times' }).fill('*/30 * * * *')
  await page.getByText('runs must be at least 180 minutes apart').waitFor()
  await page.getByRole('textbox', { name: 'Times' }).fill('0 8 * * *')
  await writeText(page, 'Hello')
  await tryCard(page).getByText('Next runs').waitFor()
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByText('Another rule has this name. Choose another one.').waitFor()
  await page.getByLabel('Name').fill('Another')
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByRole('heading', { name: 'Another', level: 1 }).waitFor()
})
