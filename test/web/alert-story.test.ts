import { createECDH, randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { decrypt } from 'http_ece'
import type { Page } from 'playwright-core'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import type { Outbound, OutboundRequest } from '../../src/app/base/outgoing/ports.ts'
import { createFrameDecoder, encodeFrame } from '../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { openMail } from '../../src/node/alerts/mail.ts'
import { openOutbound } from '../../src/node/alerts/outbound.ts'
import { listen, type Listening } from '../../src/node/http/server.ts'
import { serveSite } from '../../src/node/http/static.ts'
import { createDemoRadio } from '../../src/node/radio/demo/radio.ts'
import { createSeededRandom } from '../../src/node/radio/demo/seeded-random.ts'
import { createTestAlerts, HOUR, MINUTE, type TestAlerts } from '../support/alerts.ts'
import { ADMIN_PASSWORD, auditRows } from '../support/app.ts'
import { buildSite } from '../support/built/built-service.ts'
import { RADIO } from '../support/mesh/mesh.ts'
import { portOf } from '../support/servers/port-of.ts'
import { FULL_CHROMIUM_PATH } from '../support/web/chromium.ts'
import { openBrowser, overflowOf, showPush, type SiteBrowser, type Visitor } from '../support/web/site.ts'

// The app, its pages, a webhook, a mail server and a browser are real; the clock and the push service are simulated,
// and the mesh is that of DEMO.

const SECOND = 1000

let alerts: TestAlerts
let server: Listening
let browser: SiteBrowser
let visitor: Visitor
let hook: Server
let smtp: SMTPServer
let base: string
const hooks: { id: string; type: string; text: string }[] = []
/** Messages about new destinations. */
const news: string[] = []
const letters: { to: string[]; text: string }[] = []
const pushes: { notification: string; title: string; text: string; path: string; id: string }[] = []

const device = createECDH('prime256v1')
device.generateKeys()
const authSecret = randomBytes(16)

function receivePush({ body }: OutboundRequest): void {
  if (typeof body === 'string') throw new Error('a push is bytes')
  const plain = decrypt(Buffer.from(body), { version: 'aes128gcm', privateKey: device, authSecret })
  const push = JSON.parse(plain.toString())
  if (push.notification === 'destination') news.push(push.text)
  else pushes.push(push)
}

let radio: ReturnType<typeof createDemoRadio>
let silent: number | null = null

/** Advances time on the simulated mesh, with a packet each twenty seconds; rules are evaluated each minute. */
async function live(ms: number): Promise<void> {
  const decoder = createFrameDecoder(decodeFromRadio)
  for (let passed = 0; passed < ms; passed += 20 * SECOND) {
    alerts.app.clock.advance(20 * SECOND)
    const { now } = alerts.app.clock
    const events = decoder
      .push(encodeFrame(radio.hear()), now)
      .map(({ message }) => toRadioEvent(message, now, false))
      .filter((event) => event.type !== 'packet' || event.packet.from !== silent)
    await alerts.ingest.store(events.map((event) => ({ source: RADIO, event })))
    if (passed % MINUTE === 0) await alerts.look()
  }
  await alerts.look()
}

beforeAll(async () => {
  hook = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { type, data } = Object(JSON.parse(body))
      if (type === 'alert.destination') news.push(data.text)
      else hooks.push({ id: String(request.headers['webhook-id']), type, text: data.text })
      response.end()
    })
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
  smtp = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, { envelope }, done) {
      let text = ''
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => {
        if (text.includes('A new destination')) news.push(text)
        else letters.push({ to: envelope.rcptTo.map(({ address }) => address), text: text.replaceAll('=\r\n', '') })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve))

  const web = openOutbound()
  const outbound: Outbound = {
    ...web,
    async send(request) {
      if (!request.url.startsWith('https://push.example.org/')) return web.send(request)
      receivePush(request)
      return { status: 201, retryAfterMs: null }
    },
  }
  const SMTP_URL = `smtp://127.0.0.1:${portOf(smtp.server)}/?ignoreTLS=true`
  const mail = openMail({ SMTP_URL, SMTP_FROM: 'mesh@example.org' })
  alerts = await createTestAlerts({ outbound, mail })
  const { app } = alerts
  app.clock.now = Date.now() - 12 * HOUR
  alerts.startedAt = app.clock.now
  Object.assign(alerts.links[0] ?? {}, { since: app.clock.now })
  radio = createDemoRadio(createSeededRandom(1), () => app.clock.now)
  const site: { fetch: Parameters<typeof listen>[0] | null } = { fetch: null }
  server = await listen((...request) => site.fetch?.(...request) ?? new Response(null, { status: 503 }), 0, '127.0.0.1')
  base = `http://127.0.0.1:${server.port}`
  app.origin = base
  Object.assign(app.ports, { config: { ...app.ports.config, PUBLIC_URL: base } })
  site.fetch = createApp(() => app.ports, serveSite(buildSite().files, null)).fetch
  await live(6 * HOUR)
  browser = await openBrowser(base, FULL_CHROMIUM_PATH)
  visitor = await browser.visit({ permissions: ['notifications'] })
  await visitor.page.goto(base)
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
})
afterAll(async () => {
  await browser?.close()
  await server?.close(0)
  hook.close()
  smtp.close()
  alerts?.app.close()
})

