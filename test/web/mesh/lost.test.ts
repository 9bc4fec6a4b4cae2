import { afterAll, beforeAll, expect, test } from 'vitest'
import { isLive, openRadioSite, type RadioSite, SITE_PASSWORD } from '../../support/radio/site.ts'
import { follow } from '../../support/web/follow.ts'
import { overflowOf } from '../../support/web/site.ts'

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openRadioSite()
})
afterAll(() => mesh.close())

test('a lost radio is shown on every page, also on a phone, until it is back', async () => {
  const { admin, device, site } = mesh
  const { page } = admin
  const phone = await site.visit({ viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true })
  await phone.goto('/')
  await phone.signIn('admin', SITE_PASSWORD)
  await isLive(phone)
  const bar = /^The radio .+ has not been connected since \d\d:\d\d:\d\d\./
  expect(await page.getByText(bar).count()).toBe(0)
  device.refuse(true)
  device.kick()
  await admin.goto('/')
  for (const path of ['/nodes', '/users', '/account', '/map', '/messages']) {
    await follow(page, path)
    await page.getByText(bar).waitFor()
    await page.getByText('nothing can be sent until it is back').waitFor()
    expect([path, ...(await admin.violations())]).toEqual([path])
  }
  await phone.page.getByText(bar).waitFor()
  await phone.page.getByText('Check that the radio has power').waitFor()
  expect(await phone.violations()).toEqual([])
  expect(await overflowOf(phone.page)).toBe(0)
  // The navigation bar stays reachable below it.
  await phone.page.getByRole('link', { name: 'Nodes', exact: true }).tap()
  await phone.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
  await phone.page.getByText(bar).waitFor()
  device.refuse(false)
  await page.getByText(bar).waitFor({ state: 'detached' })
  await phone.page.getByText(bar).waitFor({ state: 'detached' })
})
