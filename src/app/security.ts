import type { Context, MiddlewareHandler, TypedResponse } from 'hono'
import type { JSONParsed } from 'hono/utils/types'
import type { AppEnv } from './context.ts'
import { AppError } from './errors.ts'

const CSP = [
  "default-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "img-src 'self' data:",
  "object-src 'none'",
].join('; ')

const HEADERS = {
  'Content-Security-Policy': CSP,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

const HSTS = 'max-age=31536000'

/** Every answer's request id and security headers, and no caching of the API. */
export const responseHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  if (c.var.hasHeaders === true) return
  const { headers } = c.res
  headers.set('X-Request-Id', c.var.ctx.requestId)
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value)
  if (isHttps(c)) headers.set('Strict-Transport-Security', HSTS)
  if (c.req.path.startsWith('/api/') && !headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
}

/**
 * The answer of a route that many clients poll: 200 with all its headers in one plain object, which the adapters write
 * out at twice the speed of headers that are added one by one. `body` is a value, or JSON text of such a value.
 */
export function reply<T>(
  c: Context<AppEnv>,
  body: T | { readonly json: string },
  extra?: Readonly<Record<string, string>>,
): Response & TypedResponse<JSONParsed<T>, 200, 'json'> {
  const isText = typeof body === 'object' && body !== null && 'json' in body
  return typed(rawReply(c, isText ? body.json : JSON.stringify(body), 200, { ...extra, 'Content-Type': 'application/json' }))
}

/** `reply` for an answer that is not JSON, such as 304. */
export function rawReply(
  c: Context<AppEnv>,
  body: string | null,
  status: number,
  extra: Readonly<Record<string, string>>,
): Response {
  c.set('hasHeaders', true)
  const headers: Record<string, string> = {
    ...HEADERS,
    'Cache-Control': 'no-store',
    ...extra,
    'X-Request-Id': c.var.ctx.requestId,
  }
  if (isHttps(c)) headers['Strict-Transport-Security'] = HSTS
  return new Response(body, { status, headers })
}

// The type says what the JSON text holds; hono reads it from nowhere else.
function typed<T>(response: Response): Response & TypedResponse<JSONParsed<T>, 200, 'json'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return response as Response & TypedResponse<JSONParsed<T>, 200, 'json'>
}

function isHttps(c: Context<AppEnv>): boolean {
  return c.var.ctx.origin(c).startsWith('https:')
}

/**
 * Refuses an unsafe request that a page of another origin made. Only a bearer token, which no browser adds by itself,
 * needs no such check. A request with neither header is not a browser's.
 */
export const sameOrigin: MiddlewareHandler<AppEnv> = (c, next) => {
  const { method } = c.req
  if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && isForeign(c)) throw new AppError('cross_origin')
  return next()
}

function isForeign(c: Context<AppEnv>): boolean {
  if (c.req.header('authorization') !== undefined && c.req.header('cookie') === undefined) return false
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = c.req.header('origin')
  return origin !== undefined && origin !== c.var.ctx.origin(c) && origin !== publicOrigin(c.var.ctx.config.PUBLIC_URL)
}

function publicOrigin(url: string | null): string | null {
  return url === null ? null : new URL(url).origin
}
