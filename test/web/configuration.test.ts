import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  Config_LoRaConfig_ModemPreset as ModemPreset,
  Config_LoRaConfig_RegionCode as RegionCode,
} from '../../src/meshtastic/gen/config_pb.ts'
import { Routing_Error } from '../../src/meshtastic/gen/payloads_pb.ts'
import { type ConfigDevice, startConfigDevice } from '../support/radio/config-device.ts'
import { LOCAL } from '../support/mesh/mesh.ts'
import { openRadioSite, type RadioSite, SITE_PASSWORD } from '../support/radio/site.ts'
import { follow } from '../support/web/follow.ts'
import { overflowOf, type Visitor } from '../support/web/site.ts'

const KEY = new Uint8Array(32).fill(7)
const SECRETS = ['wifi secret', 'another secret', 'mqtt secret', Buffer.from(KEY).toString('base64')]

let device: ConfigDevice
let mesh: RadioSite
let admin: Visitor
/** Everything that the service answered to the administrator's page. */
const answers: Promise<string>[] = []

beforeAll(async () => {
  device = await startConfigDevice(LOCAL, {
    owner: { longName: 'Town Hall', shortName: 'HALL' },
    channels: [
      { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } },
      { index: 1, role: 2, settings: { name: 'Rescue', psk: KEY } },
      { index: 2, role: 0 },
    ],
    configs: [
      { payloadVariant: { case: 'device', value: { role: 2, nodeInfoBroadcastSecs: 10_800 } } },
      { payloadVariant: { case: 'position', value: { positionFlags: 0x403, gpsMode: 1 } } },
      { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
      { payloadVariant: { case: 'network', value: { wifiEnabled: true, wifiSsid: 'home', wifiPsk: 'wifi secret' } } },
      { payloadVariant: { case: 'security', value: { publicKey: new Uint8Array(32).fill(9), privateKey: KEY } } },
    ],
    modules: [{ payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'mqtt secret' } } }],
    regionPresets: {
      groups: [{ presets: [ModemPreset.LONG_FAST, ModemPreset.MEDIUM_TURBO] }, { presets: [ModemPreset.TINY_FAST] }],
      regionGroups: [
        { region: RegionCode.EU_868, groupIndex: 0 },
        { region: RegionCode.ITU2_125CM, groupIndex: 1 },
      ],
    },
  })
  mesh = await openRadioSite(device)
  admin = mesh.admin
  admin.page.on('response', (response) => {
    if (response.url().includes('/api/configuration')) answers.push(response.text().catch(() => ''))
  })
})
afterAll(() => mesh.close())

const open = async (visitor: Visitor, section: string) => {
  await visitor.goto(`/configuration/${section}`)
  await visitor.page.locator('.configuration-pane .card').first().waitFor()
}
const review = (page: Page) => page.getByRole('button', { name: 'Review and send' }).click()
const sendIt = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Send to the radio' })
async function confirmAll(page: Page): Promise<void> {
  await page.getByText('Confirm these changes').waitFor()
  for (const box of await page.getByRole('dialog').getByRole('checkbox').all()) await box.check()
}

/** Until the browser has logged a refusal, and nothing else. */
async function toComplainOnce(of: string): Promise<void> {
  await expect.poll(() => admin.complaints).toEqual([expect.stringContaining(of)])
  admin.complaints.length = 0
}

/** Until the radio has restarted and reported its settings again. */
const applied = (page: Page) => page.getByText('Applied', { exact: true }).waitFor()

test('a change is shown before it is sent, and is applied when the radio has restarted', async () => {
  const { page } = admin
  await admin.goto('/configuration')
  await page.getByRole('link', { name: 'Device' }).click()
  const field = page.getByLabel('Node info broadcast interval')
  await expect.poll(() => field.inputValue()).toBe('10800')
  await page.getByText('In seconds = 3 h').waitFor()
  await field.fill('900')
  await page.getByText('In seconds = 15 min').waitFor()
  await page.getByText('One change').waitFor()
  await review(page)
  const rows = page.getByRole('dialog').locator('tbody tr')
  await expect.poll(() => rows.allTextContents()).toEqual(['Node info broadcast interval10800 (3 h)900 (15 min)'])
  expect(await admin.violations()).toEqual([])
  // It does not come back before that was seen.
  device.refuse(true)
  await sendIt(page).click()
  await page.getByText('The radio is applying the change.').waitFor()
  await expect.poll(() => field.isDisabled()).toBe(true)
  device.refuse(false)
  await applied(page)
  await page.getByText('Changed: Node info broadcast interval · by admin').waitFor()
  await expect.poll(async () => [await field.inputValue(), await field.isEnabled()]).toEqual(['900', true])
  expect(device.starts()).toBe(2)
  expect(device.saved.configs.get('device')?.payloadVariant.value).toMatchObject({
    nodeInfoBroadcastSecs: 900,
    role: 2,
  })
  await expect.poll(() => page.getByText('One change').count()).toBe(0)
})