const typesOf = (all: readonly { type: string }[]) => all.map(({ type }) => type)

test('a repeater that is silent for 15 minutes is reported by webhook, e-mail and push until somebody acknowledges it', async () => {
  const { page, goto } = visitor
  await goto('/alerts')
  await page.getByRole('button', { name: 'Add a destination' }).click()
  await page.getByLabel('Tell me by').selectOption('webhook')
  await page.getByLabel('Name').fill('My hook')
  await page.getByLabel('URL').fill(`http://127.0.0.1:${portOf(hook)}/`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Add a destination' }).click()
  await page.getByLabel('Tell me by').selectOption('email')
  await page.getByLabel('Name').fill('My letters')
  await page.getByLabel('Address').fill('me@example.org')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Follow the link in the e-mail').waitFor()
  await confirmAddress(page)
  await subscribePhone()

  const node = alerts.app.store.sqlite
    .prepare<[], { num: number; name: string }>(
      'select node_num num, long_name name from nodes where role in (2, 4, 11) and not is_local order by node_num limit 1',
    )
    .get()
  if (node === undefined) throw new Error('no repeater in the made-up mesh')
  await goto(`/nodes/!${node.num.toString(16).padStart(8, '0')}`)
  await page.getByRole('button', { name: 'Watch this node' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('After: unit').selectOption('minutes')
  await dialog.getByLabel('After', { exact: true }).fill('15')
  await dialog.getByRole('button', { name: 'When would it have fired?' }).click()
  await dialog.getByText(/^In the last 7 days it would have fired \d+ times, in \d+ messages\.$/).waitFor()
  await dialog.getByText(`${node.name} was not heard for`).first().waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Watched').waitFor()
  await goto('/alerts')
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByLabel('Repeat while it lasts').check()
  await page.getByLabel('Every: unit').selectOption('hours')
  await page.getByLabel('Every', { exact: true }).fill('1')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByText(/^Tell me when .+ was not heard for 15 min\.$/).waitFor()

  hooks.length = letters.length = pushes.length = 0
  silent = node.num
  await live(20 * MINUTE)
  const what = `${node.name} was not heard for`
  expect(hooks).toMatchObject([{ type: 'alert.fired', text: expect.stringContaining(what) }])
  expect(letters).toMatchObject([{ to: ['me@example.org'], text: expect.stringContaining(what) }])
  expect(letters[0]?.text).toContain(`${base}/nodes/!`)
  expect(news.some((text) => text.includes('My letters: email, example.org'))).toBe(true)
  expect(pushes).toMatchObject([{ notification: 'fired', text: expect.stringContaining(what) }])
  const [push] = pushes
  if (push === undefined) throw new Error('no push')
  await showPush(page, push)

  await live(70 * MINUTE)
  expect(typesOf(hooks)).toStrictEqual(['alert.fired', 'alert.repeated'])
  await goto('/alerts')
  await page.getByRole('link', { name: what }).waitFor()
  await expectBell(page, 1)
  expect(await visitor.violations()).toStrictEqual([])
  await keepPictures(page, 'firing')
  await page.getByRole('button', { name: 'Acknowledge' }).click()
  await page.getByText('· acknowledged').waitFor()
  await live(3 * HOUR)
  expect(typesOf(hooks)).toStrictEqual(['alert.fired', 'alert.repeated'])

  silent = null
  while (hooks.length < 3) await live(10 * MINUTE)
  expect(typesOf(hooks)).toStrictEqual(['alert.fired', 'alert.repeated', 'alert.resolved'])
  expect([letters.length, pushes.length]).toStrictEqual([3, 3])
  expect(new Set(hooks.map(({ id }) => id)).size).toBe(3)
  await goto('/alerts')
  await page.getByText('All is well').waitFor()
  await page.getByText(/^1 rule watches 1 node, last check .+\.$/).waitFor()
  await page.getByRole('heading', { name: 'History' }).waitFor()
  await page.getByRole('link', { name: what }).first().waitFor()
  await keepPictures(page, 'over')
  const entries = auditRows(alerts.app).map(({ action }) => action)
  expect(entries).toEqual(
    expect.arrayContaining(['alert_destination_updated', 'alert_rule_updated', 'alert_acknowledged']),
  )
})

test('an administrator sees and deletes the rules of others, and an area has corners', async () => {
  const { page, goto } = visitor
  const ann = await alerts.app.user('ann')
  await alerts.rule({ kind: 'node_new', name: 'Newcomers of Ann' }, ann)
  await goto('/alerts')
  await page.getByRole('button', { name: 'Show what others watch' }).click()
  const row = page.getByRole('listitem').filter({ hasText: 'Newcomers of Ann' })
  await row.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Nobody else has rules or destinations.').waitFor()

  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByLabel('Tell me about').selectOption('area')
  await page.getByLabel('Name').fill('The lake')
  await page.getByLabel('When it', { exact: true }).selectOption('enters')
  await page.getByLabel('Area', { exact: true }).selectOption('polygon')
  await page.getByText('At least three corners').waitFor()
  for (const [index, [latitude, longitude]] of [
    ['47.3', '8.5'],
    ['47.4', '8.5'],
    ['47.4', '8.6'],
  ].entries()) {
    await page.getByRole('button', { name: 'Add a corner' }).click()
    const corner = page.getByRole('group', { name: `Corner ${index + 1}` })
    await corner.getByLabel('Latitude').fill(latitude ?? '')
    await corner.getByLabel('Longitude').fill(longitude ?? '')
  }
  await page.getByText('At least three corners').waitFor({ state: 'detached' })
  expect(await visitor.violations()).toStrictEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('strong').filter({ hasText: 'The lake' }).waitFor()
  const { rules } = Object(await (await (await alerts.app.admin()).send('GET', '/api/alerts/rules')).json())
  expect(rules.at(-1).rule.shape).toStrictEqual({
    kind: 'polygon',
    points: [
      [47.3, 8.5],
      [47.4, 8.5],
      [47.4, 8.6],
    ],
  })
})

/** Follows the link of the e-mail in the browser. */
async function confirmAddress(page: Page): Promise<void> {
  await alerts.look()
  const [letter] = letters
  const path = /\/alerts\?confirm=(?:3D)?[\w.=]+/.exec(letter?.text ?? '')?.[0]?.replace('=3D', '=')
  if (path === undefined) throw new Error(`no link in ${letter?.text}`)
  await page.goto(base + path)
  await page.getByText('The address is confirmed.').waitFor()
  await expect.poll(() => page.url()).not.toContain('confirm')
  await page.getByText('Follow the link in the e-mail').waitFor({ state: 'detached' })
}

/** A phone whose push service is simulated. */
async function subscribePhone(): Promise<void> {
  const p256dh = device.getPublicKey('base64url')
  const settings = { endpoint: 'https://push.example.org/abc', p256dh, auth: authSecret.toString('base64url') }
  const made = await (
    await alerts.app.admin()
  ).send('POST', '/api/alerts/destinations', {
    kind: 'web_push',
    name: 'Phone',
    settings,
  })
  expect(made.status).toBe(201)
}

async function expectBell(page: Page, count: number): Promise<void> {
  await page
    .getByRole('link', { name: new RegExp(`Alerts.*${count}|${count}.*firing`, 'i') })
    .first()
    .waitFor()
}

/** ALERT_PICTURES: a folder for screenshots of the page. */
async function keepPictures(page: Page, name: string): Promise<void> {
  for (const [size, width] of [
    ['desk', 1360],
    ['phone', 390],
  ] as const) {
    await page.setViewportSize({ width, height: 860 })
    expect(await overflowOf(page)).toBeLessThanOrEqual(0)
    const dir = process.env['ALERT_PICTURES']
    for (const colorScheme of dir === undefined ? [] : (['light', 'dark'] as const)) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: `${dir}/${name}-${size}-${colorScheme}.png`, fullPage: true })
    }
  }
  await page.setViewportSize({ width: 1360, height: 860 })
}
