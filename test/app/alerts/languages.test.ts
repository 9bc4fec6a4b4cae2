import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { type Client, START } from '../../support/app.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
let anna: Client & { id: number }

const READS = { nodes: { read: true, write: false }, info: { read: true, write: false } }
const SILENT = { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 120, tellResolved: true }
/** A sentence has three words in a row; names, addresses and codes have not. */
const SENTENCE = /\p{L}{2,} \p{L}{2,} \p{L}{2,}/u

beforeEach(async () => {
  alerts = await createTestAlerts()
  anna = await alerts.app.user('anna', READS)
  await alerts.ingest.store([heard(packet(text('hi'), { from: FAR, id: 1 }), { at: alerts.app.clock.now })])
})
afterEach(() => alerts.app.close())

const prefer = (client: Client, preferences: object) => client.send('PUT', '/api/auth/preferences', preferences)

test('an alert is stored without words, and told to each owner in their language', async () => {
  expect((await prefer(anna, { language: 'de' })).status).toBe(204)
  for (const client of [alerts.admin, anna]) {
    await alerts.rule({ ...SILENT, destinations: [await alerts.webhook(client)] }, client)
  }
  await alerts.pass(121 * MINUTE)
  const texts = alerts.bodies().map(({ data }) => data.text)
  expect(texts).toHaveLength(2)
  const [english = '', german = ''] = texts.toSorted((a) => (a.includes('was not heard') ? -1 : 1))
  expect(english).toBe('!a0cb0002 was not heard for 2 h')
  expect(german).toContain('!a0cb0002')
  expect(german).not.toContain('heard')
  // A webhook gets the same without words.
  for (const { data } of alerts.bodies()) {
    expect(data.alerts).toMatchObject([
      { fact: { event: 'node_silent', name: '!a0cb0002', ms: 120 * MINUTE, byRadio: false } },
    ])
  }
  const rows = alerts.app.store.sqlite.prepare('select * from alerts').all()
  expect(rows).toHaveLength(2)
  for (const row of rows) expect(Object.values(Object(row)).filter((value) => SENTENCE.test(String(value)))).toEqual([])
  // The page asks in the language in which it is drawn.
  const told = async (language: string) => {
    const answer = await anna.send('GET', '/api/alerts', undefined, { 'Accept-Language': language })
    return Object(await answer.json()).alerts[0].what
  }
  expect(await told('en')).toBe(english)
  expect(await told('de')).toBe(german)
})

test('an alert of an earlier version keeps its English sentence, for every reader', async () => {
  alerts.app.store.sqlite.exec(`insert into alerts (rule_id, owner_id, rule_name, kind, state, subject, key, what,
    started_at, fired_at, resolved_at, held, inhibited, step)
    values (7, ${anna.id}, 'Old', 'node_silent', 'resolved', 'node:1', 'k', 'Ridge was not heard for 2 h', ${START}, ${START}, ${START}, 0, 0, 's')`)
  const answer = await anna.send('GET', '/api/alerts', undefined, { 'Accept-Language': 'de' })
  expect(Object(await answer.json()).alerts).toMatchObject([{ what: 'Ridge was not heard for 2 h', fact: null }])
})

test('a fact of a newer version is shown as such', async () => {
  alerts.app.store.sqlite.exec(`insert into alerts (rule_id, owner_id, rule_name, kind, state, subject, key, what, fact,
    started_at, fired_at, resolved_at, held, inhibited, step)
    values (7, ${anna.id}, 'New', 'node_silent', 'resolved', 'node:1', 'k', '', '{"event":"eclipse"}', ${START}, ${START}, ${START}, 0, 0, 's')`)
  const answer = await anna.send('GET', '/api/alerts')
  expect(Object(await answer.json()).alerts).toMatchObject([
    { what: 'A newer version of the service recorded this', fact: null },
  ])
})

test('a preview and its limits are told in the language of who asks', async () => {
  const ask = async (language: string) => {
    const rule = { kind: 'node_new', name: 'New', destinations: [] }
    const answer = await anna.send('POST', '/api/alerts/rules/preview', rule, { 'Accept-Language': language })
    return Object(await answer.json())
  }
  const english = await ask('en')
  const french = await ask('fr-CA')
  expect(english.fires[0].what).toBe('!a0cb0002 was heard for the first time')
  expect(french.fires[0].fact).toEqual(english.fires[0].fact)
  expect(french.fires[0].what).not.toBe(english.fires[0].what)
})

test('the language of the browser that signed in counts until one is chosen', async () => {
  const { sqlite } = alerts.app.store
  const body = JSON.stringify({ username: 'anna', password: 'a password for everyone' })
  const headers = { 'content-type': 'application/json', 'accept-language': 'pl-PL,pl;q=0.9' }
  expect((await alerts.app.request('/api/auth/login', { method: 'POST', body, headers })).status).toBe(200)
  const stored = () =>
    sqlite.prepare("select language, browser_language, units from users where username = 'anna'").get()
  expect(stored()).toEqual({ language: null, browser_language: 'pl', units: null })
  await prefer(anna, { language: 'es', units: 'imperial' })
  expect(stored()).toEqual({ language: 'es', browser_language: 'pl', units: 'imperial' })
  expect(Object(await (await anna.send('GET', '/api/auth/status')).json())).toMatchObject({
    language: 'es',
    units: 'imperial',
  })
  await prefer(anna, { language: null })
  expect(stored()).toEqual({ language: null, browser_language: 'pl', units: 'imperial' })
  expect((await prefer(anna, { language: 'xx' })).status).toBe(400)
  expect((await prefer(anna, {})).status).toBe(204)
})