test('of the presets, those that the radio allows in the chosen region are offered', async () => {
  const { page } = admin
  await open(admin, 'lora')
  const offered = () => page.getByRole('combobox', { name: 'Preset' }).locator('option').allTextContents()
  await expect.poll(offered).toEqual(['Long fast', 'Medium turbo'])
  const region = page.getByLabel('Region')
  await region.selectOption({ label: 'ITU2 125CM' })
  await expect.poll(offered).toEqual(['Long fast', 'Tiny fast'])
  await review(page)
  await confirmAll(page)
  await sendIt(page).click()
  await page.getByText('In this region the radio only allows TINY_FAST').waitFor()
  await toComplainOnce('400')
  await region.selectOption({ label: 'US' })
  await expect.poll(async () => (await offered()).length).toBe(17)
  await region.selectOption({ label: 'EU 868' })
  await expect.poll(() => page.getByText('One change').count()).toBe(0)
})

test('a change of the region is sent only after a confirmation', async () => {
  const { page } = admin
  await open(admin, 'lora')
  await page.getByLabel('Region').selectOption({ label: 'US' })
  await page.getByLabel('Hop limit').fill('4')
  await review(page)
  await expect.poll(() => sendIt(page).isDisabled()).toBe(true)
  await page.getByLabel('Region: I know the law at the radio’s location.').check()
  await sendIt(page).click()
  await applied(page)
  expect(device.saved.configs.get('lora')?.payloadVariant.value).toMatchObject({ region: 1, hopLimit: 4 })
})

test('flags are checkboxes, and an unknown one stays as it is', async () => {
  const { page } = admin
  await open(admin, 'position')
  const flags = page.getByRole('group', { name: 'Position flags' })
  const ticked = () => flags.getByRole('checkbox', { checked: true }).count()
  await expect.poll(ticked).toBe(3)
  const unknown = flags.getByLabel('Unknown (bit 10)')
  await expect.poll(async () => [await unknown.isChecked(), await unknown.isDisabled()]).toEqual([true, true])
  await flags.getByLabel('Altitude above sea level').uncheck()
  await flags.getByLabel('Speed').check()
  await review(page)
  const rows = page.getByRole('dialog').locator('tbody tr')
  await expect
    .poll(() => rows.allTextContents())
    .toEqual(['Position flagsAltitude, Altitude above sea level, Unknown (bit 10)Altitude, Speed, Unknown (bit 10)'])
  await sendIt(page).click()
  await applied(page)
  expect(device.saved.configs.get('position')?.payloadVariant.value).toMatchObject({ positionFlags: 0x601 })
  await expect.poll(ticked).toBe(3)
  await flags.getByLabel('Speed').uncheck()
  await page.getByText('One change').waitFor()
  await flags.getByLabel('Speed').check()
  await expect.poll(() => page.getByText('One change').count()).toBe(0)
})

test('a distance is typed and stored in metres, and is also shown in the units of the user', async () => {
  const { page } = admin
  const inUnits = async (name: string) => {
    await admin.goto('/account')
    await page.getByRole('radio', { name }).check({ force: true })
    await open(admin, 'position')
  }
  const field = page.getByLabel('Smart distance')
  await inUnits('Feet, miles, °F')
  await field.fill('100')
  await page.getByText('In metres, when it moves = 328 ft').waitFor()
  await review(page)
  const rows = page.getByRole('dialog').locator('tbody tr')
  await expect.poll(() => rows.allTextContents()).toEqual(['Smart distance0100 (328 ft)'])
  await sendIt(page).click()
  const stored = () => device.saved.configs.get('position')?.payloadVariant.value
  await expect.poll(stored).toMatchObject({ broadcastSmartMinimumDistance: 100 })
  await page.getByText('Changed: Smart distance · by admin').waitFor()
  await open(admin, 'position')
  await expect.poll(() => field.inputValue()).toBe('100')
  await inUnits('Metres, °C')
  await expect.poll(() => field.inputValue()).toBe('100')
  await expect.poll(() => page.getByText('328 ft').count()).toBe(0)
  expect(stored()).toMatchObject({ broadcastSmartMinimumDistance: 100 })
})

