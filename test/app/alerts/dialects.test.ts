import { ENGLISH } from '../../../src/app/words/words.ts'
import { expect, test } from 'vitest'
import { toApprise } from '../../../src/app/alerts/destinations/senders/apprise.ts'
import { toDiscord } from '../../../src/app/alerts/destinations/senders/discord.ts'
import { toGotify } from '../../../src/app/alerts/destinations/senders/gotify.ts'
import { toMatrix } from '../../../src/app/alerts/destinations/senders/matrix.ts'
import { toNtfy } from '../../../src/app/alerts/destinations/senders/ntfy.ts'
import { toPushover } from '../../../src/app/alerts/destinations/senders/pushover.ts'
import type { Sending } from '../../../src/app/base/outgoing/request.ts'
import { toSlack } from '../../../src/app/alerts/destinations/senders/slack.ts'
import { toTelegram } from '../../../src/app/alerts/destinations/senders/telegram.ts'
import { cleanText } from '../../../src/app/alerts/names.ts'
import { shownName } from '../../../src/app/alerts/world/node-names.ts'
import { tellAlerts, type AlertNotification } from '../../../src/app/alerts/notification.ts'

// What these services accept comes from their documentation, which each sender names; no service is called.

const PUBLIC_URL = 'https://mesh.example.org'
const ABOUT = {
  uid: 'msg_1',
  notification: 'fired',
  at: 1_700_000_000_000,
  publicUrl: PUBLIC_URL,
  words: ENGLISH,
} as const

/** A message about nodes with these names, whose rule has the first one. */
function message(
  names: readonly string[],
  about: { notification?: AlertNotification['notification'] } = {},
): AlertNotification {
  const alerts = names.map((name, id) => {
    const what = `${cleanText(name, 300)} was not heard for 2 h`
    return { id, what, fact: null, nodeNum: 0xa0cb0001, startedAt: 1, firedAt: 2, resolvedAt: null }
  })
  const rule = { id: 1, name: names[0] ?? '', kind: 'node_silent' as const }
  return tellAlerts({ ...ABOUT, ...about }, rule, alerts, alerts.length)
}

const SENDERS: Readonly<Record<string, (message: AlertNotification) => Sending>> = {
  ntfy: (notification) => toNtfy({ server: 'https://ntfy.sh', topic: 'mesh', token: 'tk_1' }, notification),
  gotify: (notification) => toGotify({ server: 'https://gotify.example.org', token: 'A1' }, notification),
  discord: (notification) => toDiscord({ url: 'https://discord.com/api/webhooks/1/x' }, notification),
  slack: (notification) => toSlack({ url: 'https://hooks.slack.com/services/T/B/x' }, notification),
  telegram: (notification) =>
    toTelegram({ server: 'https://api.telegram.org', token: '1:abc', chat: '-100' }, notification),
  matrix: (notification) =>
    toMatrix({ server: 'https://m.example.org', room: '!a:example.org', token: 'syt' }, notification),
  pushover: (notification) => toPushover({ user: 'u', token: 't' }, notification),
  apprise: (notification) => toApprise({ url: 'https://apprise.example.org/notify/key' }, notification),
}

const bodyOf = (kind: string, notification: AlertNotification) =>
  Object(JSON.parse(String(SENDERS[kind]?.(notification).body)))
/** The text that people read in a message. */
function shownBy(kind: string, notification: AlertNotification): { title: string; text: string } {
  const { title = '', message: plain, content, text, body } = bodyOf(kind, notification)
  return { title, text: plain ?? content ?? text ?? body }
}

const WHAT = 'Ridge was not heard for 2 h'
const LINK = `${PUBLIC_URL}/nodes/!a0cb0001`
const TYPE = { 'content-type': 'application/json' }

test.each<[string, object, object]>([
  [
    'ntfy',
    { url: 'https://ntfy.sh/', method: 'POST', headers: { ...TYPE, authorization: 'Bearer tk_1' } },
    { topic: 'mesh', title: 'Ridge', message: WHAT, priority: 4, tags: ['satellite'], click: LINK },
  ],
  [
    'gotify',
    { url: 'https://gotify.example.org/message', method: 'POST', headers: { ...TYPE, 'x-gotify-key': 'A1' } },
    {
      title: 'Ridge',
      message: `${WHAT}\n${LINK}`,
      priority: 5,
      extras: { 'client::display': { contentType: 'text/plain' }, 'client::notification': { click: { url: LINK } } },
    },
  ],
  [
    'discord',
    { url: 'https://discord.com/api/webhooks/1/x', method: 'POST', headers: TYPE },
    { content: `**Ridge**\n${WHAT}\n${LINK}`, allowed_mentions: { parse: [] }, flags: 4 },
  ],
  [
    'slack',
    { url: 'https://hooks.slack.com/services/T/B/x', method: 'POST', headers: TYPE },
    { text: `Ridge\n${WHAT}\n${LINK}`, mrkdwn: false, unfurl_links: false, unfurl_media: false },
  ],
  [
    'telegram',
    { url: 'https://api.telegram.org/bot1:abc/sendMessage', method: 'POST', headers: TYPE },
    { chat_id: '-100', text: `Ridge\n${WHAT}\n${LINK}`, link_preview_options: { is_disabled: true } },
  ],
  [
    'matrix',
    {
      url: 'https://m.example.org/_matrix/client/v3/rooms/!a%3Aexample.org/send/m.room.message/msg_1',
      method: 'PUT',
      headers: { ...TYPE, authorization: 'Bearer syt' },
    },
    { msgtype: 'm.text', body: `Ridge\n${WHAT}\n${LINK}`, 'm.mentions': {} },
  ],
  [
    'pushover',
    { url: 'https://api.pushover.net/1/messages.json', method: 'POST', headers: TYPE },
    { token: 't', user: 'u', title: 'Ridge', message: WHAT, url: LINK },
  ],
  [
    'apprise',
    { url: 'https://apprise.example.org/notify/key', method: 'POST', headers: TYPE },
    { title: 'Ridge', body: `${WHAT}\n${LINK}`, type: 'warning', format: 'text' },
  ],
])('%s gets what its documentation asks for', (kind, request, body) => {
  const sending = SENDERS[kind]?.(message(['Ridge']))
  expect(sending).toStrictEqual({ ...request, body: expect.anything() })
  expect(JSON.parse(String(sending?.body))).toStrictEqual(body)
})

