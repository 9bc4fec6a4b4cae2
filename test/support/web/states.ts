import type { Page } from 'playwright-core'

/** Something that opens on a page, such as a dialog. */
export type State = {
  readonly name: string
  /** The source that draws it. */
  readonly of: string
  readonly path: string
  /** Resolves once it is visible. */
  open(page: Page): Promise<unknown>
}

/** A detailed map in use, without asking another host. Only settings say so: its file is not there for the map. */
export async function haveRegion(page: Page): Promise<void> {
  const area = { bounds: [10.7, 49.78, 11.05, 50], maxZoom: 14 }
  const made = { bytes: 84e6, t: Date.UTC(2026, 10, 1), attribution: '© Region makers' }
  const rest = { state: 'ready', source: 'planet.example.org', fetchedBytes: 0, totalBytes: 0, problem: null }
  await page.route('**/api/map/region', (route) =>
    new URL(page.url()).pathname === '/settings'
      ? route.fulfill({ json: { ...area, ...made, ...rest, wanted: null, suggestion: area } })
      : route.fallback(),
  )
  await page.route('**/api/map/region/preview', (route) =>
    route.fulfill({ json: { bytes: 84e6, tiles: 5000, free: 12e9 } }),
  )
}

/** A key and a place for copies, at which nobody listens. */
export async function haveCopies(page: Page): Promise<void> {
  const request = (method: 'PUT' | 'POST', data: object) =>
    page.request.fetch(new URL('/api/system/copies', page.url()).href, { method, data })
  const recipient = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
  await request('PUT', { recipients: [{ recipient, name: 'the safe' }] })
  const settings = { url: 'http://127.0.0.1:9/', ownNetwork: true }
  await request('POST', { kind: 'webdav', name: 'the shed', settings })
  await page.reload()
}

export const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()
/** Presses buttons, and waits for the dialog that they open. */
export const pressed =
  (...names: readonly (string | RegExp)[]) =>
  async (page: Page) => {
    for (const name of names) await press(page, name)
    await page.getByRole('dialog').waitFor()
  }
export const typedInto = (label: string) => async (page: Page) => {
  await page.getByRole('combobox', { name: label }).fill('hill')
  await page.getByRole('listbox').getByRole('option').first().waitFor()
}
