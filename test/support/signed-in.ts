import type { BrowserContext, Page } from 'playwright-core'
import type { Site, Visitor } from './web/site.ts'

export const ADMIN_PASSWORD = 'three radios on one hill'

type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>

const pages: Page[] = []
/** The sessions of administrators, so that only the first visit of a site signs in. */
const sessions = new WeakMap<Site, Cookies>()

/** An administrator who has signed in and sees this page. Visits of one site share a session. */
export async function openSignedIn(
  site: Site,
  path: string,
  options: Parameters<Site['visit']>[0] = {},
): Promise<Visitor> {
  const visitor = await site.visit(options)
  pages.push(visitor.page)
  const context = visitor.page.context()
  await context.addCookies(sessions.get(site) ?? [])
  const status = await context.request.get(`${site.base}/api/auth/status`)
  if (Object(await status.json()).authenticated !== true) {
    const data = { username: 'admin', password: ADMIN_PASSWORD }
    const answer = await context.request.post(`${site.base}/api/auth/login`, { headers: { origin: site.base }, data })
    if (answer.status() !== 200) throw new Error(`the sign-in answered ${answer.status()}`)
    sessions.set(site, await context.cookies())
  }
  await visitor.goto(path)
  await visitor.page.getByRole('navigation').first().waitFor()
  await visitor.page.locator('h1').waitFor()
  return visitor
}

/** Closes all of them: each keeps a stream of events open, and a user may have only a few. */
export async function closeVisits(): Promise<void> {
  for (const page of pages.splice(0)) await page.context().close()
}
