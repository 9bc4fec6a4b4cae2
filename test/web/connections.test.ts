import { realpath } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { announceRadios } from '../support/radio/announced.ts'
import { fromRadio, type RadioDevice, smallHandshake, startRadioDevice } from '../support/radio/device.ts'
import { type SerialLine, startSerialLine } from '../support/radio/serial-line.ts'
import { freePort } from '../support/servers/free-port.ts'
import { openSite, overflowOf, type Site } from '../support/web/site.ts'

const PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

/** A radio that knows another node, and is heard to. */
function knowing([own, ownName]: readonly [number, string], [num, longName]: readonly [number, string]) {
  return (nonce: number) => {
    const [, metadata = EMPTY, channel = EMPTY] = smallHandshake(nonce)
    const user = (name: string) => ({ longName: name, shortName: name.slice(0, 4) })
    const lastHeard = Math.floor(Date.now() / 1000)
    return [
      fromRadio({ case: 'myInfo', value: { myNodeNum: own, nodedbCount: 2 } }),
      metadata,
      channel,
      fromRadio({ case: 'nodeInfo', value: { num: own, user: user(ownName) } }),
      fromRadio({ case: 'nodeInfo', value: { num, lastHeard, user: user(longName) } }),
      fromRadio({ case: 'configCompleteId', value: nonce }),
    ]
  }
}

/** For the types only: a handshake has more. */
const EMPTY = new Uint8Array()
const HILL = [0xa0cb0001, 'Hill Radio'] as const
const VALLEY = [0xa0cb0009, 'Valley Radio'] as const

let site: Site
let hill: RadioDevice
let valley: RadioDevice
let line: SerialLine
let endAnnouncement: () => Promise<unknown>
beforeAll(async () => {
  hill = await startRadioDevice({ handshake: knowing(HILL, [0x0b0b0001, 'Barn']) })
  valley = await startRadioDevice({ handshake: knowing(VALLEY, [0x0b0b0002, 'Mill']) })
  line = await startSerialLine(valley.port)
  endAnnouncement = await announceRadios([['Radio on the hill', hill.port, { shortname: 'TOWR', id: '!a0cb0001' }]])
  site = await openSite({ DEMO: 'false', ADMIN_PASSWORD: PASSWORD })
})
afterAll(async () => {
  await site.close()
  await endAnnouncement()
  await line.stop()
  await Promise.all([hill.stop(), valley.stop()])
})

