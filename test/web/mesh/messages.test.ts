import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { numberChannel } from '../../../src/meshtastic/channel-identity.ts'
import { Routing_Error } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { item } from '../../support/mesh/delivery.ts'
import { FAR, LOCAL, packet, text, user } from '../../support/mesh/mesh.ts'
import {
  FIRST_OF_MANY,
  isLive,
  openRadioSite,
  type RadioSite,
  readData,
  SITE_PASSWORD,
} from '../../support/radio/site.ts'
import { overflowOf, type Visitor } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let mesh: RadioSite
let admin: Visitor

beforeAll(async () => {
  mesh = await openRadioSite()
  admin = mesh.admin
})
afterAll(() => mesh.close())

/** A text in the open conversation. */
const said = (page: Page, words: string) => page.locator('.message p', { hasText: words })

test('a text goes through each state, and the page explains the state', async () => {
  const { page } = admin
  await admin.goto('/messages?with=!a0cb0002')
  await page.getByRole('heading', { name: 'Far Hill' }).waitFor()
  await isLive(admin)
  await page.getByLabel('Write a message').fill('Is the antenna up?')
  await page.getByLabel('Write a message').press('Enter')
  const message = page.locator('.message.out', { hasText: 'Is the antenna up?' })
  const outgoing = await mesh.sent()
  expect([outgoing.to, new TextDecoder().decode(readData(outgoing).payload)]).toEqual([FAR, 'Is the antenna up?'])
  await message.getByText('Sent by the radio').waitFor()
  await expect.poll(() => page.getByLabel('Write a message').inputValue()).toBe('')
  mesh.confirm(outgoing, LOCAL)
  await message.getByText('Relayed by another node').waitFor()
  await message.getByRole('button', { name: 'Details' }).click()
  await message.getByText('The recipient has not acknowledged it yet.').waitFor()
  expect(await admin.violations()).toEqual([])
  mesh.confirm(outgoing, FAR)
  await message.getByText('Delivered', { exact: true }).waitFor()
  await message.getByText('The recipient acknowledged it.').waitFor()
})

test('what is typed while a text is being sent stays', async () => {
  const { page } = admin
  const box = page.getByLabel('Write a message')
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/messages', async (route) => {
    const response = await route.fetch()
    await released
    await route.fulfill({ response })
  })
  await box.fill('On my way')
  await box.press('Enter')
  expect(new TextDecoder().decode(readData(await mesh.sent()).payload)).toBe('On my way')
  await box.pressSequentially(' and nearly there')
  release()
  await page.getByRole('button', { name: 'Send', disabled: false }).waitFor()
  expect(await box.inputValue()).toBe('and nearly there')
  await page.unroute('**/api/messages')
  await box.press('Enter')
  expect(new TextDecoder().decode(readData(await mesh.sent()).payload)).toBe('and nearly there')
  await expect.poll(() => box.inputValue()).toBe('')
})

test('a failed text says why, and what to do', async () => {
  const { page } = admin
  await page.getByLabel('Write a message').fill('Anybody?')
  await page.getByRole('button', { name: 'Send' }).click()
  const message = page.locator('.message.out', { hasText: 'Anybody?' })
  await message.getByText('Waiting for the radio').or(message.getByText('Sent by the radio')).waitFor()
  mesh.confirm(await mesh.sent(), LOCAL, Routing_Error.MAX_RETRANSMIT)
  await message.getByText('Not delivered').waitFor()
  await message.getByRole('button', { name: 'Details' }).click()
  await message.getByText('The radio sent it three times without an acknowledgement.').waitFor()
})

test('a text that was not delivered is sent again with one press', async () => {
  const { page } = admin
  const failed = page.locator('.message.out', { hasText: 'Anybody?' })
  await failed.getByRole('button', { name: 'Send again' }).click()
  const again = await mesh.sent()
  expect([again.to, new TextDecoder().decode(readData(again).payload)]).toEqual([FAR, 'Anybody?'])
  mesh.confirm(again, FAR)
  await failed.getByText('Delivered', { exact: true }).waitFor()
  // Only what failed offers it.
  expect(await failed.getByRole('button', { name: 'Send again' }).count()).toBe(1)
})

