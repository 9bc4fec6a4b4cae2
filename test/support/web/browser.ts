import type { TestProvider } from '../oidc/provider.ts'

/** Sends requests to one site, keeps its cookies, and does not follow redirects to other sites. */
export type Browser = {
  readonly cookies: Map<string, string>
  request(path: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<Response>
}

export function createBrowser(send: (path: string, init: RequestInit) => Response | Promise<Response>): Browser {
  const cookies = new Map<string, string>()
  return {
    cookies,
    request: async (path, init = {}) => {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const headers = { ...init.headers, ...(cookie !== '' && { cookie }) }
      const answer = await send(path, { method: 'GET', ...init, headers, redirect: 'manual' })
      for (const line of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (/max-age=0/i.test(line)) cookies.delete(name)
        else cookies.set(name, value)
      }
      return answer
    },
  }
}

/** Begins a sign-in and follows the provider; returns the path and query of the callback. */
export async function reachCallback(browser: Browser, provider: TestProvider, returnTo?: string): Promise<string> {
  const query = returnTo === undefined ? '' : `?returnTo=${encodeURIComponent(returnTo)}`
  const begun = await browser.request(`/api/auth/oidc/login${query}`)
  const location = begun.headers.get('location') ?? ''
  if (!location.startsWith(provider.issuer)) throw new Error(`sent to ${begun.status} ${location}`)
  const { pathname, search } = await provider.authorize(location)
  return `${pathname}${search}`
}

/** A complete sign-in; returns where the callback sent the browser. */
export async function signInBy(browser: Browser, provider: TestProvider, returnTo?: string): Promise<string> {
  const answer = await browser.request(await reachCallback(browser, provider, returnTo))
  return `${answer.status} ${answer.headers.get('location') ?? ''}`
}

/** The user that the browser is signed in as; null for nobody. */
export async function whoIs(browser: Browser): Promise<Record<string, unknown> | null> {
  const { authenticated, user } = Object(await (await browser.request('/api/auth/status')).json())
  return authenticated ? user : null
}
