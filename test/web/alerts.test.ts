import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { alertDestinations, alerts } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { isPagePath } from '../../src/shared/pages.ts'
import { portOf } from '../support/servers/port-of.ts'
import { FULL_CHROMIUM_PATH } from '../support/web/chromium.ts'
import {
  openBrowser,
  openSite,
  overflowOf,
  showPush,
  type Site,
  type SiteBrowser,
  type Visitor,
} from '../support/web/site.ts'

const PASSWORD = 'a password for the alerts'
let site: Site
let browser: SiteBrowser
let visitor: Visitor
let hook: Server
const received: { id: string | undefined; body: string }[] = []

beforeAll(async () => {
  hook = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      received.push({ id: request.headers['webhook-id']?.toString(), body })
      response.end()
    })
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
  site = await openSite({ ADMIN_PASSWORD: PASSWORD })
  browser = await openBrowser(site.base, FULL_CHROMIUM_PATH)
  visitor = await browser.visit({ permissions: ['notifications'] })
  await visitor.page.goto(site.base)
  await visitor.signIn('admin', PASSWORD)
  await visitor.page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
})
afterAll(async () => {
  await browser.close()
  await site.close()
  hook.close()
})

const hookUrl = () => `http://127.0.0.1:${portOf(hook)}/hook`

test('a webhook is added and tested, a preset becomes a rule, and its preview shows past matches', async () => {
  const { page } = visitor
  await visitor.goto('/alerts')
  await page.getByRole('heading', { name: 'Nothing is watched yet' }).waitFor()
  await page.getByText('Choose one of the suggestions below').waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('button', { name: 'Add a destination' }).click()
  await page.getByLabel('Tell me by').selectOption('webhook')
  await page.getByLabel('Name').fill('My hook')
  await page.getByLabel('URL').fill(hookUrl())
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('It is shown only now').first().waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Test', exact: true }).click()
  await page.getByText('Sent: status 200').waitFor()
  expect(received).toHaveLength(1)

  await page.getByRole('button', { name: 'Low batteries' }).click()
  await page.getByRole('button', { name: 'When would it have fired?' }).click()
  await page.getByText(/^In the last 7 days it would/).waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Tell me when the battery level of a node is below 20').waitFor()
  // Checked for the first time within a minute.
  await page.getByText(/^1 rule watches \d+ nodes, (?:not checked yet|last check .+)\.$/).waitFor()
  await page.getByText('Nothing is watched yet').waitFor({ state: 'detached' })
})

