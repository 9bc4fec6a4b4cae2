import { afterAll, beforeAll, expect, test } from 'vitest'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import type { SqliteStore } from '../../../src/node/database.ts'
import { LOCAL, heard, myInfo, packet, position, seconds, text, user } from '../../support/mesh/mesh.ts'
import { openSite, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'who sees what of the hill'
const PASSWORD = 'a bench beside the chapel'
const NONE = { read: false, write: false }
const READ = { read: true, write: false }
const [HALL, TRACKER, HIDEOUT] = [0xa0cc0001, 0xa0cc0002, 0xa0cc0003]
const FAMILY = 2

/** What the pages may show; each has its own words, which occur nowhere else. */
const WORDS = {
  hall: 'Village Hall',
  tracker: 'Cat Tracker',
  hideout: 'Secret Hut',
  town: 'Flea market on Saturday',
  family: 'The market keys are under the mat',
  direct: 'Market at eight, just us',
  hidden: 'Hut calling the market',
} as const
type What = keyof typeof WORDS

let site: Site
let admin: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' }, fill)
  admin = await site.visit()
  await admin.goto('/nodes')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByText(WORDS.hall).first().waitFor()
  const all = { dashboard: READ, nodes: READ, messages: READ, info: READ }
  const channels = { guest: [0], member: [0, FAMILY] }
  for (const [username, read] of Object.entries(channels)) {
    const scope = { channels: { read, write: [] }, direct: NONE }
    await send('post', '/api/users', { username, password: PASSWORD, permissions: all, scope })
  }
  await send('put', `/api/nodes/${HIDEOUT}`, { hidden: true })
  await send('put', '/api/public-access', { enabled: true, permissions: all, channels: [0] })
})
afterAll(() => site.close())

async function send(method: 'post' | 'put', path: string, data: object): Promise<void> {
  const answer = await admin.page.request[method](`${site.base}${path}`, { data, headers: { origin: site.base } })
  expect([path, answer.ok()]).toEqual([path, true])
}

/** A place on the town's channel, a tracker that says where it is to the family alone, and a node to hide. */
async function fill(store: SqliteStore): Promise<void> {
  const ingest = createIngest(store)
  const at = Date.now() - 60_000
  const named = (longName: string, from: number, channel: number) =>
    packet(user({ id: 'x', longName, shortName: longName.slice(0, 2) }), { from, channel })
  const placed = (latitudeI: number, from: number, channel: number) =>
    packet(position({ latitudeI, longitudeI: 105_000_000, time: seconds(at) }), { from, channel })
  const said = (words: string, from: number, channel: number, more: object = {}) =>
    packet(text(words), { from, channel, ...more })
  const told = [
    myInfo,
    named(WORDS.hall, HALL, 0),
    placed(505_000_000, HALL, 0),
    named(WORDS.tracker, TRACKER, 0),
    placed(506_000_000, TRACKER, FAMILY),
    named(WORDS.hideout, HIDEOUT, 0),
    placed(507_000_000, HIDEOUT, 0),
    said(WORDS.town, HALL, 0),
    said(WORDS.family, HALL, FAMILY),
    said(WORDS.direct, HALL, 0, { to: LOCAL }),
    said(WORDS.hidden, HIDEOUT, 0),
  ]
  await ingest.store(told.map((each) => heard(each, { at })))
}

/** What the page at `path` shows, once it shows `expected`. */
async function whatIsOn({ page, goto }: Visitor, path: string, expected: string): Promise<What[]> {
  await goto(path)
  await page.locator('main').getByText(expected).first().waitFor()
  const shown = await page.locator('main').innerText()
  const all: What[] = ['hall', 'tracker', 'hideout', 'town', 'family', 'direct', 'hidden']
  return all.filter((what) => shown.includes(WORDS[what]))
}

/** The nodes, those with a place, all messages, and those that a search finds. */
async function walk(visitor: Visitor, isSearched: boolean) {
  const seen = {
    nodes: await whatIsOn(visitor, '/nodes', WORDS.hall),
    map: await whatIsOn(visitor, '/map', WORDS.hall),
    messages: await whatIsOn(visitor, '/messages', WORDS.town),
    place: await placeOf(visitor, TRACKER),
    ...(isSearched && { found: await whatIsOn(visitor, '/messages?q=market', WORDS.town) }),
  }
  expect(visitor.complaints).toEqual([])
  return seen
}

/** Whether the page of a node says where it is. */
async function placeOf({ page, goto }: Visitor, nodeNum: number): Promise<boolean> {
  await goto(`/nodes/!${nodeNum.toString(16)}`)
  await page.getByRole('heading', { name: WORDS.tracker, level: 1 }).waitFor()
  await page.locator('.progress p').waitFor({ state: 'detached' })
  return (await page.locator('main').innerText()).includes('50.6')
}

async function visitAs(username: string, password = PASSWORD): Promise<Visitor> {
  const visitor = await site.visit()
  await visitor.goto('/login')
  await visitor.signIn(username, password)
  await visitor.page.getByRole('button', { name: 'Sign out' }).first().waitFor()
  return visitor
}

const NODES: What[] = ['hall', 'tracker']

test('an anonymous visitor sees the chosen channel, without places of others, hidden nodes or a search', async () => {
  const visitor = await site.visit()
  const seen = await walk(visitor, false)
  expect(seen).toEqual({ nodes: NODES, map: ['hall'], messages: ['hall', 'town'], place: false })
  // A link to a search shows them what there is.
  expect(await whatIsOn(visitor, '/messages?q=keys', WORDS.town)).toEqual(['hall', 'town'])
  expect(await visitor.page.getByRole('searchbox').count()).toBe(0)
  expect(visitor.complaints).toEqual([])
})

test('a guest sees the same and can search, a member also sees the channel of the family, an administrator everything', async () => {
  const guest = await walk(await visitAs('guest'), true)
  expect(guest).toMatchObject({ nodes: NODES, place: false, found: ['hall', 'town'] })
  expect(guest.messages).toEqual(['hall', 'town'])
  const member = await walk(await visitAs('member'), true)
  expect(member).toMatchObject({ nodes: NODES, place: true, found: ['hall', 'town', 'family'] })
  expect(member.messages).toEqual(['hall', 'town', 'family'])
  expect(await walk(admin, true)).toMatchObject({
    nodes: [...NODES, 'hideout'],
    place: true,
    messages: ['hall', 'hideout', 'town', 'family', 'direct', 'hidden'],
    found: ['hall', 'hideout', 'town', 'family', 'direct', 'hidden'],
  })
})

test('an administrator who sees as the guest sees what the guest sees', async () => {
  const { page } = admin
  await page.goto(`${site.base}/users?q=guest`)
  await page.getByRole('link', { name: 'guest', exact: true }).click()
  await page.getByRole('button', { name: 'See as this user' }).click()
  await page.getByText('You see what guest sees.').waitFor()
  await page.getByRole('link', { name: 'Messages' }).first().click()
  await page.locator('main').getByText(WORDS.town).first().waitFor()
  const shown = await page.locator('main').innerText()
  expect([WORDS.family, WORDS.direct, WORDS.hidden].filter((words) => shown.includes(words))).toEqual([])
  await page.getByRole('button', { name: 'Stop' }).click()
})