test('a secret is replaced, and neither the old nor the new one is ever shown or sent to the page', async () => {
  const { page } = admin
  await open(admin, 'network')
  const secret = page.getByRole('group', { name: 'Wi-Fi password' })
  await secret.getByText('set', { exact: true }).waitFor()
  await secret.getByRole('button', { name: 'Replace' }).click()
  await secret.getByLabel('New value of Wi-Fi password').fill('another secret')
  await review(page)
  await expect
    .poll(() => page.getByRole('dialog').locator('tbody').textContent())
    .toBe('Wi-Fi passwordwill be replaced')
  await page.getByLabel('Wi-Fi password: this service may lose its connection to the radio').check()
  await sendIt(page).click()
  await applied(page)
  expect(device.saved.configs.get('network')?.payloadVariant.value).toMatchObject({ wifiPsk: 'another secret' })
  await secret.getByRole('button', { name: 'Replace' }).waitFor()
  for (const section of ['channels', 'security', 'mqtt', 'network']) {
    await open(admin, section)
    const html = await page.content()
    expect(SECRETS.filter((each) => html.includes(each))).toEqual([])
  }
  const told = (await Promise.all(answers)).join('\n')
  expect(told).toContain('"wifiPsk"')
  expect(SECRETS.filter((each) => told.includes(each))).toEqual([])
})

