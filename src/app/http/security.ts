import type { Context, MiddlewareHandler } from 'hono'
import type { Config } from '../config/config.ts'
import type { AppEnv, Ports } from '../base/context.ts'
import { AppError } from './errors.ts'
import { isApi } from './pages.ts'

const policy = (images: string, ancestors = "'none'") =>
  [
    "default-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    `frame-ancestors ${ancestors}`,
    `img-src ${images}`,
    "object-src 'none'",
  ].join('; ')

const OWN_IMAGES = "'self' data:"
const CSP = policy(OWN_IMAGES)

/** What the pages use: passkeys, the clipboard, a display that stays on. */
const FEATURES_USED = [
  'clipboard-write',
  'fullscreen',
  'publickey-credentials-create',
  'publickey-credentials-get',
  'screen-wake-lock',
]
/**
 * Features that an injected script or a framed page could otherwise request. Only names that Chromium knows on every
 * system, because it logs errors about others.
 */
const FEATURES_DENIED = [
  'accelerometer',
  'autoplay',
  'browsing-topics',
  'camera',
  'clipboard-read',
  'display-capture',
  'encrypted-media',
  'geolocation',
  'gyroscope',
  'hid',
  'idle-detection',
  'local-fonts',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'serial',
  'usb',
  'xr-spatial-tracking',
]
const PERMISSIONS_POLICY = [
  ...FEATURES_USED.map((name) => `${name}=(self)`),
  ...FEATURES_DENIED.map((name) => `${name}=()`),
].join(', ')

/** Headers of every answer, including the web application's files. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy': CSP,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': PERMISSIONS_POLICY,
} as const

/** For the web application's pages: images may also come from the hosts of the map's tiles, and from no other. */
export function pagePolicy(tileOrigins: readonly string[]): string {
  return policy(imagesOf(tileOrigins))
}

function imagesOf(tileOrigins: readonly string[]): string {
  return [OWN_IMAGES, ...tileOrigins].join(' ')
}

/** Headers of a page that the sites `origins` may show in a frame, instead of those of the other pages. */
export function embedHeaders(origins: readonly string[], tileOrigins: readonly string[]): Record<string, string> {
  return {
    'Content-Security-Policy': policy(imagesOf(tileOrigins), origins.length === 0 ? "'none'" : origins.join(' ')),
    'Cross-Origin-Resource-Policy': 'cross-origin',
  }
}

/** On every page: whether search engines may list it. */
export function robotsHeaders({ PUBLIC_INDEXING }: Pick<Config, 'PUBLIC_INDEXING'>): Record<string, string> {
  return PUBLIC_INDEXING ? {} : { 'X-Robots-Tag': 'noindex' }
}

/** Header of answers over HTTPS. */
export const HSTS = 'max-age=31536000'

/**
 * Gives each answer its request id and security headers, and forbids caching of the API. `tileOrigins` reads the hosts
 * of the map's tiles.
 */
export const securityHeaders =
  (tileOrigins: (ports: Ports) => Promise<readonly string[]>): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    await next()
    const { headers } = c.res
    headers.set('X-Request-Id', c.get('ctx').requestId)
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) headers.set(name, value)
    if (!isApi(c.req.path)) {
      const ctx = c.get('ctx')
      const { config, embedIn } = ctx
      // Scripts and styles show no images.
      const origins = c.req.path.startsWith('/assets/') ? [] : await tileOrigins(ctx)
      headers.set('Content-Security-Policy', pagePolicy(origins))
      const more = { ...robotsHeaders(config), ...(embedIn !== undefined && embedHeaders(embedIn, origins)) }
      for (const [name, value] of Object.entries(more)) headers.set(name, value)
    }
    for (const [name, value] of Object.entries(c.get('ctx').ownHeaders ?? {})) headers.set(name, value)
    if (arrivedByHttps(c, c.get('ctx'))) headers.set('Strict-Transport-Security', HSTS)
    if (isApi(c.req.path) && !headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
  }

/**
 * Whether the client's browser uses HTTPS, according to the request, or to PUBLIC_URL if a proxy does not report it or
 * is not trusted.
 */
export function arrivedByHttps(c: Context, { origin, config }: Pick<Ports, 'origin' | 'config'>): boolean {
  return isPublishedByHttps(config) || origin(c).startsWith('https:')
}

/** Whether PUBLIC_URL is https. */
export function isPublishedByHttps({ PUBLIC_URL }: Pick<Config, 'PUBLIC_URL'>): boolean {
  return PUBLIC_URL !== null && /^https:/i.test(PUBLIC_URL)
}

export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses an unsafe request from a page of another origin. Requests with a bearer token, which browsers never add by
 * themselves, need no check. Requests without both headers do not come from a browser. Throws `cross_origin`. Decision:
 * docs/decisions/short-decisions.md#a-cross-site-request-is-refused-even-without-a-cookie
 */
export function refuseForeign(c: Context<AppEnv>): void {
  if (isForeign(c)) throw new AppError('cross_origin')
}

function isForeign(c: Context<AppEnv>): boolean {
  if (c.req.header('authorization') !== undefined && c.req.header('cookie') === undefined) return false
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = c.req.header('origin')
  return (
    origin !== undefined && origin !== c.get('ctx').origin(c) && origin !== publicOrigin(c.get('ctx').config.PUBLIC_URL)
  )
}

function publicOrigin(url: string | null): string | null {
  return url === null ? null : new URL(url).origin
}
