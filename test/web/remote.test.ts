import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/node/clock.ts'
import { LOCAL } from '../support/mesh/mesh.ts'
import { SETTINGS } from '../support/radio/config-service.ts'
import { type ConfigDevice, startConfigDevice } from '../support/radio/config-device.ts'
import { fromRadio } from '../support/radio/device.ts'
import { addRemoteNode, REMOTE, REMOTE_KEY, type RemoteNode } from '../support/radio/remote-node.ts'
import { REMOTE_SETTINGS } from '../support/radio/remote-service.ts'
import { openRadioSite, type RadioSite } from '../support/radio/site.ts'
import { overflowOf, type Visitor } from '../support/web/site.ts'

let device: ConfigDevice
let node: RemoteNode
let mesh: RadioSite
let admin: Visitor

beforeAll(async () => {
  device = await startConfigDevice(LOCAL, SETTINGS)
  node = addRemoteNode(device, systemClock, REMOTE_SETTINGS)
  mesh = await openRadioSite(device)
  admin = mesh.admin
  const user = { longName: 'Hill', shortName: 'HL', publicKey: REMOTE_KEY }
  device.send(fromRadio({ case: 'nodeInfo', value: { num: REMOTE, user, hopsAway: 1, lastHeard: 1_760_000_000 } }))
})
afterAll(() => mesh.close())

const look = async (width: number, height = 900) => {
  await admin.page.setViewportSize({ width, height })
  expect(await overflowOf(admin.page)).toBeLessThanOrEqual(0)
}

test('a node is named as own, read over the mesh, and changed after the loss is accepted', async () => {
  const { page } = admin
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  await expect.poll(async () => (await page.request.get(`${mesh.site.base}/api/nodes/${REMOTE}`)).status()).toBe(200)
  await admin.goto('/nodes/!a0cb0042')
  await page.getByRole('link', { name: 'Configure remotely' }).click()
  await page.getByText('Is this your node?').waitFor()
  // The refusal of a node that nobody has named.
  await expect.poll(() => admin.complaints.length).toBeGreaterThan(0)
  admin.complaints.length = 0
  await look(390)
  await look(1360)
  await press('This is our node')
  await page.getByText('Public key of our radio').or(page.getByLabel('Public key of our radio')).first().waitFor()
  expect(await admin.violations()).toEqual([])
  await look(390)
  await look(1360)
  await page.getByRole('link', { name: 'LoRa' }).click()
  await page.getByText('This section has not been read yet.').waitFor()
  await page.getByText(/On the air: about .* s\. Transmissions: 6\. Hops: 1\./).waitFor()
  await press('Read this section')
  const field = page.getByLabel('Hop limit')
  await expect.poll(() => field.inputValue()).toBe('3')
  await expect.poll(() => admin.complaints.filter((text) => !text.includes('404'))).toEqual([])
  admin.complaints.length = 0
  expect(await admin.violations()).toEqual([])
  await look(390)
  await look(1360)
  await field.fill('0')
  await press('Review and send')
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/On the air: about/).waitFor()
  await dialog.getByRole('checkbox').check()
  await dialog.getByRole('button', { name: 'Send over the mesh' }).click()
  await dialog.getByText('Hop limit: only nodes that hear it directly get its answers.').waitFor()
  expect(node.packets).toHaveLength(1)
  expect(await admin.violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Change it anyway' }).click()
  await page.getByText(/The node is asked for its present settings|Sent\. The node has not answered yet/).waitFor()
  await expect.poll(() => field.isDisabled()).toBe(true)
  await page.getByText('The node saves and restarts.').waitFor({ timeout: 60_000 })
  await look(390)
  expect(node.active.configs.get('lora')?.payloadVariant.value).toMatchObject({ hopLimit: 0 })
  expect(admin.complaints).toEqual([])
})

test('a restart shows its airtime before, and a node that is no longer own is forgotten', async () => {
  const { page } = admin
  const dialog = page.getByRole('dialog')
  await admin.goto('/configuration?node=!a0cb0042')
  await page.getByRole('button', { name: 'No longer our node' }).click()
  await dialog.getByText('Hill is no longer configured from here.').waitFor()
  expect(await admin.violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  // Nothing else is done with the node until it is back.
  await expect
    .poll(() => page.getByRole('button', { name: 'Restart the node' }).isEnabled(), { timeout: 120_000 })
    .toBe(true)
  await page.getByText('Applied: the node has the new values after its restart').waitFor()
  await page.getByRole('button', { name: 'Restart the node' }).click()
  await dialog.getByText(/neither receives nor sends until it is back\. On the air: about/).waitFor()
  expect(await admin.violations()).toEqual([])
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'No longer our node' }).click()
  await dialog.getByRole('button', { name: 'No longer our node' }).click()
  await page.getByText('Is this your node?').waitFor()
})
