import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../support/servers/free-port.ts'
import { portOf } from '../../support/servers/port-of.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../../support/signed-in.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

// The service, its mail server and the browser are real.

const OWN = 'a password of my own'
const letters: { readonly to: string; readonly text: string }[] = []

let smtp: SMTPServer
let site: Site
let admin: Visitor

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, { envelope }, done) {
      let text = ''
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => {
        letters.push({ to: envelope.rcptTo[0]?.address ?? '', text: text.replaceAll('=\r\n', '') })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve))
  const port = String(await freePort())
  site = await openSite({
    ADMIN_PASSWORD,
    DEMO: 'false',
    PORT: port,
    PUBLIC_URL: `http://127.0.0.1:${port}`,
    SMTP_URL: `smtp://127.0.0.1:${portOf(smtp.server)}/?ignoreTLS=true`,
    SMTP_FROM: 'mesh@example.org',
  })
  admin = await openSignedIn(site, '/users/new')
})
afterAll(async () => {
  await site?.close()
  smtp.close()
})

/** The link in the newest letter to this address about this. */
async function linkTo(email: string, about: string): Promise<string> {
  const find = () => letters.findLast(({ to, text }) => to === email && text.includes(about))
  await expect.poll(find).toBeDefined()
  return /http:\S+\/link#[\w-]{43}/.exec(find()?.text ?? '')?.[0] ?? ''
}

async function choosePassword({ page }: Visitor, password: string): Promise<void> {
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('Repeat the new password').fill(password)
  await page.getByRole('button', { name: 'Set the password' }).click()
}

test('an invited user chooses a password, and another one after forgetting it', async () => {
  const { page } = admin
  await page.getByLabel('Username').fill('bert')
  await page.getByLabel('E-mail', { exact: true }).fill('bert@example.org')
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByText('is on its way to bert@example.org').waitFor()
  await page.getByRole('link', { name: 'Open the user' }).click()
  await page.getByText('An invitation to bert@example.org is open').waitFor()

  const invited = await linkTo('bert@example.org', 'An administrator has created')
  const bert = await site.visit({ viewport: { width: 390, height: 844 } })
  // A program that checks mail opens the link before its reader does.
  expect((await bert.page.request.get(invited)).status()).toBe(200)
  await bert.page.goto(invited)
  await bert.page.getByRole('heading', { name: 'Welcome, bert' }).waitFor()
  expect(bert.page.url()).toBe(`${site.base}/link`)
  expect(await overflowOf(bert.page)).toBe(0)
  expect(await bert.violations()).toEqual([])
  await choosePassword(bert, 'short')
  await bert.page.getByRole('alert').waitFor()
  await choosePassword(bert, OWN)
  await bert.page.getByText('Your account is ready').waitFor()
  await bert.page.getByRole('link', { name: 'Sign in' }).click()
  await bert.signIn('bert', OWN)
  await bert.page.getByRole('navigation').first().waitFor()
  await bert.goto('/account')
  await bert.page.getByText('Confirmed', { exact: true }).waitFor()

  const other = await site.visit()
  await other.goto('/login')
  await other.page.getByRole('link', { name: 'Forgot your password?' }).click()
  await other.page.getByLabel('Username or e-mail address').fill('bert@example.org')
  expect(await other.violations()).toEqual([])
  await other.page.getByRole('button', { name: 'Send the link' }).click()
  await other.page.getByText('If there is such an account').waitFor()
  const reset = await linkTo('bert@example.org', 'Somebody asked for a new password')
  await other.page.goto(reset)
  await choosePassword(other, `${OWN} again`)
  await other.page.getByText('Your password was changed').waitFor()
  await linkless('bert@example.org', 'The password was reset.')
  // Elsewhere the session has ended, and the link works no more.
  await bert.page.goto(reset)
  await bert.page.getByText('This link has expired').waitFor()
  await bert.page.reload()
  await bert.page.getByText('no longer knows it').waitFor()
  await bert.goto('/login')
  await bert.signIn('bert', `${OWN} again`)
  await bert.page.getByRole('navigation').first().waitFor()
})

async function linkless(email: string, about: string): Promise<void> {
  const find = () => letters.some(({ to, text }) => to === email && text.includes(about) && !text.includes('/link#'))
  await expect.poll(find).toBe(true)
}

test('an own address is confirmed by its link, in another browser too', async () => {
  const { page } = admin
  await admin.goto('/account')
  await page.getByLabel('Address', { exact: true }).fill('admin@example.org')
  await page
    .locator('form', { has: page.getByLabel('Address', { exact: true }) })
    .getByRole('button', { name: 'Save' })
    .click()
  await page.getByText('Not confirmed').waitFor()
  const reader = await site.visit()
  await reader.page.goto(await linkTo('admin@example.org', 'has this e-mail address'))
  await reader.page.getByText('Is admin@example.org the address of your account admin?').waitFor()
  expect(await reader.violations()).toEqual([])
  await reader.page.getByRole('button', { name: 'Confirm the address' }).click()
  await reader.page.getByText('admin@example.org is confirmed.').waitFor()
  await page.reload()
  await page.getByText('Confirmed', { exact: true }).waitFor()
})