const inBytes = (text: string) => new TextEncoder().encode(text).length
const inUnits = (text: string) => text.length
const inPoints = (text: string) => [...text].length

/** The longest title and text that each service accepts, from its documentation or source. */
const LIMITS: readonly (readonly [kind: string, most: number, measure: (text: string) => number])[] = [
  ['ntfy', 4096, inBytes],
  ['gotify', 4000, inPoints],
  ['discord', 2000, inUnits],
  ['slack', 4000, inUnits],
  ['telegram', 4096, inUnits],
  ['matrix', 30_000, inBytes],
  ['pushover', 1024, inPoints],
  ['apprise', 4000, inPoints],
]
const LETTERS = ['a', '🛰', '_', '\\', '<', '&', '"', '@everyone ', 'é', '漢', '👩‍👩‍👧']

test.each(LIMITS)(
  '%s gets at most %i, in whole characters, and a shortened text is marked as such',
  (kind, most, measure) => {
    for (const letter of LETTERS) {
      const notification = message(Array.from({ length: 40 }, () => letter.repeat(400)))
      const { title, text } = shownBy(kind, notification)
      expect(measure(text), letter).toBeLessThanOrEqual(most)
      expect(text.isWellFormed() && title.isWellFormed(), letter).toBe(true)
      expect(text, letter).toMatch(/\[…\\?\]|and 25 more/)
      expect(title.length).toBeLessThanOrEqual(250)
      const isLinked = ['gotify', 'discord', 'slack', 'telegram', 'matrix', 'apprise'].includes(kind)
      if (isLinked) expect(text.endsWith(`\n${PUBLIC_URL}/alerts`), letter).toBe(true)
    }
  },
)

const EVIL =
  '@everyone @here @channel @room @all @durov <!everyone> <@U024BE7LR> <@&1234> <@!1234> [x](https://evil.example) **b** `c` ||d|| \u202eevil\u202c \u0007\r\nBcc: x <b>y</b>'

test.each(Object.keys(SENDERS))('%s: names call nobody, format nothing and turn nothing round', (kind) => {
  const { title, text } = shownBy(kind, message([EVIL, EVIL]))
  const all = `${title}\n${text}`
  expect(all).not.toMatch(/@(?:everyone|here|channel|room|all|durov)/)
  expect(all).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u)
  expect(text.split('\n').filter((line) => line.startsWith('Bcc'))).toStrictEqual([])
  expect(all).not.toMatch(/<@[!&]?\d/)
  if (kind === 'slack') expect(text).not.toMatch(/[<>]/)
  if (kind === 'discord') {
    const [, ...rest] = text.split('\n')
    expect(rest.slice(0, -1).join('\n')).not.toMatch(/(?<!\\)[*_~`|[\]()<>#]/)
  }
})

test('a text of the mesh within a sentence has nothing hidden, keeps its emoji, and is isolated if it is right to left', () => {
  expect(cleanText('Hi\u200bll \u061c\u200fTop', 60)).toBe('Hill Top')
  expect(cleanText('👨\u200d👩\u200d👧 at home 🏳️\u200d🌈', 60)).toBe('👨\u200d👩\u200d👧 at home 🏳️\u200d🌈')
  expect(cleanText('עיר 12', 60)).toBe('\u2068עיר 12\u2069')
  expect(cleanText('👨\u200d👩\u200d👧', 3)).toBe('👨…')
  const one = message(['עיר'])
  expect(shownBy('ntfy', one).text).toContain('\u2068עיר\u2069 was not heard')
})

test('a node whose name was altered is named with its id', () => {
  const named = { nodeNum: 7, longName: 'Hill' }
  expect(shownName({ ...named, nameAltered: true })).toBe('Hill (!00000007)')
  expect(shownName({ ...named, nameAltered: false })).toBe('Hill')
})

test('an address in a name stays readable', () => {
  expect(shownBy('telegram', message(['me@example.org'])).text).toContain('me@example.org')
})

test.each(['fired', 'repeated', 'resolved'] as const)(
  '%s alerts have their own priority, tag or type in services that support one',
  (notification) => {
    const isOver = notification === 'resolved'
    expect(bodyOf('ntfy', message(['Ridge'], { notification }))).toMatchObject({
      priority: isOver ? 3 : 4,
      tags: [isOver ? 'white_check_mark' : 'satellite'],
    })
    expect(bodyOf('gotify', message(['Ridge'], { notification }))).toMatchObject({ priority: isOver ? 2 : 5 })
    const type = { fired: 'warning', repeated: 'info', resolved: 'success' }[notification]
    expect(bodyOf('apprise', message(['Ridge'], { notification }))).toMatchObject({ type })
  },
)
