import type { Config } from '../app/config/config.ts'
import { type Frame, redirectTo } from '../app/accounts/access/embed-profiles.ts'
import { AppError, problem } from '../app/http/errors.ts'
import { unconditional } from '../app/http/pages.ts'
import { newRequestId } from '../app/http/request-id.ts'
import { isEmbedPath, isPagePath } from '../shared/pages.ts'
import {
  embedHeaders,
  HSTS,
  isPublishedByHttps,
  pagePolicy,
  robotsHeaders,
  SECURITY_HEADERS,
} from '../app/http/security.ts'
import type { Env } from './environment.ts'

type PageService = {
  readonly config: Config
  /** The page in a frame of other sites, by its query; null: there is none. */
  findFrame(query: URLSearchParams): Promise<Frame | null>
  /** The hosts of the map's tiles. */
  tileOrigins(): Promise<readonly string[]>
}

/**
 * The web application: its files with the headers of `_headers`, and its page for every path without a file. `service`
 * is null while the service is not configured: the pages load anyway and show the API's error.
 */
export async function servePages(request: Request, env: Env, service: PageService | null): Promise<Response> {
  const requestId = newRequestId()
  const { protocol } = new URL(request.url)
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const answer = isRead ? await readPage(request, env, service) : refuseMethod(requestId)
  answer.headers.set('X-Request-Id', requestId)
  const isHttps = protocol === 'https:' || (service !== null && isPublishedByHttps(service.config))
  if (isHttps) answer.headers.set('Strict-Transport-Security', HSTS)
  return answer
}

async function readPage(request: Request, env: Env, service: PageService | null): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  const found = await env.ASSETS.fetch(isEmbedPath(pathname) ? unconditional(request) : request)
  const isHtml = found.headers.get('content-type')?.startsWith('text/html') ?? false
  const isPage = isHtml && mayBePage(pathname)
  const frame = isPage && isEmbedPath(pathname) ? ((await service?.findFrame(searchParams)) ?? null) : null
  const isThere = isPagePath(pathname) && (frame !== null || !isEmbedPath(pathname))
  const status = isPage && found.ok && !isThere ? 404 : found.status
  const isLedOn = isThere && found.ok && typeof frame?.redirect === 'string'
  const page = () => new Response(found.body, { status, headers: found.headers })
  const answer = isHtml && !isPage ? notFound() : isLedOn ? redirectTo(frame.redirect) : page()
  if (!isPage || service === null) return answer
  const { config } = service
  const origins = await service.tileOrigins()
  answer.headers.set('Content-Security-Policy', pagePolicy(origins))
  const more = { ...robotsHeaders(config), ...(frame !== null && embedHeaders(frame.origins, origins)) }
  for (const [name, value] of Object.entries(more)) answer.headers.set(name, value)
  return answer
}

/** A problem with the headers of every answer, for requests that never reach the application. */
export function refuse(error: AppError, requestId: string): Response {
  const response = problem(error, requestId)
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value)
  response.headers.set('Cache-Control', 'no-store')
  response.headers.set('X-Request-Id', requestId)
  return response
}

function refuseMethod(requestId: string): Response {
  return refuse(new AppError('method_not_allowed', undefined, { allow: ['GET', 'HEAD'] }), requestId)
}

// For a deleted file the platform returns the page with the caching headers of a file. A browser would take it for a
// script and cache it for a year.
function mayBePage(pathname: string): boolean {
  return !pathname.startsWith('/assets/') && !/\.[^/]*$/.test(pathname)
}

function notFound(): Response {
  const headers = { ...SECURITY_HEADERS, 'Cache-Control': 'no-store', 'Content-Type': 'text/plain; charset=utf-8' }
  return new Response('Not found\n', { status: 404, headers })
}
