import { afterEach, beforeEach, expect, test } from 'vitest'
import { auditRows, type Client, USER_PASSWORD } from '../../support/app.ts'
import { createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'

let alerts: TestAlerts
let otto: Client & { id: number }

beforeEach(async () => {
  alerts = await createTestAlerts()
  otto = await alerts.app.user('otto')
  alerts.app.clock.advance(1000)
})
afterEach(() => alerts.app.close())

const body = async (answer: Response) => Object(await answer.json())
const DESTINATIONS = '/api/alerts/destinations'
const hook = (host: string) => ({ kind: 'webhook', name: host, settings: { url: `https://${host}/x?key=s3cret` } })
const listOf = async (client: Client): Promise<Record<string, unknown>[]> =>
  (await body(await client.send('GET', DESTINATIONS))).destinations
const toReview = async (client: Client) =>
  (await body(await client.send('GET', '/api/auth/status'))).destinationsToReview

async function make(client: Client, host: string): Promise<number> {
  const answer = await client.send('POST', DESTINATIONS, hook(host))
  expect(answer.status).toBe(201)
  return (await body(answer)).destination.id
}

/** A rule that fires now and is told everywhere. */
async function fires(client: Client): Promise<void> {
  const destinations = (await listOf(client)).map(({ id }) => id)
  await alerts.rule({ kind: 'sign_in', name: 'Account', destinations }, client)
  await alerts.pass(MINUTE)
  await client.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })
}

const hostsOf = () => alerts.sent.map(({ url }) => new URL(url).host)

test('a new destination or address needs a fresh proof; a new name does not', async () => {
  const id = await make(otto, 'own.example.org')
  alerts.app.clock.advance(16 * MINUTE)
  const old = await otto.send('POST', DESTINATIONS, hook('thief.example.org'))
  expect([old.status, (await body(old)).code]).toStrictEqual([403, 'reauthentication_required'])
  const path = `${DESTINATIONS}/${id}`
  const settings = { url: 'https://thief.example.org/x' }
  expect((await otto.send('PUT', path, { settings })).status).toBe(403)
  expect((await otto.send('PUT', path, { settings: { secret: `whsec_${btoa('x'.repeat(32))}` } })).status).toBe(403)
  expect((await otto.send('PUT', path, { name: 'Home' })).status).toBe(200)
  expect(await listOf(otto)).toMatchObject([{ name: 'Home', host: 'own.example.org' }])
})

test('the other destinations are notified of a new one, and of a new address', async () => {
  await make(otto, 'own.example.org')
  await alerts.look()
  expect(hostsOf()).toStrictEqual([])
  const id = await make(otto, 'thief.example.org')
  await alerts.look()
  expect(hostsOf()).toStrictEqual(['own.example.org'])
  expect(alerts.bodies()[0]).toMatchObject({
    type: 'alert.destination',
    data: { title: 'A new destination of your alerts', text: expect.stringContaining('webhook, thief.example.org') },
  })
  expect(alerts.sent[0]?.body).not.toContain('s3cret')
  await otto.send('PUT', `${DESTINATIONS}/${id}`, { settings: { url: 'https://again.example.org/x' } })
  await alerts.look()
  expect(alerts.bodies()[1]?.data.text).toContain('again.example.org')
})

test('every other session of the owner sees the notice, and only such a one confirms it', async () => {
  const thief = await alerts.app.signIn('otto')
  alerts.app.clock.advance(1000)
  const owner = await alerts.app.signIn('otto')
  const id = await make(thief, 'thief.example.org')
  expect([await toReview(thief), await toReview(owner), await toReview(otto)]).toStrictEqual([0, 1, 1])
  expect([(await listOf(thief))[0]?.['newsAt'], (await listOf(owner))[0]?.['newsAt']]).toStrictEqual([
    null,
    alerts.app.clock.now,
  ])
  expect((await thief.send('POST', `${DESTINATIONS}/${id}/release`)).status).toBe(200)
  expect(await toReview(owner)).toBe(1)
  alerts.app.clock.advance(16 * MINUTE)
  expect((await owner.send('POST', `${DESTINATIONS}/${id}/release`)).status).toBe(403)
  await owner.send('POST', '/api/auth/reauthenticate', { password: USER_PASSWORD })
  expect((await owner.send('POST', `${DESTINATIONS}/${id}/release`)).status).toBe(200)
  expect([await toReview(owner), await toReview(otto)]).toStrictEqual([0, 0])
})

