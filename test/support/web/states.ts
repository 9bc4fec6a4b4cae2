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
