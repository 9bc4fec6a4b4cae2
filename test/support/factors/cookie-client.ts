import { createBrowser } from '../web/browser.ts'
import type { TestApp } from '../app.ts'

export type CookieClient = ReturnType<typeof cookieClient>

/** A browser that keeps every cookie: sends JSON and reads it. */
export function cookieClient(app: TestApp) {
  const browser = createBrowser((path, init) => app.request(path, init))
  return {
    cookies: browser.cookies,
    send: async (method: string, path: string, body?: unknown): Promise<Response> =>
      browser.request(path, {
        method,
        ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      }),
  }
}