test('three clicks start watching a node', async () => {
  const { page } = visitor
  await visitor.goto('/nodes')
  await page.getByRole('link', { name: 'Harbour Crane' }).first().click()
  await page.getByRole('button', { name: 'Watch this node' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Watched').waitFor()
  await visitor.goto('/alerts')
  await page.getByText(/^Tell me when Harbour Crane was not heard for 2 h\.$/).waitFor()
})

test('the nodes of a rule are found by name, and removed again', async () => {
  const { page } = visitor
  await visitor.goto('/alerts')
  await page
    .getByRole('button', { name: 'My repeaters fall silent' })
    .or(page.getByRole('button', { name: 'New rule' }))
    .first()
    .click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Which nodes').selectOption('These nodes')
  const box = dialog.getByRole('combobox', { name: 'Add a node' })
  for (const name of ['Town Hall', 'Harbour']) {
    await box.fill(name)
    await dialog.getByRole('listbox').getByRole('option').first().waitFor()
    await box.press('Enter')
  }
  await dialog.getByRole('button', { name: 'Remove Harbour Crane' }).click()
  expect(await visitor.violations()).toStrictEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/^Tell me when Town Hall Gateway was not heard/).waitFor()
})

test('an area is drawn on the map, corner by corner', async () => {
  const { page } = visitor
  await visitor.goto('/alerts')
  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByLabel('Tell me about').selectOption('area')
  await page.getByLabel('Name').fill('Valley')
  await page.getByLabel('When it', { exact: true }).selectOption('leaves')
  await page.getByLabel('Area', { exact: true }).selectOption('polygon')
  const map = page.getByRole('region', { name: 'Map for drawing the area' })
  await map.locator('canvas').first().waitFor({ state: 'attached' })
  await map.scrollIntoViewIfNeeded()
  for (const [index, position] of [
    { x: 60, y: 60 },
    { x: 300, y: 60 },
    { x: 180, y: 200 },
    { x: 240, y: 220 },
  ].entries()) {
    await map.click({ position })
    await map.getByTitle(`Corner ${index + 1}`).waitFor()
  }
  await map.getByTitle('Corner 4').click()
  await map.getByTitle('Corner 4').waitFor({ state: 'detached' })
  const corners = page.getByRole('dialog').getByRole('group', { name: /^Corner \d$/ })
  expect(await corners.count()).toBe(3)
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  const points = rules.find(({ rule }: { rule: { name: string } }) => rule.name === 'Valley').rule.shape.points
  const [[north, west], [, east], [south]] = points
  expect([points.length, north > south, west < east]).toStrictEqual([3, true, true])
})

test.each([
  ['a desk', { width: 1360, height: 860 }],
  ['a phone', { width: 390, height: 844 }],
])('on %s the preview is in view whatever is filled in, and names the nodes that it looked at', async (_, viewport) => {
  const { page } = visitor
  const dialog = page.getByRole('dialog')
  await page.setViewportSize(viewport)
  await visitor.goto('/alerts')
  await page.getByRole('button', { name: 'New rule' }).click()
  const button = dialog.getByRole('button', { name: 'When would it have fired?' })
  const isInView = async () => {
    const box = await button.boundingBox()
    expect((box?.y ?? -1) >= 0 && (box?.y ?? 0) + (box?.height ?? 0) <= viewport.height).toBe(true)
  }
  for (const kind of ['node_silent', 'metric', 'message', 'area', 'link', 'backup']) {
    await dialog.getByLabel('Tell me about').selectOption(kind)
    await isInView()
  }
  await dialog.getByLabel('Tell me about').selectOption('node_silent')
  await dialog.getByLabel('Which nodes').selectOption('Nodes with a role')
  await dialog.getByLabel('Repeater', { exact: true }).uncheck()
  await dialog.getByLabel('Client', { exact: true }).check()
  await dialog.getByLabel('After', { exact: true }).fill('3')
  await dialog.getByLabel('After: unit').selectOption('days')
  await dialog.getByLabel('Also tell me when it is over').scrollIntoViewIfNeeded()
  await isInView()
  await dialog.getByText('Tell me when a node with the role ROUTER or CLIENT was not heard for 3 d.').waitFor()
  await button.click()
  await dialog.getByText(/^Looked at \d+ nodes: .*Harbour Crane.*\.$/).waitFor()
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  expect(await visitor.violations()).toStrictEqual([])
  // The answer was about another rule.
  await dialog.getByLabel('After', { exact: true }).fill('4')
  await dialog.getByText(/^Looked at/).waitFor({ state: 'detached' })
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.setViewportSize({ width: 1360, height: 860 })
})

test('words and senders of a message are chosen one by one, and a time has a number and a unit', async () => {
  const { page } = visitor
  const dialog = page.getByRole('dialog')
  await visitor.goto('/alerts')
  await page.getByRole('button', { name: 'New rule' }).click()
  await dialog.getByLabel('Tell me about').selectOption('message')
  await dialog.getByLabel('Name').fill('From the crane')
  const words = dialog.getByLabel('Words')
  await words.fill('help')
  await words.press('Enter')
  await words.fill('fire')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await dialog.getByRole('button', { name: 'Remove help' }).click()
  // What is typed and not added counts as well.
  await words.fill('smoke')
  await dialog.getByLabel('From').selectOption('These nodes')
  const box = dialog.getByRole('combobox', { name: 'Add a node' })
  await box.fill('Harbour')
  await dialog.getByRole('listbox').getByRole('option').first().waitFor()
  await box.press('Enter')
  await dialog.getByText(/^Tell me when Harbour Crane says fire or smoke/).waitFor()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'New rule' }).click()
  await dialog.getByLabel('Tell me about').selectOption('link')
  await dialog.getByLabel('Name').fill('Links')
  await dialog.getByLabel('After', { exact: true }).fill('1.5')
  await dialog.getByLabel('After: unit').selectOption('hours')
  await dialog.getByLabel('Repeat while it lasts').check()
  await dialog.getByLabel('Every', { exact: true }).fill('2')
  await dialog.getByLabel('Urgent: also in my quiet hours').check()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  const named = (name: string) => rules.find(({ rule }: { rule: { name: string } }) => rule.name === name).rule
  expect(named('From the crane')).toMatchObject({
    match: { mode: 'word', words: ['fire', 'smoke'] },
    from: [expect.anything()],
  })
  expect(named('Links')).toMatchObject({ afterMinutes: 90, repeatHours: 48, urgent: true })
})