test('the node to write to is found by its name, with the keyboard alone', async () => {
  const { page, goto } = admin
  await goto('/messages')
  await page.getByRole('button', { name: 'Write to a node…' }).click()
  const field = page.getByRole('combobox', { name: 'Recipient' })
  await field.fill('far')
  await page.getByRole('option', { name: 'Far Hill' }).waitFor()
  expect(await admin.violations()).toEqual([])
  await field.press('Enter')
  await page.getByRole('heading', { name: 'Far Hill' }).waitFor()
  expect(new URL(page.url()).search).toBe('?with=!a0cb0002')
})

test('new messages are counted until they are seen, and answered with a quote or a reaction', async () => {
  const { page } = admin
  await admin.goto('/packets')
  await isLive(admin)
  const badge = page.getByRole('link', { name: 'Messages 2 unread' })
  mesh.hear(text('Storm from the west tonight'), { id: 0x5000 })
  mesh.hear(text('Take the flags down'), { id: 0x5001 })
  await badge.waitFor()
  await badge.click()
  const message = page.locator('.message.in', { hasText: 'Storm from the west tonight' })
  await message.waitFor()
  await page.getByText('New', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Messages', exact: true }).waitFor()

  await message.getByRole('button', { name: 'Details' }).click()
  await message.getByRole('table', { name: 'Who heard it' }).getByRole('cell', { name: '6.25 dB' }).waitFor()

  await message.getByRole('button', { name: 'React' }).click()
  expect(await admin.violations()).toEqual([])
  await message.getByRole('button', { name: 'Thumbs up' }).click()
  const sign = readData(await mesh.sent())
  expect([new TextDecoder().decode(sign.payload), sign.emoji, sign.replyId]).toEqual(['👍', 1, 0x5000])
  await message.getByRole('button', { name: '👍 Test Radio' }).waitFor()
  mesh.hear(text('👍', { emoji: 1, replyId: 0x5000 }))
  await message.getByRole('button', { name: '👍 Test Radio, Far Hill' }).waitFor()

  await message.getByRole('button', { name: 'Reply' }).click()
  // The text may turn its direction, and nothing around it.
  expect(await page.locator('.reply bdi').textContent()).toBe('Storm from the west tonight')
  const box = page.getByLabel('Write a message')
  await box.pressSequentially('Thank you')
  await box.press('Escape')
  await expect.poll(() => page.locator('.reply').count()).toBe(0)
  await message.getByRole('button', { name: 'Reply' }).click()
  await box.press('Shift+Enter')
  await box.pressSequentially('we are in')
  await box.press('Enter')
  const reply = readData(await mesh.sent())
  expect([new TextDecoder().decode(reply.payload), reply.replyId]).toEqual(['Thank you\nwe are in', 0x5000])
  await page.locator('.message.out').getByRole('button', { name: 'Far Hill Storm from the west tonight' }).click()
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('Storm from the west tonight')
})

test('a muted channel shows no number, in the list and in the navigation', async () => {
  const { page } = admin
  mesh.hear(text('weather again'), { channel: 3 })
  await admin.goto('/messages?channel=3')
  await said(page, 'weather again').waitFor()
  await page.getByRole('button', { name: 'Mute' }).click()
  expect(await admin.violations()).toEqual([])
  await admin.goto('/messages?with=!a0cb0002')
  await isLive(admin)
  mesh.hear(text('and more weather'), { channel: 3 })
  await page.getByRole('link', { name: /^Channel 3 Muted Far Hill: and more weather/ }).waitFor()
  await page.getByRole('link', { name: 'Messages', exact: true }).first().waitFor()
  await page.getByRole('link', { name: /^Channel 3/ }).click()
  await page.getByRole('button', { name: 'Unmute' }).click()
  await admin.goto('/messages?with=!a0cb0002')
  await isLive(admin)
  mesh.hear(text('snow at last'), { channel: 3 })
  await page.getByRole('link', { name: /^Channel 3 1 unread/ }).waitFor()
})

test('the button to write to a node is in view, however many conversations there are', async () => {
  const { page } = admin
  for (let index = 0; index < 40; index++) {
    mesh.hear(text(`only for you ${index}`), { from: FIRST_OF_MANY + index, to: LOCAL })
  }
  await admin.goto('/messages')
  await page.getByRole('link', { name: /only for you 39/ }).waitFor()
  const button = page.getByRole('button', { name: 'Write to a node…' })
  const isInView = async () => {
    const place = await button.boundingBox()
    return page.evaluate(`document.elementFromPoint(${place?.x} + 9, ${place?.y} + 9)?.className`)
  }
  expect(await isInView()).toContain('new-direct')
  await page.locator('.conversations').evaluate((box) => box.scrollTo(0, box.scrollHeight))
  expect(await isInView()).toContain('new-direct')
})

test('a user who reads further up is not moved by new messages, and returns with one press', async () => {
  const { page } = admin
  for (let n = 0; n < 30; n++) mesh.hear(text(`line ${n} of a long story`))
  await admin.goto('/messages?channel=0')
  await said(page, 'line 29 of a long story').waitFor()
  await isLive(admin)
  await page.locator('.log').hover()
  await page.mouse.wheel(0, -900)
  const down = page.getByRole('button', { name: 'Go to the latest' })
  await down.waitFor()
  const place = () =>
    page.getByText('line 15 of a long story').evaluate((element) => element.getBoundingClientRect().top)
  // One turn of the wheel has a limit.
  let before = NaN
  const hasStopped = async () => {
    const last = before
    before = await place()
    return before === last
  }
  await expect.poll(hasStopped, { interval: 200 }).toBe(true)
  mesh.hear(text('and then it ended'))
  await page.getByRole('button', { name: '1 new message' }).waitFor()
  await expect.poll(place).toBe(before)
  await page.getByRole('button', { name: '1 new message' }).click()
  await expect.poll(() => page.getByRole('button', { name: /new message|newest/ }).count()).toBe(0)
  await page.locator('.message', { hasText: 'and then it ended' }).waitFor()
  await page.locator('[role=status].sr-only', { hasText: 'Far Hill: and then it ended' }).waitFor({ state: 'attached' })
})

test('older messages are loaded on scrolling up', async () => {
  const { page } = admin
  for (let n = 0; n < 70; n++) mesh.hear(text(`chapter ${n} of the log`))
  await admin.goto('/messages?channel=0')
  await said(page, 'chapter 69 of the log').waitFor()
  await expect.poll(() => page.getByText('Storm from the west tonight').count()).toBe(0)
  const scrollUp = async () => {
    await page.evaluate("document.querySelector('.log').scrollTo(0, 0)")
    return said(page, 'Storm from the west tonight').count()
  }
  await expect.poll(scrollUp).toBe(1)
})

test('the message that another one answers is found further up', async () => {
  const { page } = admin
  mesh.hear(text('Who has the key of the tower?'), { id: 0x6000 })
  for (let n = 0; n < 130; n++) mesh.hear(text(`noise ${n} on the line`))
  mesh.hear(text('The key is with me', { replyId: 0x6000 }))
  mesh.hear(text('It never was', { replyId: 0x6fff }))
  await admin.goto('/messages?channel=0')
  const answer = page.locator('.message', { hasText: 'The key is with me' })
  await answer.getByRole('button', { name: 'In reply to an earlier message' }).click()
  await page.locator('article:focus', { hasText: 'Who has the key of the tower?' }).waitFor()
  await page.getByRole('button', { name: 'Go to the latest' }).click()
  await answer.getByRole('button', { name: 'Far Hill Who has the key of the tower?' }).waitFor()
  const lost = page.locator('.message', { hasText: 'It never was' })
  await lost.getByText('In reply to a message that is not stored here').waitFor()
})

test('a channel that is disabled in the radio offers no field to write', async () => {
  const { page } = admin
  mesh.hear(text('left over from last year'), { channel: 5 })
  await admin.goto('/messages?channel=5')
  const message = page.locator('.message', { hasText: 'left over from last year' })
  await message.waitFor()
  await page.getByText('This channel is disabled in the radio.').waitFor()
  await expect.poll(() => page.getByLabel('Write a message').count()).toBe(0)
  await expect.poll(() => message.getByRole('button', { name: 'Reply' }).count()).toBe(0)
})

test('a channel that no radio has is shown by its name, and cannot be written to', async () => {
  const { page } = admin
  const { base } = mesh.site
  const headers = { origin: base }
  const data = { name: 'collector', scopes: ['ingest'] }
  const made = await page.request.post(`${base}/api/tokens`, { headers, data })
  const number = numberChannel('8:Valley')
  const told = { case: 'channel', value: { index: number, role: 2, settings: { name: 'Valley' } } } as const
  const heard = packet(text('down here'), { channel: number, from: 0xa0cb0042 })
  const answer = await fetch(`${base}/api/ingest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${Object(await made.json()).token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ source: 'mqtt://broker', packets: [item(told), item(heard)] }),
  })
  expect(await answer.json()).toMatchObject({ accepted: 2, rejected: [] })
  await admin.goto('/messages')
  await page.getByRole('link', { name: 'Valley' }).click()
  const message = page.locator('.message', { hasText: 'down here' })
  await message.waitFor()
  await page.getByRole('heading', { name: 'Valley' }).waitFor()
  await page.getByText('The sending radio does not have this channel.').waitFor()
  await expect.poll(() => page.getByLabel('Write a message').count()).toBe(0)
  await expect.poll(() => message.getByRole('button', { name: 'Reply' }).count()).toBe(0)
  await admin.goto('/nodes/!a0cb0042')
  await page.getByText('Valley', { exact: true }).waitFor()
})

test.each(['?channel=abc&with=nobody', '?channel=-1', '?with=!00000000', `?q=${'x'.repeat(300)}`])(
  'an unknown conversation in the address shows all of them: %s',
  async (query) => {
    await admin.goto(`/messages${query}`)
    await admin.page.getByRole('heading', { name: 'Everything' }).waitFor()
    await expect.poll(() => admin.page.getByRole('alert').count()).toBe(0)
  },
)

test('a name is shown as text, whatever it contains, and widens no page', async () => {
  const HOSTILE = 0xa0cb0066
  const name = '<img src=x onerror=alert(1)>' + 'W'.repeat(8)
  mesh.hear(user({ longName: name, shortName: '\u3000 ' }), { from: HOSTILE })
  mesh.hear(text('<script>alert(1)</script>' + 'M'.repeat(150)), { from: HOSTILE })
  const visitor = await mesh.site.visit(PHONE)
  await visitor.goto('/messages?channel=0')
  await visitor.signIn('admin', SITE_PASSWORD)
  await said(visitor.page, '<script>alert(1)</script>').waitFor()
  for (const path of ['/messages?channel=0', '/nodes', '/nodes/!a0cb0066', '/packets', '/traceroutes']) {
    await visitor.goto(path)
    if (path === '/traceroutes') {
      await visitor.page.getByRole('button', { name: 'New traceroute' }).click()
      await visitor.page.getByLabel('Node', { exact: true }).fill('a0cb0066')
    }
    await visitor.page
      .getByText(name)
      .or(visitor.page.getByRole('option', { name }))
      .first()
      .waitFor({ state: 'attached' })
    await expect.poll(async () => [path, await overflowOf(visitor.page)]).toEqual([path, 0])
  }
  expect(visitor.complaints).toEqual([])
})

test('a link leads to its message, even if many came after it', async () => {
  const { page, goto } = admin
  mesh.hear(text('The spare key hangs in the shed'), { id: 0x5100 })
  await goto('/messages?channel=0')
  const message = page.locator('.message.in', { hasText: 'The spare key hangs in the shed' })
  await message.getByRole('button', { name: 'Details' }).click()
  const link = await message.getByRole('link', { name: 'Link to this message' }).getAttribute('href')
  expect(link).toMatch(/^\/messages\?channel=0&message=\d+$/)
  for (let n = 0; n < 80; n++) mesh.hear(text(`line ${n} of another long story`))
  // The details that are open are being read.
  await page.getByRole('button', { name: '80 new messages' }).click()
  await said(page, 'line 79 of another long story').waitFor()
  await goto(String(link))
  await expect
    .poll(() => page.evaluate('document.activeElement.textContent'))
    .toContain('The spare key hangs in the shed')
  await goto('/messages?channel=0&message=999999999')
  await page
    .getByText('The linked message was not found. It is older than the messages searched, or was deleted.')
    .waitFor()
})

test('a search marks its hits, is narrowed to a sender and a time, and leads into the conversation', async () => {
  const { page, goto } = admin
  await goto('/messages')
  await page.getByLabel('Search messages').fill('SPARE key')
  await expect.poll(() => page.locator('.message mark').allTextContents()).toEqual(['spare', 'key'])
  await page.getByLabel('Search messages').fill('"key hangs" spare:')
  await page.getByText('No message matches.').waitFor()
  await page.getByLabel('Search messages').fill('spare:key')
  await page.getByRole('alert').getByText('There is no spare:').waitFor()
  await page.getByLabel('Search messages').fill('"key hangs" from:far')
  await page.getByRole('option', { name: 'from:"Far Hill"' }).waitFor()
  expect(await admin.violations()).toEqual([])
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('"key hangs" from:"Far Hill"')
  await expect.poll(() => page.locator('.message mark').allTextContents()).toEqual(['key hangs'])
  await page.getByRole('button', { name: /^Filters/ }).click()
  await page.getByRole('combobox', { name: 'Sender' }).fill('far hill')
  await page.getByRole('option', { name: 'Far Hill' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('node')).toBe('!a0cb0002')
  expect(await admin.violations()).toEqual([])
  await page.getByLabel('Time', { exact: true }).selectOption('From … to …')
  await page.getByLabel('From', { exact: true }).fill('2019-12-31T10:00')
  await page.getByLabel('To', { exact: true }).fill('2020-01-01T10:00')
  await page.getByText('No message matches.').waitFor()
  await page.getByLabel('To', { exact: true }).fill('2019-01-01T10:00')
  await page.getByText('The end must be after the beginning.').waitFor()
  await page.getByLabel('To', { exact: true }).fill('2099-01-01T10:00')
  await page.getByRole('link', { name: 'Show in conversation' }).click()
  await expect
    .poll(() => page.evaluate('document.activeElement.textContent'))
    .toContain('The spare key hangs in the shed')
  expect(await page.locator('.message').count()).toBeGreaterThan(1)
})

test('none of this caused an error in the console or a request to another host', () => {
  expect(admin.complaints).toEqual([])
})

describe.each([
  ['light and dark', {}],
  ['on a phone', { colorScheme: 'dark', ...PHONE }],
] as const)('%s', (_name, options) => {
  test('a conversation with all of its parts is accessible, and not too wide', async () => {
    const visitor = await mesh.site.visit(options)
    const { page } = visitor
    await visitor.goto('/messages?with=!a0cb0002')
    await visitor.signIn('admin', SITE_PASSWORD)
    await page.locator('.message').first().waitFor()
    await page.getByRole('button', { name: 'Details' }).first().click()
    await page.getByText('No other gateway has reported hearing it.').waitFor()
    await page.getByRole('button', { name: 'Reply' }).first().click()
    await page.getByRole('button', { name: 'React' }).first().click()
    await page.getByLabel('Write a message').fill('x'.repeat(230))
    await page.getByText('30 too many').waitFor()
    expect(await visitor.violations()).toEqual([])
    await expect.poll(() => overflowOf(page)).toBe(0)
    expect(visitor.complaints).toEqual([])
  })
})
