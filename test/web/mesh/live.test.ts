import type { Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, openCutProxy } from '../../support/servers/cut-proxy.ts'
import { text, user } from '../../support/mesh/mesh.ts'
import { OPEN } from '../../support/public-access.ts'
import { isLive, openRadioSite, type RadioSite, readData, SITE_PASSWORD } from '../../support/radio/site.ts'
import { openBrowser, type SiteBrowser, type Visitor } from '../../support/web/site.ts'

const LIGHTHOUSE = 0xa0cb0010
const ALL = { read: true, write: true }
const READ = { read: true, write: false }
const NONE = { read: false, write: false }

let mesh: RadioSite
let admin: Visitor
let proxy: CutProxy
let behindProxy: SiteBrowser

beforeAll(async () => {
  mesh = await openRadioSite()
  admin = mesh.admin
  proxy = await openCutProxy(Number(new URL(mesh.site.base).port))
  behindProxy = await openBrowser(proxy.base)
})
afterAll(async () => {
  await behindProxy.close()
  await proxy.close()
  await mesh.close()
})

/** A text in the open conversation. */
const said = (page: Page, words: string) => page.locator('.message p', { hasText: words })

test('a node that is heard appears by itself, without polling', async () => {
  const { page } = admin
  await page.clock.install()
  const asked: string[] = []
  const open = new Set<Request>()
  const note = (request: Request) => {
    if (!new URL(request.url()).pathname.startsWith('/api/nodes')) return
    asked.push(request.url())
    open.add(request)
  }
  page.on('request', note)
  page.on('requestfinished', (request) => open.delete(request))
  page.on('requestfailed', (request) => open.delete(request))
  await admin.goto('/nodes')
  await page.getByText('Far Hill').waitFor()
  await isLive(admin)
  // What was asked for while the stream opened, and what waits for its turn after that.
  await page.clock.runFor(10_000)
  await expect.poll(() => open.size).toBe(0)
  asked.length = 0
  await page.clock.runFor(20_000)
  expect(asked).toEqual([])
  mesh.hear(user({ longName: 'Lighthouse', shortName: 'LITE' }), { from: LIGHTHOUSE })
  await page.getByRole('link', { name: 'Lighthouse' }).waitFor()
  expect(asked).toEqual([])
})

