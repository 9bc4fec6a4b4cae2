import type { Context } from 'hono'
import { basePath } from '../../config/config.ts'
import { ownedBy } from '../../base/owned.ts'
import type { Ctx } from '../../base/context.ts'
import { arrivedByHttps } from '../../http/security.ts'

/** The cookies of the service. Those of sign-ins at a provider have the ID of the attempt behind this name. */
type CookieName = 'mesh_session' | 'mesh_browser' | 'mesh_attempt' | 'mesh_passkey' | 'mesh_oidc' | 'mesh_bookmark'

type OwnCookie = {
  readonly name: string
  readonly options: {
    readonly path: '/'
    readonly httpOnly: true
    readonly secure: boolean
    readonly sameSite: 'Lax' | 'Strict'
  }
}

/** Whether this request's cookies are, or would be, Secure ones. */
export function isSecure(c: Context, ctx: Pick<Ctx, 'config' | 'origin'>): boolean {
  const { COOKIE_SECURE } = ctx.config
  return COOKIE_SECURE === 'auto' ? arrivedByHttps(c, ctx) : COOKIE_SECURE === 'true'
}

/**
 * Name and attributes of a cookie. Under a path its name ends with that path, so that another service on the same host
 * does not overwrite it. Decision: docs/decisions/cookies-under-a-path.md
 */
export function ownCookie(
  c: Context,
  ctx: Pick<Ctx, 'config' | 'origin'>,
  cookie: CookieName,
  sameSite: OwnCookie['options']['sameSite'] = 'Lax',
): OwnCookie {
  const secure = isSecure(c, ctx)
  const name = `${cookie}${endOfNames(ctx.config)}`
  return { name: secure ? `__Host-${name}` : name, options: { path: '/', httpOnly: true, secure, sameSite } }
}

/** What the names of all cookies end with: nothing at the root of a host, `.mesh` under /mesh. */
const endOfNames = ownedBy((config: Ctx['config']) => {
  // Nothing but dots divides the parts, so that neither two paths nor the ID behind a name can be mistaken.
  const coded = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  return basePath(config)
    .replaceAll(/[^A-Za-z0-9/-]/g, coded)
    .replaceAll('/', '.')
})
