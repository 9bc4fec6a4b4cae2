import type { Page } from 'playwright-core'
import type { Site, Visitor } from './web/site.ts'

export const ADMIN_PASSWORD = 'three radios on one hill'

const pages: Page[] = []

/** An administrator who signed in and sees this page. */
export async function openSignedIn(
  site: Site,
  path: string,
  options: Parameters<Site['visit']>[0] = {},
): Promise<Visitor> {
  const visitor = await site.visit(options)
  pages.push(visitor.page)
  await visitor.goto(path)
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('navigation').first().waitFor()
  await visitor.page.locator('h1').waitFor()
  return visitor
}

/** Closes all of them: each keeps a stream of events open, and a user may have only a few. */
export async function closeVisits(): Promise<void> {
  for (const page of pages.splice(0)) await page.context().close()
}
