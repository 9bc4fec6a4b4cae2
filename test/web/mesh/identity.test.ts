import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { item } from '../../support/mesh/delivery.ts'
import { heard, LOCAL, myInfo, nodeInfo, packet, RADIO, text, user } from '../../support/mesh/mesh.ts'
import { createSigner } from '../../support/mesh/signer.ts'
import type { FromRadioVariant } from '../../support/radio/device.ts'
import { openSite, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
const HILL = 0x20000021
const CLAIMED = 0x20000022
/** From right to left: hello. */
const TURNED = '\u202eolleh'
const signer = createSigner(31)
const KEY = (byte: number) => new Uint8Array(32).fill(byte)
const base64 = (byte: number) => Buffer.from(KEY(byte)).toString('base64')
const idOf = (nodeNum: number) => `!${nodeNum.toString(16)}`

let site: Site
let visitor: Visitor
beforeAll(async () => {
  const at = Date.now() - 60_000
  const named = (longName: string, key: number) =>
    packet(user({ longName, shortName: 'HI', publicKey: KEY(key) }), { from: HILL })
  const direct = (words: string, key: number) =>
    packet(text(words), { from: HILL, to: LOCAL, pkiEncrypted: true, publicKey: KEY(key) })
  site = await openSite({ ADMIN_PASSWORD }, async (store) => {
    const ingest = createIngest(store, { radios: [RADIO.name] })
    const byRadio = [
      myInfo,
      named('Hill', 1),
      named('New hill', 2),
      direct('from the hill', 1),
      direct('from nobody', 2),
    ]
    await ingest.store(byRadio.map((variant) => heard(variant, { at })))
    const publish = async (gateway: number, ...variants: FromRadioVariant[]) => {
      for (const variant of variants) {
        const told = heard(variant, { at, source: BROKER })
        const { event } = told
        await ingest.store([event.type === 'packet' ? { ...told, event: { ...event, gateway } } : told])
      }
    }
    await publish(0x77, named('Liar', 3))
    const signed = signer.packet(text(TURNED, { replyId: 5 }), { id: 900 })
    const changed = packet(text(TURNED, { replyId: 6 }), { from: signer.nodeNum, id: 900 })
    await publish(0x78, signer.packet(signer.user({ longName: 'Signer' })), signer.packet(text('signed')), signed)
    await publish(0x79, changed, packet(text('unsigned'), { from: signer.nodeNum }))
  })
  visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
})
afterAll(() => site.close())

test('each refused key is shown with its origin, and each one can be taken', async () => {
  const { page, goto } = visitor
  await goto(`/nodes/${idOf(HILL)}`)
  const row = (key: number) => page.locator('.notice-bad li', { hasText: base64(key) })
  await row(1).getByText('Key in use').waitFor()
  await row(2).getByText('New hill').waitFor()
  await row(2).getByText(`heard by ${RADIO.name}`).waitFor()
  await row(3).getByText('Liar').waitFor()
  await row(3).getByText('gateway !00000077 at mqtt://broker').waitFor()
  await page.getByText('A direct message encrypted with another key than the known one').waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  await row(2).getByRole('button', { name: 'This is the right key' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'This is the right key' }).click()
  await page.getByRole('heading', { name: 'New hill', level: 1 }).waitFor()
  await expect.poll(() => page.locator('.notice-bad').count()).toBe(0)
})

test('a direct message has a lock only if the key in force opened it', async () => {
  const { page, goto } = visitor
  await goto(`/messages?with=${idOf(HILL)}`)
  const message = (words: string) => page.locator('article.message', { hasText: words })
  await message('from the hill').getByTitle('End-to-end encrypted').waitFor()
  // Although it follows at once, it does not stand under the lock of the other one.
  await message('from nobody').getByTitle('Opened with another key than the one in use then').waitFor()
  expect(await message('from nobody').getByTitle('End-to-end encrypted').count()).toBe(0)
  expect(await message('from nobody').locator('header').count()).toBe(1)
})

test('the shield stands for what is signed, and a copy that was changed on its way is shown with its gateway', async () => {
  const { page, goto } = visitor
  await goto('/messages?channel=0')
  const message = (words: string) => page.locator('article.message', { hasText: words })
  const shields = (words: string) => message(words).locator('[title^="Signature verified"]').getAttribute('title')
  expect(await shields('olleh')).toBe('Signature verified: the text is from this node. What it answers is not signed')
  await message('unsigned').waitFor()
  expect(await message('unsigned').locator('[title^="Signature verified"]').count()).toBe(0)
  await message('olleh').getByTitle('Copies of this message disagree').waitFor()
  await message('olleh').getByRole('button', { name: 'Details' }).click()
  const row = (gateway: string) => message('olleh').locator('tr', { hasText: gateway })
  await expect.poll(() => row('!00000079').textContent()).toContain('with another message that it answers')
  expect(await row('!00000078').textContent()).not.toContain('with another')
  // A text that turns its direction turns nothing around it.
  expect(await message('olleh').locator('bdi').textContent()).toBe(TURNED)
  expect(await visitor.violations()).toStrictEqual([])
})

test('a node that a collector calls its radio is ours or not, as somebody decides', async () => {
  const { page, goto } = visitor
  const headers = { origin: site.base }
  const made = await page.request.post(`${site.base}/api/tokens`, {
    headers,
    data: { name: 'valley', scopes: ['ingest'] },
  })
  const told = { num: CLAIMED, user: { longName: 'Valley' } }
  const claim = [{ case: 'myInfo', value: { myNodeNum: CLAIMED } } as const, nodeInfo(told)]
  const answer = await fetch(`${site.base}/api/ingest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${Object(await made.json()).token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ source: 'valley', packets: claim.map(item) }),
  })
  expect(await answer.json()).toMatchObject({ accepted: 2, rejected: [] })
  const store = openDatabase(join(site.data, 'mesh.db'))
  store.sqlite.exec(`update sources set local_node_num = null, disputed_node_num = ${CLAIMED} where name = 'valley';
    update nodes set is_local = 0 where node_num = ${CLAIMED}`)
  store.close()
  await goto(`/nodes/${idOf(CLAIMED)}`)
  const notice = page.locator('.notice', { hasText: 'valley calls this node its own radio' })
  await notice.getByText('A radio of this service hears it as another node').waitFor()
  expect(await visitor.violations()).toStrictEqual([])
  const decide = async (name: string) => {
    await notice.getByRole('button', { name, exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
  }
  await decide('It is ours')
  await notice.getByText('Confirmed: it is a radio of this service').waitFor()
  await page.getByText('This service’s radio', { exact: true }).waitFor()
  await decide('It is not ours')
  await notice.getByText('Decided: it is no radio of this service').waitFor()
  await expect.poll(() => page.getByText('This service’s radio', { exact: true }).count()).toBe(0)
})