test('another broker asks for the password again before anything is sent', async () => {
  const { page } = admin
  await open(admin, 'mqtt')
  const before = device.admin.length
  await page.getByLabel('Server').fill('mqtt.example.com')
  await page.getByText('If you change “Server”, the radio uses its stored “Password” there too.').waitFor()
  const button = page.getByRole('button', { name: 'Review and send' })
  await expect.poll(() => button.isDisabled()).toBe(true)
  expect(await admin.violations()).toEqual([])
  const secret = page.getByRole('group', { name: 'Password' })
  await secret.getByText('Password: enter it again, or clear it.').waitFor()
  await secret.getByRole('button', { name: 'Replace' }).click()
  await secret.getByLabel('New value of Password').fill('for the new one')
  await review(page)
  await expect.poll(() => page.getByRole('dialog').locator('tbody tr').count()).toBe(2)
  expect(device.admin.length).toBe(before)
  await sendIt(page).click()
  await applied(page)
  expect(device.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({
    address: 'mqtt.example.com',
    password: 'for the new one',
  })
})

test('a channel gets a name and a random key; a refusal is shown, and no entry is lost', async () => {
  const { page } = admin
  await open(admin, 'channels')
  await page.getByText('Channel 2').click()
  const channel = page.locator('details', { hasText: 'Channel 2' })
  await channel.getByLabel('Name').fill('a name too long')
  await channel.getByText('At most 11 bytes').waitFor()
  await expect.poll(() => page.getByRole('button', { name: 'Review and send' }).isDisabled()).toBe(true)
  await channel.getByLabel('Name').fill('Hikers')
  await channel.getByRole('button', { name: 'Set: Key' }).click()
  await channel.getByRole('button', { name: 'Generate a random key' }).click()
  await channel.getByLabel('Role').selectOption({ label: 'Primary' })
  await review(page)
  await confirmAll(page)
  await sendIt(page).click()
  await page.getByText('Exactly one must have the role PRIMARY').waitFor()
  await toComplainOnce('status of 400')
  await channel.getByLabel('Role').selectOption({ label: 'Secondary' })
  await review(page)
  await confirmAll(page)
  await sendIt(page).click()
  await applied(page)
  const saved = device.saved.channels.get(2)
  expect(saved).toMatchObject({ role: 2, settings: { name: 'Hikers' } })
  expect(saved?.settings?.psk).toHaveLength(32)
  expect(device.saved.channels.get(1)?.settings?.psk).toEqual(KEY)
})

test('a value that the radio changed is shown, and the entry is kept', async () => {
  const { page } = admin
  device.manners.onSave = (settings) => {
    settings.owner.longName = 'Cut'
  }
  await open(admin, 'owner')
  await page.getByLabel('Long name').fill('Town Hall Gateway')
  await review(page)
  await sendIt(page).click()
  await page.getByText('The radio came back with other values').waitFor()
  await page.getByText('Different from your change: Long name').waitFor()
  await expect.poll(() => page.getByLabel('Long name').inputValue()).toBe('Town Hall Gateway')
  await page
    .getByRole('link', { name: /^Owner/ })
    .getByText('differs')
    .waitFor()
  device.manners.onSave = null
  await page.getByRole('button', { name: 'Discard' }).click()
  await expect.poll(() => page.getByLabel('Long name').inputValue()).toBe('Cut')
})

test('a refusal by the radio is shown at once, also on another open page', async () => {
  const reader = await mesh.join('onlooker', { configuration: { read: true, write: false } })
  await open(reader, 'owner')
  await open(admin, 'owner')
  device.manners.refuseWith = Routing_Error.NOT_AUTHORIZED
  device.manners.takes = device.admin.length
  await admin.page.getByLabel('Long name').fill('Refused')
  await review(admin.page)
  await sendIt(admin.page).click()
  // The link stays connected, and no request is made for a minute: only the event reports it.
  for (const { page } of [admin, reader]) await page.getByText('the radio refused it: NOT_AUTHORIZED').waitFor()
  device.manners.refuseWith = null
  await admin.page.getByRole('button', { name: 'Discard' }).click()
})

test('settings that changed meanwhile are shown again, and the entries are kept', async () => {
  const { page } = admin
  await open(admin, 'owner')
  await page.getByLabel('Long name').fill('My name')
  await review(page)
  await page.route('**/api/configuration/owner*', async (route) => {
    const body = Object(route.request().postDataJSON())
    if (route.request().method() !== 'PUT') return route.continue()
    return route.continue({ postData: JSON.stringify({ ...body, revision: 'of yesterday' }) })
  })
  await sendIt(page).click()
  await page.getByText('The radio’s settings were changed elsewhere and have been reloaded.').waitFor()
  await page.unroute('**/api/configuration/owner*')
  await toComplainOnce('status of 409')
  await expect.poll(() => page.getByLabel('Long name').inputValue()).toBe('My name')
  await review(page)
  await sendIt(page).click()
  await applied(page)
  expect(device.saved.owner.longName).toBe('My name')
})

test('users with only the read permission see values and no controls', async () => {
  const reader = await mesh.join('reader', { configuration: { read: true, write: false } })
  const { page } = reader
  await open(reader, 'network')
  await page.getByText('You can see the settings but not change them.').waitFor()
  await expect
    .poll(() => page.getByRole('definition').allTextContents())
    .toEqual(expect.arrayContaining(['on', 'home', 'set']))
  await expect.poll(() => page.locator('form, input, select, textarea').count()).toBe(0)
  await expect.poll(() => page.locator('.configuration').getByRole('button').count()).toBe(0)
  expect(await reader.violations()).toEqual([])
  expect(reader.complaints).toEqual([])
})

test.each([
  ['light and dark', {}],
  ['on a phone', { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }],
] as const)(
  'axe-core finds nothing in any section, no page is too wide, the console is empty: %s',
  async (_name, options) => {
    const visitor = await mesh.site.visit(options)
    const { page } = visitor
    await visitor.goto('/configuration')
    await visitor.signIn('admin', SITE_PASSWORD)
    await page.getByRole('navigation', { name: 'Sections' }).waitFor()
    for (const section of ['', 'owner', 'channels', 'device', 'position', 'lora', 'network', 'security', 'mqtt']) {
      await follow(page, section === '' ? '/configuration' : `/configuration/${section}`)
      if (section !== '') await page.locator('.configuration-pane .card').first().waitFor()
      await page.locator('.sections, .settings').filter({ visible: true }).first().waitFor()
      expect([section, ...(await visitor.violations())]).toEqual([section])
      await expect.poll(async () => [section, await overflowOf(page)]).toEqual([section, 0])
    }
    await open(visitor, 'lora')
    await page.getByLabel('Region').selectOption({ label: 'EU 868' })
    await review(page)
    expect(await visitor.violations()).toEqual([])
    expect(visitor.complaints).toEqual([])
  },
)

test('without its radio the last known settings are shown, and the entries wait', async () => {
  const { page } = admin
  await open(admin, 'owner')
  await page.getByLabel('Short name').fill('TH')
  device.refuse(true)
  device.kick()
  await page.getByText('The radio is not connected. These are its settings as reported').waitFor()
  const field = page.getByLabel('Short name')
  await expect.poll(async () => [await field.isDisabled(), await field.inputValue()]).toEqual([true, 'TH'])
  await expect.poll(() => page.getByRole('button', { name: 'Review and send' }).isDisabled()).toBe(true)
  await page.getByRole('link', { name: /^LoRa/ }).click()
  await page.getByRole('link', { name: /^Owner edited/ }).click()
  await expect.poll(() => page.getByLabel('Short name').inputValue()).toBe('TH')
  expect(admin.complaints).toEqual([])
})
