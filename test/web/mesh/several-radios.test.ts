import { afterAll, beforeAll, expect, test } from 'vitest'
import { openRadioSite, type RadioSite, readData } from '../../support/radio/site.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'

let mesh: RadioSite
let second: RadioDevice

const LAKE = 0xa0cb0009

const handshake = (nonce: number) => [
  fromRadio({ case: 'myInfo', value: { myNodeNum: LAKE } }),
  fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
  fromRadio({ case: 'nodeInfo', value: { num: LAKE, user: { longName: 'Lake', shortName: 'LK' } } }),
  fromRadio({ case: 'configCompleteId', value: nonce }),
]

beforeAll(async () => {
  second = await startRadioDevice({ handshake })
  mesh = await openRadioSite(undefined, [second])
})
afterAll(async () => {
  await mesh.close()
  await second.stop()
})

test('with two radios the sender can choose one, and the message shows which one sent it', async () => {
  const { page } = mesh.admin
  await mesh.admin.goto('/messages?channel=0')
  const choice = page.getByLabel('Send with')
  await choice.waitFor()
  await expect
    .poll(() => choice.getByRole('option').allTextContents())
    .toEqual(['the most suitable radio', 'Test Radio', 'Lake'])
  expect(await mesh.admin.violations()).toEqual([])
  const box = page.getByLabel('Write a message')
  await box.fill('by whoever')
  await box.press('Enter')
  expect(readData(await mesh.sent()).payload).toEqual(new TextEncoder().encode('by whoever'))
  // One text at a time: the radio has it before the page knows.
  await expect.poll(() => box.inputValue()).toBe('')

  await choice.selectOption({ label: 'Lake' })
  await box.fill('by the lake')
  await box.press('Enter')
  const { payloadVariant } = await second.next('packet')
  if (payloadVariant.case !== 'packet') throw new Error('no packet')
  expect(readData(payloadVariant.value).payload).toEqual(new TextEncoder().encode('by the lake'))
  const message = page.locator('.message.out', { hasText: 'by the lake' })
  await message.getByRole('button', { name: 'Details' }).click()
  await message.getByText(`127.0.0.1:${second.port}`).waitFor()
  expect(mesh.admin.complaints).toEqual([])
})

test('there is no choice with only one radio that can send, or without the permission to see radios', async () => {
  const writer = await mesh.join('writer', {
    messages: { read: true, write: true },
    info: { read: false, write: false },
  })
  await writer.goto('/messages?channel=0')
  await writer.page.getByLabel('Write a message').fill('from the writer')
  await writer.page.getByRole('button', { name: 'Send' }).click()
  // By now a choice would be shown.
  await writer.page.locator('.message.out', { hasText: 'from the writer' }).getByText('Sent by the radio').waitFor()
  await expect.poll(() => writer.page.getByLabel('Send with').count()).toBe(0)
  const { page } = mesh.admin
  await mesh.admin.goto('/messages?channel=0')
  await page.getByLabel('Send with').waitFor()
  second.refuse(true)
  second.kick()
  await expect.poll(() => page.getByLabel('Send with').count()).toBe(0)
  await page.getByLabel('Write a message').waitFor()
})
