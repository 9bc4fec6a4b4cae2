import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseChannelUrl } from '../../src/meshtastic/exchange/channel-url.ts'
import { type ConfigDevice, startConfigDevice } from '../support/radio/config-device.ts'
import { LOCAL } from '../support/mesh/mesh.ts'
import { openRadioSite, type RadioSite } from '../support/radio/site.ts'
import { readQr } from '../support/web/qr.ts'
import { overflowOf } from '../support/web/site.ts'

const KEY = new Uint8Array(32).fill(7)

let device: ConfigDevice
let mesh: RadioSite
let page: Page

beforeAll(async () => {
  device = await startConfigDevice(LOCAL, {
    owner: { longName: 'Town Hall', shortName: 'HALL' },
    channels: [
      { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } },
      { index: 1, role: 2, settings: { name: 'Rescue', psk: KEY } },
      { index: 2, settings: {} },
      { index: 3, settings: {} },
    ],
    configs: [
      { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
      { payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'wifi secret' } } },
    ],
  })
  mesh = await openRadioSite(device)
  page = mesh.admin.page
})
afterAll(() => mesh.close())

const dialog = () => page.getByRole('dialog')
const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
const open = async (path: string, name: string) => {
  await mesh.admin.goto(path)
  await press(name)
  await dialog().waitFor()
}
const looksWell = async () => expect([await mesh.admin.violations(), await overflowOf(page)]).toEqual([[], 0])

test('channels are shared as a QR code, which has the keys of the chosen ones', async () => {
  await open('/configuration/channels', 'Share channels')
  await dialog().getByRole('checkbox', { name: 'Channel 1 · Rescue' }).check()
  await press('Show QR code')
  const code = dialog().getByRole('img', { name: 'QR code of the channels' })
  await code.waitFor()
  const url = (await dialog().getByLabel('URL of the channels').textContent()) ?? ''
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(readQr(await code.screenshot()).trim()).toBe(url)
  }
  expect(parseChannelUrl(url)).toMatchObject({
    ok: true,
    shared: { channels: [{ name: '' }, { name: 'Rescue', psk: KEY }], lora: { region: 3 }, isAddOnly: false },
  })
  await looksWell()
  await dialog().getByRole('button', { name: 'Close' }).last().click()
})

test('channels of a URL are added after their slots were shown', async () => {
  await open('/configuration/channels', 'Add channels')
  const field = dialog().getByLabel('URL of channels')
  await field.fill('https://example.org/e/#CgMSAQE')
  await press('Show what changes')
  await dialog().getByText('This is a URL of another site.').waitFor()
  expect(mesh.admin.complaints.splice(0)).toHaveLength(1)
  // One channel with the default key, as in the tests of the Android app, and Rescue again.
  await field.fill('https://meshtastic.org/e/?add=true#CgkSAQEaBENsdWI')
  await press('Show what changes')
  await dialog().getByText('Slot 2: “Club” is added').waitFor()
  await looksWell()
  await press('Send to the radio')
  await expect.poll(() => device.saved.channels.get(2)).toMatchObject({ role: 2, settings: { name: 'Club' } })
  await page.getByText('Applied', { exact: true }).waitFor()
})

test('what replacing loses, and LoRa settings, need a confirmation each', async () => {
  await open('/configuration/channels', 'Add channels')
  await dialog().getByLabel('URL of channels').fill('https://meshtastic.org/e/#CgMSAQESCAgBEARAA0gB')
  await press('Show what changes')
  await dialog().getByText('Slot 1: “Rescue” is removed').waitFor()
  const send = dialog().getByRole('button', { name: 'Send to the radio' })
  expect(await send.isDisabled()).toBe(true)
  await dialog()
    .getByRole('checkbox', { name: /^The radio loses channels/ })
    .check()
  expect(await send.isDisabled()).toBe(false)
  await dialog().getByRole('switch', { name: 'Also use its LoRa settings' }).click()
  await dialog()
    .getByRole('checkbox', { name: /^Preset: this radio may lose contact/ })
    .waitFor()
  await dialog().getByText('The URL names no region, so the radio keeps its own.').waitFor()
  expect(await send.isDisabled()).toBe(true)
  await looksWell()
  await page.keyboard.press('Escape')
})

test('a file is exported without secrets, with them when chosen, and applied section by section', async () => {
  await open('/configuration', 'Export file')
  const content = dialog().getByLabel('Content of the file')
  await content.waitFor()
  const yaml = await content.inputValue()
  expect(yaml).toContain('owner: Town Hall')
  expect(yaml).not.toMatch(/wifiPsk|channel_url/)
  await dialog().getByText('Include secrets').click()
  await dialog().getByRole('checkbox', { name: 'Network: Wi-Fi password' }).check()
  await looksWell()
  await press('Export with secrets')
  await expect.poll(() => content.inputValue()).toContain('wifiPsk: wifi secret')
  await page.keyboard.press('Escape')

  await open('/configuration', 'Import file')
  await dialog()
    .getByLabel('Text of the file')
    .fill(`${yaml.replace('hopLimit: 3', 'hopLimit: 4')}\nringtone: abc\n`)
  await press('Show what changes')
  await dialog().getByText('this service does not write it to radios').waitFor()
  await dialog().getByRole('checkbox', { name: 'Apply “LoRa”' }).waitFor()
  expect(
    await dialog()
      .getByRole('row', { name: /Hop limit 3 4/ })
      .count(),
  ).toBe(1)
  await looksWell()
  await press('Send to the radio')
  await expect
    .poll(() => device.saved.configs.get('lora')?.payloadVariant.value)
    .toMatchObject({ hopLimit: 4, region: 3 })
})

test('who may only read exports a file without secrets, and shares or imports nothing', async () => {
  const reader = await mesh.join('onlooker', { configuration: { read: true, write: false } })
  await reader.goto('/configuration/channels')
  const named = (name: string) => reader.page.getByRole('button', { name, exact: true })
  await named('Export file').click()
  await reader.page.getByLabel('Content of the file').waitFor()
  expect(await reader.page.getByText('Include secrets').count()).toBe(0)
  for (const name of ['Import file', 'Share channels', 'Add channels']) expect(await named(name).count()).toBe(0)
})
