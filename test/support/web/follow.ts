import type { Page } from 'playwright-core'

/**
 * Opens an existing page of the application as a link does, for tests of many pages: everything stays loaded. Open dialogs are
 * closed, and the page begins anew even if it is the same one.
 */
export async function follow(page: Page, path: string): Promise<void> {
  const heading = page.getByRole('heading', { level: 1 })
  const nothing = 'Page not found'
  await page.evaluate("for (const dialog of document.querySelectorAll('dialog')) dialog.close()")
  await page.locator('dialog').waitFor({ state: 'detached' })
  await clickLink(page, '/nowhere')
  await heading.filter({ hasText: nothing }).waitFor()
  await clickLink(page, path)
  await heading.filter({ hasNotText: nothing }).waitFor()
}

function clickLink(page: Page, path: string): Promise<unknown> {
  const link = `Object.assign(document.createElement('a'), { href: ${JSON.stringify(path)} })`
  return page.evaluate(`(() => { const link = ${link}; document.body.append(link); link.click(); link.remove() })()`)
}
