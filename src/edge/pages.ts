import { HSTS, pagePolicy, SECURITY_HEADERS } from '../app/security.ts'
import type { Config } from '../app/config.ts'
import type { Env } from './environment.ts'

/**
 * The web application: its files with the headers of `_headers`, and its page for every path that is no file. `config`
 * is null while the service is not configured: the pages come up all the same and show what the API says.
 */
export async function servePages(request: Request, env: Env, config: Config | null): Promise<Response> {
  const { protocol, pathname } = new URL(request.url)
  const found = await env.ASSETS.fetch(request)
  const isHtml = found.headers.get('content-type')?.startsWith('text/html') ?? false
  const isPage = isHtml && mayBePage(pathname)
  const answer = isHtml && !isPage ? notFound() : new Response(found.body, found)
  if (isPage && config !== null) answer.headers.set('Content-Security-Policy', pagePolicy(config))
  if (protocol === 'https:') answer.headers.set('Strict-Transport-Security', HSTS)
  return answer
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
