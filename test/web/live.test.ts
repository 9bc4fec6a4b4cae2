import { create, toBinary } from '@bufbuild/protobuf'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MeshPacket } from '../../src/meshtastic/gen/packet_pb.ts'
import { RoutingSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { type CutProxy, openCutProxy } from '../support/cut-proxy.ts'
import { FAR, LOCAL, packet, text, user } from '../support/mesh.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../support/radio-device.ts'
import { openBrowser, openSite, type Site, type SiteBrowser, type Visitor } from '../support/web-site.ts'

const PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let device: RadioDevice
let site: Site
let proxy: CutProxy
let behindProxy: SiteBrowser
let admin: Visitor

beforeAll(async () => {
  device = await startRadioDevice()
  site = await openSite({ ADMIN_PASSWORD: PASSWORD, DEMO: 'false', MESHTASTIC_TCP: `127.0.0.1:${device.port}` })
  proxy = await openCutProxy(Number(new URL(site.base).port))
  behindProxy = await openBrowser(proxy.base)
  admin = await site.visit()
  await admin.goto('/')
  await admin.signIn('admin', PASSWORD)
  await isLive(admin)
})
afterAll(async () => {
  await behindProxy.close()
  await proxy.close()
  await site.close()
  await device.stop()
})

const isLive = ({ page }: Visitor) => page.locator('.live-live').first().waitFor({ state: 'attached' })

/** A text in the conversation that is open. */
const said = (page: Page, words: string) => page.locator('.message p', { hasText: words })

/** What the radio hears next. */
function hear(...sent: Parameters<typeof packet>): void {
  device.send(fromRadio(packet(...sent)))
}

/** The packet that the radio got next. */
async function sent(): Promise<MeshPacket> {
  const { payloadVariant } = await device.next('packet')
  if (payloadVariant.case !== 'packet') throw new Error('no packet')
  return payloadVariant.value
}

function readData({ payloadVariant }: MeshPacket) {
  if (payloadVariant.case !== 'decoded') throw new Error('not readable')
  return payloadVariant.value
}

/** Somebody says that a packet of ours came through: the radio itself, or the receiver. */
function confirm({ id }: MeshPacket, from: number): void {
  const payload = toBinary(RoutingSchema, create(RoutingSchema, { variant: { case: 'errorReason', value: 0 } }))
  const decoded = { case: 'decoded', value: { portnum: PortNum.ROUTING_APP, payload, requestId: id } } as const
  const signal = from === LOCAL ? {} : { rxRssi: -70 }
  const ackId = from === LOCAL ? id - 1 : id - 2
  device.send(fromRadio({ case: 'packet', value: { from, to: LOCAL, id: ackId, ...signal, payloadVariant: decoded } }))
}

/** Somebody else, who may do this much. */
async function join(
  username: string,
  permissions: object,
  browser: SiteBrowser = site,
): Promise<Visitor & { readonly id: number }> {
  const { request } = admin.page
  const headers = { origin: site.base }
  const made = await request.post(`${site.base}/api/users`, { headers, data: { username, password: PASSWORD } })
  const { id } = Object(Object(await made.json()).user)
  await grant(id, permissions)
  const visitor = await browser.visit()
  await visitor.goto('/')
  await visitor.signIn(username, PASSWORD)
  await isLive(visitor)
  return { ...visitor, id }
}

async function grant(id: number, permissions: object): Promise<void> {
  const headers = { origin: site.base }
  const url = `${site.base}/api/users/${id}/permissions`
  const answer = await admin.page.request.put(url, { headers, data: { permissions } })
  expect(answer.status()).toBe(200)
}

const ALL = { read: true, write: true }
const READ = { read: true, write: false }
const NONE = { read: false, write: false }

test('a node that is heard appears by itself, without anybody asking from time to time', async () => {
  const { page } = admin
  await page.clock.install()
  await admin.goto('/nodes')
  await page.getByText('Far Hill').waitFor()
  await isLive(admin)
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.clock.runFor(30_000)
  expect(asked.filter((path) => path.startsWith('/api/nodes'))).toEqual([])
  hear(user({ longName: 'Lighthouse', shortName: 'LITE' }), { from: 0xa0cb0010 })
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor({ timeout: 4000 })
  expect(asked.filter((path) => path.startsWith('/api/nodes'))).toEqual([`/api/nodes/${0xa0cb0010}`])
})

test('a text goes through each state, and says what the state means', async () => {
  const { page } = admin
  await admin.goto('/messages?with=!a0cb0002')
  await page.getByRole('heading', { name: 'Far Hill' }).waitFor()
  await isLive(admin)
  await page.getByLabel('Write a message').fill('Is the antenna up?')
  await page.getByLabel('Write a message').press('Enter')
  const message = page.locator('.message.out', { hasText: 'Is the antenna up?' })
  const outgoing = await sent()
  expect([outgoing.to, new TextDecoder().decode(readData(outgoing).payload)]).toEqual([FAR, 'Is the antenna up?'])
  await message.getByText('Sent by the radio').waitFor()
  expect(await page.getByLabel('Write a message').inputValue()).toBe('')
  confirm(outgoing, LOCAL)
  await message.getByText('Repeated by another node').waitFor()
  await message.getByRole('button', { name: 'Details' }).click()
  await message.getByText('The receiver has not confirmed it yet.').waitFor()
  expect(await admin.violations()).toEqual([])
  confirm(outgoing, FAR)
  await message.getByText('Delivered', { exact: true }).waitFor()
  await message.getByText('The receiver confirmed it.').waitFor()
})

test('what comes in is counted until it is seen, and answered with a quote or a sign', async () => {
  const { page } = admin
  await admin.goto('/packets')
  await isLive(admin)
  const badge = page.getByRole('link', { name: 'Messages 2 unread' })
  hear(text('Storm from the west tonight'), { id: 0x5000 })
  hear(text('Take the flags down'), { id: 0x5001 })
  await badge.waitFor()
  await badge.click()
  const message = page.locator('.message.in', { hasText: 'Storm from the west tonight' })
  await message.waitFor()
  await page.getByText('New', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Messages', exact: true }).waitFor()

  await message.getByRole('button', { name: 'React' }).click()
  expect(await admin.violations()).toEqual([])
  await message.getByRole('button', { name: 'Thumbs up' }).click()
  const sign = readData(await sent())
  expect([new TextDecoder().decode(sign.payload), sign.emoji, sign.replyId]).toEqual(['👍', 1, 0x5000])
  await message.getByRole('button', { name: '👍 Test Radio' }).waitFor()
  hear(text('👍', { emoji: 1, replyId: 0x5000 }))
  await message.getByRole('button', { name: '👍 Test Radio, Far Hill' }).waitFor()

  await message.getByRole('button', { name: 'Reply' }).click()
  const box = page.getByLabel('Write a message')
  await box.pressSequentially('Thank you')
  await box.press('Escape')
  await expect.poll(() => page.locator('.reply').count()).toBe(0)
  await message.getByRole('button', { name: 'Reply' }).click()
  await box.press('Shift+Enter')
  await box.pressSequentially('we are in')
  await box.press('Enter')
  const reply = readData(await sent())
  expect([new TextDecoder().decode(reply.payload), reply.replyId]).toEqual(['Thank you\nwe are in', 0x5000])
  await page.locator('.message.out').getByRole('button', { name: 'Far Hill Storm from the west tonight' }).click()
  expect(await page.evaluate('document.activeElement.textContent')).toContain('Storm from the west tonight')
})

test('who reads further up is not moved by what arrives, and comes down with one press', async () => {
  const { page } = admin
  for (let n = 0; n < 30; n++) hear(text(`line ${n} of a long story`))
  await admin.goto('/messages?channel=0')
  await said(page, 'line 29 of a long story').waitFor()
  await isLive(admin)
  await page.locator('.log').hover()
  await page.mouse.wheel(0, -900)
  const down = page.getByRole('button', { name: 'To the newest' })
  await down.waitFor()
  const place = () =>
    page.getByText('line 15 of a long story').evaluate((element) => element.getBoundingClientRect().top)
  const before = await place()
  hear(text('and then it ended'))
  await page.getByRole('button', { name: '1 new message' }).waitFor()
  expect(await place()).toBe(before)
  await page.getByRole('button', { name: '1 new message' }).click()
  await expect.poll(() => page.getByRole('button', { name: /new message|newest/ }).count()).toBe(0)
  await page.locator('.message', { hasText: 'and then it ended' }).waitFor()
  await page.locator('[role=status].sr-only', { hasText: 'Far Hill: and then it ended' }).waitFor({ state: 'attached' })
})

test('older messages come when they are scrolled to', async () => {
  const { page } = admin
  for (let n = 0; n < 70; n++) hear(text(`chapter ${n} of the log`))
  await admin.goto('/messages?channel=0')
  await said(page, 'chapter 69 of the log').waitFor()
  await expect.poll(() => page.getByText('Storm from the west tonight').count()).toBe(0)
  await page.evaluate("document.querySelector('.log').scrollTo(0, 0)")
  await page.locator('p', { hasText: 'Storm from the west tonight' }).waitFor({ state: 'attached' })
})

test('all of this without an error in the console or a request to another host', () => {
  expect(admin.complaints).toEqual([])
})

test('a text that cannot be sent stays, and so does one that the writer may no longer send', async () => {
  const writer = await join('writer', { messages: ALL, nodes: READ })
  const { page } = writer
  await writer.goto('/messages')
  const box = page.getByLabel('Write a message')
  await box.fill('ä'.repeat(101))
  await page.getByText('202 of 200 bytes').waitFor()
  await page.getByText('2 too many').waitFor()
  expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
  await box.fill('Stay where you are')
  await isLive(writer)
  await grant(writer.id, { messages: READ })
  hear(text('anybody there?'))
  await page.getByText('You may no longer send messages. Your text is kept in this tab.').waitFor()
  expect([await box.inputValue(), await box.getAttribute('readonly')]).toEqual(['Stay where you are', ''])
  await grant(writer.id, { messages: NONE })
  hear(text('nobody'))
  await page.getByText('It needs the permission “Messages: read”. An administrator can give you that.').waitFor()
  const names = await page.getByRole('navigation', { name: 'Main' }).first().getByRole('link').allTextContents()
  expect(names).not.toContain('Messages')
  await grant(writer.id, { messages: ALL })
  hear(text('welcome back'))
  await said(page, 'welcome back').waitFor()
  expect(await box.inputValue()).toBe('Stay where you are')
})

test('without a radio nothing is lost: the text stays, and the reason is said', async () => {
  const { page } = admin
  await admin.goto('/messages')
  await isLive(admin)
  await page.getByLabel('Write a message').fill('Can you hear me?')
  device.setSilent(true)
  device.kick()
  await page.locator('.link-state:not(.link-connected):not(.live-live)').first().waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('alert').getByText('The radio is not connected. Nothing was sent.').waitFor()
  await page.getByText('Your text is still here.').waitFor()
  expect(await page.getByLabel('Write a message').inputValue()).toBe('Can you hear me?')
  device.setSilent(false)
  device.kick()
  await page.getByText('Radio connected').first().waitFor()
  await page.getByRole('button', { name: 'Send' }).click()
  expect(new TextDecoder().decode(readData(await sent()).payload)).toBe('Can you hear me?')
})

test('a stream that is cut goes on where it was; a service that is away is waited for', async () => {
  const visitor = await join('traveller', { messages: READ, nodes: READ }, behindProxy)
  const { page } = visitor
  await visitor.goto('/messages')
  await isLive(visitor)
  proxy.cut()
  await page.getByText('Reconnecting…').first().waitFor()
  hear(text('heard in the tunnel'))
  await said(page, 'heard in the tunnel').waitFor()
  await isLive(visitor)

  proxy.setBroken(true)
  await page.getByText('The service does not answer. Trying again…').waitFor()
  await page.getByText(/What you see is from \d\d:\d\d:\d\d/).waitFor()
  hear(text('heard behind the mountain'))
  await said(page, 'heard in the tunnel').waitFor()
  proxy.setBroken(false)
  await page.getByText('Connected again').waitFor()
  await said(page, 'heard behind the mountain').waitFor()
  await isLive(visitor)
})

test('whoever has too many streams sees the same a little later', async () => {
  const visitor = await join('collector', { messages: READ, nodes: READ })
  const { page } = visitor
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  const streams = new AbortController()
  const open = () => fetch(`${site.base}/api/events`, { headers: { cookie }, signal: streams.signal })
  const statuses = await Promise.all(Array.from({ length: 9 }, async () => (await open()).status))
  expect(statuses).toEqual(Array.from({ length: 9 }, () => 200))
  const another = await page.context().newPage()
  await another.goto(`${site.base}/messages`)
  await another.getByText('Updated every few seconds').first().waitFor()
  hear(text('slow news'))
  await said(another, 'slow news').waitFor()
  streams.abort()
})

test('signing out ends the stream, in every tab, and the other tab says why', async () => {
  const visitor = await join('guest', { messages: READ, nodes: READ })
  await visitor.goto('/nodes')
  await isLive(visitor)
  const other = await visitor.page.context().newPage()
  await other.goto(`${site.base}/messages`)
  await other.locator('.live-live').first().waitFor({ state: 'attached' })
  const ended = other.waitForEvent('requestfailed', (request) => request.url().endsWith('/api/events'))
  await visitor.page.getByRole('button', { name: 'Sign out' }).first().click()
  await visitor.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await visitor.page.getByText('Your session has ended').count()).toBe(0)
  await other.getByText('Your session has ended').waitFor()
  await ended
  await other.getByLabel('Username').fill('guest')
  await other.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await other.getByRole('button', { name: 'Sign in' }).click()
  await other.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
  await visitor.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
})

describe.each([
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['on a phone', { colorScheme: 'dark', ...PHONE }],
] as const)('%s', (_name, options) => {
  test('a conversation with all of its parts is accessible, and not too wide', async () => {
    const visitor = await site.visit(options)
    const { page } = visitor
    await visitor.goto('/messages?with=!a0cb0002')
    await visitor.signIn('admin', PASSWORD)
    await page.locator('.message').first().waitFor()
    await page.getByRole('button', { name: 'Details' }).first().click()
    await page.getByText('No other gateway has reported hearing it.').waitFor()
    await page.getByRole('button', { name: 'Reply' }).first().click()
    await page.getByRole('button', { name: 'React' }).first().click()
    await page.getByLabel('Write a message').fill('x'.repeat(230))
    await page.getByText('30 too many').waitFor()
    expect(await visitor.violations()).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    expect(visitor.complaints).toEqual([])
  })
})