test('a text that cannot be sent stays, even if the user has lost the permission to send', async () => {
  const writer = await mesh.join('writer', { messages: ALL, nodes: READ })
  const { page } = writer
  await writer.goto('/messages')
  const box = page.getByLabel('Write a message')
  await box.fill('ä'.repeat(101))
  await page.getByText('202 of 200 bytes').waitFor()
  await page.getByText('2 too many').waitFor()
  await expect.poll(() => page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
  await box.fill('Stay where you are')
  await isLive(writer)
  await mesh.grant(writer.id, { messages: READ })
  mesh.hear(text('anybody there?'))
  await page.getByText('You don’t have permission to send messages now. Your text is kept in this tab.').waitFor()
  await expect
    .poll(async () => [await box.inputValue(), await box.getAttribute('readonly')])
    .toEqual(['Stay where you are', ''])
  await mesh.grant(writer.id, { messages: NONE })
  mesh.hear(text('nobody'))
  await page.getByText('It needs the permission “Messages: read”. An administrator can give you that.').waitFor()
  const links = page.getByRole('navigation', { name: 'Main' }).first().getByRole('link')
  await expect.poll(() => links.allTextContents()).not.toContain('Messages')
  await mesh.grant(writer.id, { messages: ALL })
  mesh.hear(text('welcome back'))
  await said(page, 'welcome back').waitFor()
  await expect.poll(() => box.inputValue()).toBe('Stay where you are')
})

test('without a radio nothing is lost: the text stays, and the reason is shown', async () => {
  const { page } = admin
  await admin.goto('/messages')
  await isLive(admin)
  await page.getByLabel('Write a message').fill('Can you hear me?')
  mesh.device.setSilent(true)
  mesh.device.kick()
  await page.locator('.link-state:not(.link-connected):not(.live-live)').first().waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('alert').getByText('The radio is not connected. Nothing was sent.').waitFor()
  await page.getByText('Your text is still here.').waitFor()
  await expect.poll(() => page.getByLabel('Write a message').inputValue()).toBe('Can you hear me?')
  mesh.device.setSilent(false)
  mesh.device.kick()
  await page.getByText('Radio connected').first().waitFor()
  // A radio that comes back can disconnect again: as long as the text is shown, it can be sent again.
  const sendAgain = async () => {
    const box = page.getByLabel('Write a message')
    if ((await box.inputValue()) !== '') await page.getByRole('button', { name: 'Send' }).click()
    return box.inputValue()
  }
  await expect.poll(sendAgain, { interval: 1000 }).toBe('')
  expect(new TextDecoder().decode(readData(await mesh.sent()).payload)).toBe('Can you hear me?')
})

test('a stream that is cut resumes at its position; the page waits for an unreachable service', async () => {
  const visitor = await mesh.join('traveller', { messages: READ, nodes: READ }, behindProxy)
  const { page } = visitor
  await visitor.goto('/messages')
  await isLive(visitor)
  // Not restored before that was seen.
  proxy.setBroken(true)
  await page.getByText('Reconnecting…').first().waitFor()
  mesh.hear(text('heard in the tunnel'))
  proxy.setBroken(false)
  await said(page, 'heard in the tunnel').waitFor()
  await isLive(visitor)

  proxy.setBroken(true)
  await page.getByText('The service does not respond. Trying again…').waitFor()
  await page.getByText(/This page shows data from \d\d:\d\d:\d\d/).waitFor()
  mesh.hear(text('heard behind the mountain'))
  await said(page, 'heard in the tunnel').waitFor()
  proxy.setBroken(false)
  await page.getByText('Connected again').waitFor()
  await said(page, 'heard behind the mountain').waitFor()
  await isLive(visitor)
})

test('a user with too many streams sees the same a little later', async () => {
  const visitor = await mesh.join('collector', { messages: READ, nodes: READ })
  const { page } = visitor
  // Its own stream is one of the ten.
  await isLive(visitor)
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  const streams = new AbortController()
  const open = () => fetch(`${mesh.site.base}/api/events`, { headers: { cookie }, signal: streams.signal })
  const statuses = await Promise.all(Array.from({ length: 9 }, async () => (await open()).status))
  expect(statuses).toEqual(Array.from({ length: 9 }, () => 200))
  const another = await page.context().newPage()
  await another.goto(`${mesh.site.base}/messages`)
  await another.getByText('Updated every few seconds').first().waitFor()
  mesh.hear(text('slow news'))
  await said(another, 'slow news').waitFor()
  streams.abort()
})

test('signing out ends the stream in every tab, and the other tab says why', async () => {
  const visitor = await mesh.join('guest', { messages: READ, nodes: READ })
  await visitor.goto('/nodes')
  await isLive(visitor)
  const other = await visitor.page.context().newPage()
  await other.goto(`${mesh.site.base}/messages`)
  await other.locator('.live-live').first().waitFor({ state: 'attached' })
  const isStream = (request: Request) => new URL(request.url()).pathname === '/api/events'
  // By the page that is informed, or by the service.
  const ended = Promise.race([
    other.waitForEvent('requestfailed', isStream),
    other.waitForEvent('requestfinished', isStream),
  ])
  await visitor.page.getByRole('button', { name: 'Sign out' }).first().click()
  await visitor.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await expect.poll(() => visitor.page.getByText('Your session has ended').count()).toBe(0)
  await other.getByText('Your session has ended').waitFor()
  await ended
  await other.getByLabel('Username').fill('guest')
  await other.getByLabel('Password', { exact: true }).fill(SITE_PASSWORD)
  await other.getByRole('button', { name: 'Sign in' }).click()
  await other.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
  await visitor.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()

  // The start page of somebody who may see less, in the end nothing.
  await mesh.grant(visitor.id, { dashboard: NONE, nodes: NONE, messages: NONE, info: READ })
  await visitor.goto('/')
  await visitor.page.getByRole('heading', { name: 'Traceroutes', level: 1 }).waitFor()
  await mesh.grant(visitor.id, { info: NONE })
  await visitor.goto('/')
  await visitor.page.getByRole('heading', { name: 'You have no access yet', level: 1 }).waitFor()
})

test('an anonymous visitor reads a text as it is heard, without a request, and none of another channel', async () => {
  const headers = { origin: mesh.site.base }
  const put = await admin.page.request.put(`${mesh.site.base}/api/public-access`, { headers, data: OPEN })
  expect(put.status()).toBe(200)
  mesh.hear(text('The fair begins at noon'))
  await admin.goto('/messages')
  await said(admin.page, 'The fair begins at noon').waitFor()
  const visitor = await mesh.site.visit()
  const { page } = visitor
  const stream = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/events')
  await visitor.goto('/messages')
  expect((await stream).status()).toBe(200)
  await said(page, 'The fair begins at noon').waitFor()
  const asked: string[] = []
  // The files of the other pages are loaded meanwhile.
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (!pathname.startsWith('/assets/')) asked.push(pathname)
  })
  mesh.hear(text('Meet me behind the barn'), { channel: 1 })
  mesh.hear(text('And ends at dusk'))
  await said(page, 'And ends at dusk').waitFor()
  expect(await said(page, 'behind the barn').count()).toBe(0)
  expect(asked).toEqual([])
  expect(visitor.complaints).toEqual([])
  await page.context().close()
})
