import { pagePolicy, SECURITY_HEADERS } from '../app/security.ts'
import type { Config } from '../app/config.ts'
import type { Env } from './environment.ts'

/**
 * The web application: its files with the headers of `_headers`, and its page for every path that is no file. `config`
 * is null while the service is not configured: the pages come up all the same and show what the API says.
 */
export async function servePages(request: Request, env: Env, config: Config | null): Promise<Response> {
  const found = await env.ASSETS.fetch(request)
  const isPage = found.headers.get('content-type')?.startsWith('text/html') ?? false
  if (!isPage) return found
  if (!mayBePage(new URL(request.url).pathname)) return notFound()
  if (config === null) return found
  const page = new Response(found.body, found)
  page.headers.set('Content-Security-Policy', pagePolicy(config))
  return page
}

// The platform answers a file that is gone with the page and the caching of a file: a browser would take a page for a
// script, and keep it for a year.
function mayBePage(pathname: string): boolean {
  return !pathname.startsWith('/assets/') && !/\.[^/]*$/.test(pathname)
}

function notFound(): Response {
  const headers = { ...SECURITY_HEADERS, 'Cache-Control': 'no-store', 'Content-Type': 'text/plain; charset=utf-8' }
  return new Response('Not found\n', { status: 404, headers })
}
