import { afterEach, beforeEach, expect, test } from 'vitest'
import { browserOf } from '../../../src/app/accounts/browser.ts'
import { createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { ADMIN_PASSWORD } from '../../support/app.ts'

let alerts: TestAlerts

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const NEWER = FIREFOX.replaceAll('140', '141')
const CHROME =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36'

async function signIn(userAgent?: string): Promise<void> {
  const headers: Record<string, string> = userAgent === undefined ? {} : { 'user-agent': userAgent }
  const body = { username: 'admin', password: ADMIN_PASSWORD }
  const answer = await alerts.app.client().send('POST', '/api/auth/login', body, headers)
  expect(answer.status).toBe(200)
  await alerts.pass(MINUTE)
}

test('a sign-in is reported if its address or browser is new, but not for a newer version of the browser', async () => {
  await alerts.rule({ kind: 'sign_in', name: 'Account' })
  // Earlier sign-ins without a known browser do not make this one new.
  await signIn(FIREFOX)
  expect(await alerts.alerts()).toStrictEqual([])
  alerts.app.ip = '198.51.100.7'
  await signIn(FIREFOX)
  await signIn(NEWER)
  await signIn(CHROME)
  await signIn(CHROME)
  expect((await alerts.alerts()).map(({ what }) => what)).toStrictEqual([
    expect.stringContaining('(198.51.100.7, Chrome on Android)'),
    expect.stringContaining('(198.51.100.7, Firefox on Linux)'),
  ])
})

test.each([
  [undefined, null],
  ['curl/8.5.0', null],
  [FIREFOX, 'Firefox on Linux'],
  [CHROME, 'Chrome on Android'],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0', 'Edge on Windows'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari on iPhone',
  ],
])('%s is %s', (userAgent, browser) => {
  expect(browserOf(userAgent)).toBe(browser)
})