test('what is typed in feet and °F comes back as typed, and is stored in metres and °C', async () => {
  const { page } = visitor
  const dialog = page.getByRole('dialog')
  const storedAs = async (name: string) => {
    const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
    return rules.find(({ rule }: { rule: { name: string } }) => rule.name === name).rule
  }
  const inUnits = async (name: string) => {
    await visitor.goto('/account')
    const isKept = page.waitForResponse((answer) => answer.url().endsWith('/api/auth/preferences'))
    await page.getByRole('radio', { name }).check({ force: true })
    await isKept
    await visitor.goto('/alerts')
  }
  /** Types as a person does: each key may redraw the field. */
  const type = async (label: string | RegExp, text: string) => {
    const field = dialog.getByLabel(label)
    await field.selectText()
    await field.pressSequentially(text)
    expect(await field.inputValue()).toBe(text)
  }
  const save = async () => {
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
  }
  const change = (name: string) =>
    page.getByRole('listitem').filter({ hasText: name }).getByRole('button', { name: 'Change' }).click()

  await inUnits('Feet, miles, °F')
  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByLabel('Tell me about').selectOption('area')
  await dialog.getByLabel('Name').fill('Wanders off')
  await type('More than (ft)', '505.5')
  await save()
  expect(await storedAs('Wanders off')).toMatchObject({ when: 'moves', metres: 154.0764 })
  for (let time = 0; time < 2; time++) {
    await change('Wanders off')
    expect(await dialog.getByLabel('More than (ft)').inputValue()).toBe('505.5')
    await save()
  }
  expect(await storedAs('Wanders off')).toMatchObject({ metres: 154.0764 })

  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByLabel('Tell me about').selectOption('metric')
  await dialog.getByLabel('Name').fill('Frost')
  await dialog.getByLabel('Measurement').selectOption('environmentMetrics.temperature')
  await type('Limit (°F)', '-4')
  await type(/^Ends when .*\(°F\)$/, '9')
  await save()
  expect(await storedAs('Frost')).toMatchObject({ limit: -20, hysteresis: 5 })
  await inUnits('Metres, °C')
  await change('Frost')
  expect(await dialog.getByLabel('Limit (°C)').inputValue()).toBe('-20')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await change('Wanders off')
  expect(await dialog.getByLabel('More than (m)').inputValue()).toBe('154.0764')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
})

test('the channels of a rule are chosen by name, and what has no end is not announced as over', async () => {
  const { page } = visitor
  const dialog = page.getByRole('dialog')
  await visitor.goto('/alerts')
  await page.getByRole('button', { name: 'New rule' }).click()
  await dialog.getByLabel('Also tell me when it is over').waitFor()
  await dialog.getByLabel('Tell me about').selectOption('message')
  expect(await dialog.getByLabel('Name').inputValue()).toBe('')
  await dialog.getByLabel('Name').fill('Calls for help')
  await dialog.getByLabel('Tell me about').selectOption('node_new')
  await dialog.getByLabel('Tell me about').selectOption('message')
  expect(await dialog.getByLabel('Name').inputValue()).toBe('Calls for help')
  await dialog.getByLabel('Rescue').check()
  expect(await dialog.getByLabel('Also tell me when it is over').count()).toBe(0)
  expect(await dialog.getByLabel('Repeat while it lasts').count()).toBe(0)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { channels } = Object(await (await page.request.get(`${site.base}/api/channels`)).json())
  const rescue = channels.find(({ name }: { name: string }) => name === 'Rescue').index
  const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  const stored = rules.find(({ rule }: { rule: { name: string } }) => rule.name === 'Calls for help').rule
  expect(stored.channels).toStrictEqual([rescue])
})

