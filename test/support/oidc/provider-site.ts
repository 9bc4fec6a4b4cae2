import { afterEach, beforeEach } from 'vitest'
import { auditRows, createTestApp, type TestApp } from '../app.ts'
import { type Browser, createBrowser } from '../web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from './provider.ts'

export let provider: TestProvider
export let app: TestApp
export let browser: Browser

/** Gives each test of the file a new provider, a service that trusts it, and a browser. */
export function useProviderSite(): void {
  beforeEach(async () => {
    provider = await startProvider()
    await open()
  })
  afterEach(async () => {
    app.close()
    await provider.close()
  })
}

/** Replaces the service. */
export async function open(env: Record<string, string> = {}): Promise<void> {
  app?.close()
  app = await createTestApp({ env: oidcEnv(provider, env) })
  provider.now = () => app.clock.now
  browser = createBrowser((path, init) => app.request(path, init))
}

/** Replaces the provider by one that the service does not know yet. */
export async function replaceProvider(options: Parameters<typeof startProvider>[0]): Promise<void> {
  await provider.close()
  provider = await startProvider(options)
}

/** Where the browser is sent to sign in. */
export async function begin(path = '/api/auth/oidc/login'): Promise<URL> {
  return new URL((await browser.request(path)).headers.get('location') ?? '')
}

export function lastReason(): unknown {
  return auditRows(app).at(-1)?.details['reason']
}
