import { createECDH, randomBytes } from 'node:crypto'
import { decrypt } from 'http_ece'
import { importJWK, jwtVerify } from 'jose'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'

let alerts: TestAlerts

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const browser = createECDH('prime256v1')
browser.generateKeys()
const authSecret = randomBytes(16)
const SUBSCRIPTION = {
  endpoint: 'https://push.example.org/send/abc',
  p256dh: browser.getPublicKey('base64url'),
  auth: authSecret.toString('base64url'),
}

async function subscribe(): Promise<number> {
  const answer = await alerts.admin.send('POST', '/api/alerts/destinations', {
    kind: 'web_push',
    name: 'Phone',
    settings: SUBSCRIPTION,
  })
  return Object(await answer.json()).destination.id
}

test('another implementation of RFC 8291 decrypts a push, and the published key verifies its token', async () => {
  const id = await subscribe()
  const { publicKey } = Object(await (await alerts.admin.send('GET', '/api/alerts/push-key')).json())
  await alerts.admin.send('POST', `/api/alerts/destinations/${id}/test`)
  const [sent] = alerts.sent
  if (sent === undefined || typeof sent.body === 'string') throw new Error('nothing was sent')
  expect(sent).toMatchObject({
    url: SUBSCRIPTION.endpoint,
    method: 'POST',
    headers: { 'content-encoding': 'aes128gcm', ttl: '86400' },
  })
  const plain = decrypt(Buffer.from(sent.body), { version: 'aes128gcm', privateKey: browser, authSecret })
  expect(JSON.parse(plain.toString())).toMatchObject({ notification: 'test', title: 'Test', path: '/alerts' })
  const [, token = '', key = ''] = /^vapid t=([^,]+), k=(.+)$/.exec(sent.headers['authorization'] ?? '') ?? []
  expect(key).toBe(publicKey)
  const raw = Buffer.from(key, 'base64url')
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: raw.subarray(1, 33).toString('base64url'),
    y: raw.subarray(33).toString('base64url'),
  }
  const { payload } = await jwtVerify(token, await importJWK(jwk, 'ES256'), { audience: 'https://push.example.org' })
  expect((payload.exp ?? 0) - Date.now() / 1000).toBeLessThanOrEqual(86_400)
})

test('the keys stay the same, also for another process with the same secret', async () => {
  const read = async () => Object(await (await alerts.admin.send('GET', '/api/alerts/push-key')).json()).publicKey
  const keys = await Promise.all([read(), read(), read()])
  expect(new Set([...keys, await read()]).size).toBe(1)
})

test.each([404, 410])(
  'a push service that answers %i is not asked again: the subscription is deleted',
  async (status) => {
    const id = await subscribe()
    await alerts.rule({ kind: 'link', name: 'Radio', afterMinutes: 1, destinations: [id] })
    Object.assign(alerts.links[0] ?? {}, { state: 'waiting', since: alerts.app.clock.now })
    alerts.answer = () => ({ status, retryAfterMs: null })
    await alerts.pass(5 * MINUTE)
    expect(alerts.sent).toHaveLength(1)
    const { destinations } = Object(await (await alerts.admin.send('GET', '/api/alerts/destinations')).json())
    expect(destinations).toStrictEqual([])
  },
)