test('a measurement that is not offered is named as the API names it', async () => {
  const { page } = visitor
  const dialog = page.getByRole('dialog')
  await visitor.goto('/alerts')
  await page.getByRole('button', { name: 'New rule' }).click()
  await dialog.getByLabel('Tell me about').selectOption('metric')
  await dialog.getByLabel('Name', { exact: true }).fill('Dusk')
  await dialog.getByLabel('Measurement').selectOption('Another one…')
  await dialog.getByLabel('Its name in the API').fill('environmentMetrics.lux')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('listitem').filter({ hasText: 'Dusk' }).getByRole('button', { name: 'Change' }).click()
  expect(await dialog.getByLabel('Its name in the API').inputValue()).toBe('environmentMetrics.lux')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
})

test('a rule is muted for one node, and says so until it is unmuted', async () => {
  const { page } = visitor
  const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  const { id: ruleId } = rules.find(({ rule }: { rule: { name: string } }) => rule.name === 'Valley')
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const at = Date.now()
  const row = {
    ruleId,
    ownerId: 1,
    ruleName: 'Valley',
    kind: 'area',
    state: 'firing',
    subject: 'node:2697658370',
  } as const
  await db.insert(alerts).values({
    ...row,
    key: 'x',
    nodeNum: 0xa0cb0002,
    what: 'It left the area',
    startedAt: at,
    firedAt: at,
    notifiedAt: at,
    step: 'x',
  })
  close()
  await visitor.goto('/alerts')
  const firing = page.locator('li', { hasText: 'It left the area' })
  await firing.getByRole('button', { name: 'Mute this node for a day' }).click()
  await page.getByText(/is muted until .+\./).waitFor()
  await expect.poll(() => firing.getByRole('button', { name: 'Mute this node' }).count()).toBe(0)
  const { rules: after } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  const silenced = after.find(({ id }: { id: number }) => id === ruleId).rule.silencedNodes
  expect(silenced).toMatchObject([{ node: 0xa0cb0002 }])
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('button', { name: 'Unmute' }).click()
  await page.getByText(/is muted until/).waitFor({ state: 'detached' })
})

test('on a phone nothing is wider than the screen', async () => {
  await visitor.page.setViewportSize({ width: 360, height: 740 })
  await visitor.goto('/alerts')
  expect(await overflowOf(visitor.page)).toBeLessThanOrEqual(0)
  await visitor.page.setViewportSize({ width: 1360, height: 860 })
})