test('a password reset holds all destinations until their owner has looked at them', async () => {
  const thief = await alerts.app.signIn('otto')
  const id = await make(thief, 'thief.example.org')
  await fires(thief)
  const reset = await alerts.admin.send('POST', `/api/users/${otto.id}/reset-password`)
  const { password } = await body(reset)
  await alerts.pass(5 * MINUTE)
  expect(hostsOf()).toStrictEqual([])
  const dropped = alerts.app.store.sqlite.prepare('select state, result from alert_deliveries').all()
  expect(dropped).toStrictEqual([])

  const owner = await alerts.app.signIn('otto', password)
  const changed = { currentPassword: password, newPassword: 'one that nobody else knows' }
  expect((await owner.send('POST', '/api/auth/change-password', changed)).status).toBe(204)
  expect(await toReview(owner)).toBe(1)
  expect(await listOf(owner)).toMatchObject([{ heldAt: expect.any(Number), heldFor: 'password_reset' }])
  expect(await body(await owner.send('POST', `${DESTINATIONS}/${id}/test`))).toMatchObject({ code: 'destination_held' })
  expect((await owner.send('PUT', `${DESTINATIONS}/${id}`, { enabled: true, name: 'x' })).status).toBe(200)
  await alerts.pass(2 * MINUTE)
  expect(hostsOf()).toStrictEqual([])

  const released = await owner.send('POST', `${DESTINATIONS}/${id}/release`)
  expect((await body(released)).destination).toMatchObject({ heldAt: null, heldFor: null })
  expect((await body(await owner.send('POST', `${DESTINATIONS}/${id}/test`))).ok).toBe(true)
  await owner.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })
  await alerts.pass(2 * MINUTE)
  expect(hostsOf()).toStrictEqual(['thief.example.org', 'thief.example.org'])
  const entries = auditRows(alerts.app).filter(({ action, details }) => /held/.test(JSON.stringify([action, details])))
  expect(entries).toStrictEqual([
    {
      action: 'alert_destinations_held',
      username: 'admin',
      details: { userId: otto.id, username: 'otto', for: 'password_reset', destinations: 1 },
    },
    {
      action: 'alert_destination_updated',
      username: 'otto',
      details: {
        destinationId: id,
        name: 'x',
        kind: 'webhook',
        before: { held: 'password_reset' },
        after: { held: null },
      },
    },
  ])
})

test('messages that wait when the reset comes are not sent, and no destination is created during it', async () => {
  const thief = await alerts.app.signIn('otto')
  await make(thief, 'thief.example.org')
  await fires(thief)
  alerts.app.clock.advance(MINUTE)
  const waiting = () =>
    alerts.app.store.sqlite.prepare('select notification, state, result from alert_deliveries order by id').all()
  alerts.answer = () => ({ status: 500, retryAfterMs: null })
  await alerts.look()
  expect(waiting()).toMatchObject([{ state: 'waiting' }])
  await alerts.admin.send('POST', `/api/users/${otto.id}/reset-password`)
  alerts.answer = () => ({ status: 200, retryAfterMs: null })
  const before = alerts.sent.length
  await alerts.pass(60 * MINUTE)
  expect(alerts.sent).toHaveLength(before)
  expect(waiting()).toMatchObject([
    { state: 'dropped', result: 'the destination is held until its owner has looked at it' },
  ])
})

test('a deactivated user who is activated again has to look at them, too', async () => {
  await make(otto, 'own.example.org')
  await alerts.admin.send('DELETE', `/api/users/${otto.id}`)
  await alerts.admin.send('PUT', `/api/users/${otto.id}`, { isActive: true })
  expect(await listOf(await alerts.app.signIn('otto'))).toMatchObject([{ heldFor: 'user_deactivated' }])
})

test('destinations of a demoted administrator reach no private addresses any more', async () => {
  await alerts.admin.send('PUT', `/api/users/${otto.id}/admin`, { isAdmin: true })
  await make(otto, 'ntfy.local')
  const isPrivateAllowed = async () => {
    await fires(otto)
    await alerts.pass(2 * MINUTE)
    return alerts.sent.splice(0).map(({ mayBePrivate }) => mayBePrivate)
  }
  expect(await isPrivateAllowed()).toStrictEqual([true])
  await alerts.admin.send('PUT', `/api/users/${otto.id}/admin`, { isAdmin: false })
  expect(new Set(await isPrivateAllowed())).toStrictEqual(new Set([false]))
})

test('administrators see kind, name and host of others, and end them', async () => {
  const [first, second] = [await make(otto, 'a.example.org'), await make(otto, 'b.example.org')]
  const path = `/api/users/${otto.id}/destinations`
  const seen = await alerts.admin.send('GET', path)
  const text = await seen.text()
  expect(JSON.parse(text).destinations).toMatchObject([
    { id: first, kind: 'webhook', name: 'a.example.org', host: 'a.example.org', settings: null },
    { id: second, settings: null },
  ])
  expect(text).not.toMatch(/s3cret|whsec/)
  const everybody = await alerts.admin.send('GET', `${DESTINATIONS}?all=true`)
  expect(await everybody.json()).toMatchObject({ destinations: [{ settings: null }, { settings: null }] })
  expect((await otto.send('GET', path)).status).toBe(403)
  expect((await alerts.admin.send('DELETE', `/api/users/1/destinations/${first}`)).status).toBe(404)
  expect((await alerts.admin.send('DELETE', `${path}/${first}`)).status).toBe(204)
  alerts.app.clock.advance(16 * MINUTE)
  expect((await alerts.admin.send('DELETE', path)).status).toBe(403)
  expect((await (await alerts.app.admin()).send('DELETE', path)).status).toBe(204)
  expect(await listOf(otto)).toStrictEqual([])
  const entries = auditRows(alerts.app).filter(({ action }) => action === 'alert_destination_updated')
  expect(entries.slice(-2)).toMatchObject([
    { username: 'admin', details: { destinationId: first, userId: otto.id, owner: 'otto', after: null } },
    { username: 'admin', details: { destinationId: second } },
  ])
})
