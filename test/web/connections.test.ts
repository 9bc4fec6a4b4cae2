import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, type Site } from '../support/web/site.ts'
import { freePort } from '../support/servers/free-port.ts'
import { fromRadio, type RadioDevice, smallHandshake, startRadioDevice } from '../support/radio/device.ts'

const PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

/** A radio that knows another node. */
function knowing(longName: string, num: number) {
  return (nonce: number) => {
    const all = smallHandshake(nonce)
    const node = fromRadio({
      case: 'nodeInfo',
      value: {
        num,
        lastHeard: Math.floor(Date.now() / 1000),
        user: { id: `!${num.toString(16)}`, longName, shortName: longName.slice(0, 4) },
      },
    })
    return [...all.slice(0, -1), node, ...all.slice(-1)]
  }
}

let site: Site
let hill: RadioDevice
let valley: RadioDevice
beforeAll(async () => {
  hill = await startRadioDevice({ handshake: knowing('Barn', 0x0b0b0001) })
  valley = await startRadioDevice({ handshake: knowing('Mill', 0x0b0b0002) })
  site = await openSite({ DEMO: 'false', ADMIN_PASSWORD: PASSWORD })
})
afterAll(async () => {
  await site.close()
  await Promise.all([hill.stop(), valley.stop()])
})

test('first run: a radio is connected on the page, its name shown first, and its nodes arrive', async () => {
  const { page, goto, signIn, violations } = await site.visit()
  await goto('/')
  await signIn('admin', PASSWORD)
  await page.getByRole('link', { name: 'Connect a radio' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Connect a radio' })
  await dialog.getByLabel('Host name or IP address').fill('127.0.0.1')
  await dialog.getByLabel('Port', { exact: true }).fill(String(hill.port))
  expect(await violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByText(/^It is .+ \(!a0cb0001\)$/).waitFor()
  await dialog.getByLabel('Name of the connection').fill('Hill')
  expect(await violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const row = page.getByRole('listitem').filter({ hasText: 'Hill' })
  await row.getByText('Connected', { exact: false }).waitFor()
  expect(await violations()).toEqual([])
  await page.getByRole('link', { name: 'Nodes' }).first().click()
  await page.getByText('Barn').first().waitFor()
})

test('on a phone a second one is added, and the first switched off and on again', async () => {
  const { page, goto, signIn, violations } = await site.visit(PHONE)
  await goto('/configuration/connections')
  await signIn('admin', PASSWORD)
  await page.getByRole('button', { name: 'Connect a radio' }).click()
  const dialog = page.getByRole('dialog', { name: 'Connect a radio' })
  await dialog.getByLabel('Host name or IP address').fill('127.0.0.1')
  await dialog.getByLabel('Port', { exact: true }).fill(String(valley.port))
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByLabel('Name of the connection').fill('Valley')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const rowOf = (name: string) => page.getByRole('listitem').filter({ hasText: name })
  await rowOf('Valley').getByText('Connected').waitFor()
  const before = valley.connections()
  await rowOf('Hill').getByRole('switch', { name: 'Use Hill' }).click()
  await rowOf('Hill').getByText('Off', { exact: false }).first().waitFor()
  expect(await violations()).toEqual([])
  await rowOf('Hill').getByRole('switch', { name: 'Use Hill' }).click()
  await rowOf('Hill').getByText('Connected').waitFor()
  expect(valley.connections()).toBe(before)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.viewport.width)
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