test('the app is installable, and its service worker shows a push and opens the node', async () => {
  const { page } = visitor
  await visitor.goto('/alerts')
  const manifest = await (await fetch(`${site.base}/manifest.webmanifest`)).json()
  const { icons, shortcuts } = Object(manifest)
  expect(Object(icons).filter(({ purpose }: Record<string, unknown>) => purpose === 'maskable')).toHaveLength(1)
  expect(Object(shortcuts).map(({ name }: Record<string, unknown>) => name)).toEqual([
    'Nodes',
    'Map',
    'Messages',
    'Alerts',
  ])
  for (const { url } of Object(shortcuts))
    expect([url, isPagePath(new URL(url, 'https://mesh/').pathname)]).toEqual([url, true])
  for (const { src, sizes } of icons) {
    const icon = await fetch(`${site.base}/${src}`)
    expect([icon.status, icon.headers.get('content-type')]).toStrictEqual([200, 'image/png'])
    const bytes = Buffer.from(await icon.arrayBuffer())
    expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`).toBe(sizes)
  }
  const push = { id: 'msg_1', title: 'Ridge is silent', text: 'Ridge was not heard for 2 h', path: '/nodes/!a0cb0001' }
  await showPush(page, push)
  const [worker] = page.context().serviceWorkers()
  if (worker === undefined) throw new Error('no service worker')
  await worker.evaluate(`self.registration.getNotifications().then(([notification]) => {
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification }))
  })`)
  await page.waitForURL(/\/nodes\/!a0cb0001$/)
  const caches = `caches.keys().then(async (names) => (await Promise.all(names.map(async (name) =>
    (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)))).flat())`
  const kept = z.array(z.string()).parse(await page.evaluate(caches))
  expect(kept).toEqual(expect.arrayContaining(['/', '/offline.html']))
  expect(kept.filter((path) => !/^\/(?:offline\.html|assets\/(?:world-[^/]+\/)?[^/]+)?$/.test(path))).toStrictEqual([])
})

/**
 * A browser whose push service is simulated: Chromium's own needs the internet. The subscription outlives a page, as in
 * a browser.
 */
const PUSH_SERVICE = `{
  const KEY = 'simulated push service'
  const found = () => localStorage.getItem(KEY) === null ? null : {
    toJSON: () => JSON.parse(localStorage.getItem(KEY)),
    unsubscribe: async () => { localStorage.removeItem(KEY); return true },
  }
  PushManager.prototype.getSubscription = async () => found()
  PushManager.prototype.subscribe = async () => {
    const bytes = (length) => btoa(String.fromCharCode(4, ...new Uint8Array(length - 1)))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
    const keys = { p256dh: bytes(65), auth: bytes(16) }
    localStorage.setItem(KEY, JSON.stringify({ endpoint: 'https://push.example.org/this-browser', keys }))
    return found()
  }
}`

test('after signing out, neither this browser nor the service has its subscription, and others stay', async () => {
  const elsewhere = await browser.visit({ permissions: ['notifications'] })
  const own = await browser.visit({ permissions: ['notifications'] })
  for (const each of [elsewhere, own]) {
    await each.page.addInitScript(PUSH_SERVICE)
    await each.goto('/alerts')
    await each.signIn('admin', PASSWORD)
    await each.page.getByRole('button', { name: 'Show alerts in this browser' }).click()
    await each.page.getByText('Browser', { exact: true }).first().waitFor()
  }
  const subscribed = async () => {
    const { db, close } = openDatabase(join(site.data, 'mesh.db'))
    const count = await db.$count(alertDestinations, eq(alertDestinations.kind, 'web_push'))
    close()
    return count
  }
  const isSubscribed = () =>
    own.page.evaluate(
      'navigator.serviceWorker.ready.then((each) => each.pushManager.getSubscription()).then((one) => one !== null)',
    )
  await expect.poll(subscribed).toBe(2)
  await expect.poll(isSubscribed).toBe(true)
  // The owner says in another session that it is theirs: that does not detach it from the browser.
  await elsewhere.page.reload()
  const isMine = elsewhere.page
    .getByRole('listitem')
    .filter({ has: elsewhere.page.getByText('Browser', { exact: true }) })
    .getByRole('button', { name: 'It was me' })
  await isMine.click()
  await isMine.waitFor({ state: 'detached' })
  await own.page.getByRole('button', { name: 'Sign out' }).click()
  await own.page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
  await expect.poll(isSubscribed).toBe(false)
  expect(await subscribed()).toBe(1)
  await elsewhere.page.reload()
  await expect.poll(() => elsewhere.page.getByText('Browser', { exact: true }).count()).toBe(1)
  await own.page.context().close()
  await elsewhere.page.context().close()
})

test('the application is shown while the service is unreachable', async () => {
  const { page } = visitor
  await page.context().setOffline(true)
  await page.goto(`${site.base}/alerts`)
  await page.getByRole('heading', { name: 'Alerts', level: 1 }).waitFor()
  await page.getByText('The service does not respond').waitFor()
  await page.context().setOffline(false)
})
