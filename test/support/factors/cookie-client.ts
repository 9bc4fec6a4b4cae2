import { expect } from 'vitest'
import { createBrowser } from '../web/browser.ts'
import type { TestApp } from '../app.ts'
import { codeAt } from './oathtool.ts'

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

/** Sets up an authenticator app; returns its secret and the recovery codes. */
export async function enrol(
  app: TestApp,
  client: { send(method: string, path: string, body?: unknown): Promise<Response> },
): Promise<{ secret: string; codes: string[] }> {
  const { secret, enrolment } = Object(await (await client.send('POST', '/api/auth/factors/totp')).json())
  const code = codeAt(secret, app.clock.now)
  const answer = await client.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code })
  expect(answer.status).toBe(200)
  return { secret, codes: Object(await answer.json()).recoveryCodes }
}