test('first run: a radio that announces itself is connected, on a phone another by serial, and nothing restarts', async () => {
  const { page, goto, signIn, violations } = await site.visit()
  await goto('/')
  await signIn('admin', PASSWORD)
  await page.locator('main').getByRole('link', { name: 'Connect a radio' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Connect a radio' })
  await dialog.getByRole('button', { name: 'Use TOWR !a0cb0001' }).waitFor()
  expect(await violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Use TOWR !a0cb0001' }).click()
  await dialog.getByText('It is Hill Radio (!a0cb0001)').waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toMatch(/^It is Hill Radio/)
  expect(await violations()).toEqual([])
  // Back to its address, and again.
  await dialog.getByRole('button', { name: 'Back' }).click()
  expect(await dialog.getByLabel('Port', { exact: true }).inputValue()).toBe(String(hill.port))
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByLabel('Name of the connection').fill('Hill')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('listitem').filter({ hasText: 'Hill' }).getByText('Connected').waitFor()
  expect(await violations()).toEqual([])
  await page.getByRole('link', { name: 'Nodes' }).first().click()
  await page.getByText('Barn').first().waitFor()

  const phone = await site.visit({ ...PHONE, storageState: await page.context().storageState() })
  await phone.goto('/configuration/connections')
  await phone.page.getByRole('button', { name: 'Connect a radio' }).click()
  const second = phone.page.getByRole('dialog', { name: 'Connect a radio' })
  await second.getByRole('listitem').filter({ hasText: 'TOWR' }).getByText('Already in the list').waitFor()
  await second.getByLabel('How it is connected').selectOption('USB or serial port')
  await second.getByLabel('Serial device').fill(await realpath(line.device))
  expect([await phone.violations(), await overflowOf(phone.page)]).toEqual([[], 0])
  await second.getByRole('button', { name: 'Continue' }).click()
  await second.getByText('It is Valley Radio (!a0cb0009)').waitFor()
  await second.getByLabel('Name of the connection').fill('Valley')
  await second.getByRole('button', { name: 'Save' }).click()
  await second.waitFor({ state: 'detached' })
  const rowOf = (name: string) => phone.page.getByRole('listitem').filter({ hasText: name })
  await rowOf('Valley').getByText('Connected').waitFor()
  const before = valley.connections()
  await rowOf('Hill').getByRole('switch', { name: 'Use Hill' }).click()
  await rowOf('Hill').getByText('Off', { exact: false }).first().waitFor()
  expect([await phone.violations(), await overflowOf(phone.page)]).toEqual([[], 0])
  await rowOf('Hill').getByRole('switch', { name: 'Use Hill' }).click()
  await rowOf('Hill').getByText('Connected').waitFor()
  expect(valley.connections()).toBe(before)
  // The other page knew of it all the time.
  for (const name of ['Mill', 'Barn', 'Hill Radio', 'Valley Radio']) await page.getByText(name).first().waitFor()
})

test('an address where no radio is says so, with the remedy, and is not saved by accident', async () => {
  const { page, goto, signIn } = await site.visit()
  await goto('/configuration/connections?add=radio')
  await signIn('admin', PASSWORD)
  const dialog = page.getByRole('dialog', { name: 'Connect a radio' })
  await dialog.getByLabel('Host name or IP address').fill('127.0.0.1')
  await dialog.getByLabel('Port', { exact: true }).fill('1')
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByText(/It cannot be used like this/).waitFor()
  await dialog.getByText(/check the port/).waitFor()
  await dialog.getByRole('button', { name: 'Save anyway' }).waitFor()
  await dialog.getByRole('button', { name: 'Back' }).click()
  expect(await dialog.getByLabel('Port', { exact: true }).inputValue()).toBe('1')
})

test('a radio that is being read is not called lost', async () => {
  const slow = await startRadioDevice({ handshake: () => [] })
  const { page, goto, signIn } = await site.visit()
  await goto('/configuration/connections')
  await signIn('admin', PASSWORD)
  await page.getByRole('listitem').filter({ hasText: 'Valley' }).waitFor()
  const headers = { origin: site.base }
  const settings = { host: '127.0.0.1', port: slow.port }
  const added = await page.request.post(`${site.base}/api/connections`, {
    headers,
    data: { kind: 'tcp', name: 'Slow', settings },
  })
  const { connection } = Object(await added.json())
  await slow.next('wantConfigId')
  await page.getByRole('listitem').filter({ hasText: 'Slow' }).getByText('Reading the radio').waitFor()
  await goto('/')
  await page.getByText('Reading the radio').first().waitFor()
  await page.getByRole('list', { name: 'What needs you' }).waitFor()
  expect(await page.getByText(/Slow (?:is not|has not been) connected/).count()).toBe(0)
  await page.request.delete(`${site.base}/api/connections/${connection.id}`, { headers })
  await slow.stop()
})

test('a port for apps is opened with the view of whoever opens it, and closed again', async () => {
  const { page, goto, signIn, violations } = await site.visit(PHONE)
  await goto('/configuration/connections')
  await signIn('admin', PASSWORD)
  await page.getByRole('button', { name: 'Apps of Hill' }).click()
  const dialog = page.getByRole('dialog', { name: 'Apps on Hill' })
  const port = await freePort()
  await dialog.getByLabel('Port', { exact: true }).fill(String(port))
  await dialog.getByRole('option', { name: 'admin (you)' }).waitFor({ state: 'attached' })
  expect(await violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Open the port' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText(`Apps connect on port ${port}, 0 apps now`).waitFor()
  expect(await violations()).toEqual([])
  await page.getByRole('button', { name: 'Apps of Hill' }).click()
  await dialog.getByRole('button', { name: 'Close the port' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText(/^Apps connect on port/).waitFor({ state: 'detached' })
})
