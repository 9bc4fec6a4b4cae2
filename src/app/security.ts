import type { MiddlewareHandler } from 'hono'
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

const HEADERS = [
  ['Content-Security-Policy', CSP],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Permissions-Policy', 'camera=(), microphone=(), payment=(), usb=()'],
] as const

const HSTS = 'max-age=31536000'

/** Security headers on every answer, and no caching of the API. */
export const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of HEADERS) headers.set(name, value)
  if (c.var.ctx.origin(c).startsWith('https:')) headers.set('Strict-Transport-Security', HSTS)
  if (c.req.path.startsWith('/api/') && !headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
}

/**
 * Refuses an unsafe request that a page of another origin made. Only a bearer token, which no browser adds by itself,
 * needs no such check. A request with neither header is not a browser's.
 */
export const sameOrigin: MiddlewareHandler<AppEnv> = async (c, next) => {
  const isSafe = c.req.method === 'GET' || c.req.method === 'HEAD' || c.req.method === 'OPTIONS'
  const byTokenAlone = c.req.header('authorization') !== undefined && c.req.header('cookie') === undefined
  if (!isSafe && !byTokenAlone) {
    const site = c.req.header('sec-fetch-site')
    const origin = c.req.header('origin')
    const own = [c.var.ctx.origin(c), publicOrigin(c.var.ctx.config.PUBLIC_URL)]
    const refused = site === undefined ? origin !== undefined && !own.includes(origin) : !SAME_SITE.has(site)
    if (refused) throw new AppError('cross_origin')
  }
  return next()
}

const SAME_SITE: ReadonlySet<string> = new Set(['same-origin', 'none'])

function publicOrigin(url: string | null): string | null {
  return url === null ? null : new URL(url).origin
}
