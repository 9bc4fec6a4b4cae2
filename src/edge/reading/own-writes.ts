import { Context } from 'hono'
import { generateCookie, getCookie } from 'hono/cookie'
import { ownCookie } from '../../app/accounts/sessions/cookies.ts'
import { SEE_AS } from '../../app/accounts/access/see-as.ts'
import type { Ports } from '../../app/base/context.ts'
import { SAFE_METHODS } from '../../app/http/security.ts'
import { createApp } from '../../app/app.ts'
import { likeStore } from '../d1.ts'
import { type Replicas, STALE_MS } from './replicas.ts'

/**
 * Contents of the mesh. Everything else is read from the primary: accounts, sessions, codes, the audit log, alerts and
 * what guards them.
 */
const CONTENTS =
  /^\/api\/(?:boards|channels|coverage|dashboard|findings|info|links|map|messages|neighbors|nodes|packets|playback|telemetry|topology|traceroutes|waypoints)(?:\/|$)/
/** After this time any isolate has asked the primary again. */
const LASTS_SECONDS = STALE_MS / 1000 + 5

/**
 * The service on one database with replicas. `ports`, made of these bindings, ask its primary. `onEntry` is called after
 * each step that wrote to the audit log.
 */
export function serveNearest(bindings: object, ports: Ports, replicas: Replicas, onEntry: () => void) {
  const reading = { ...ports, store: likeStore(ports.store, replicas.nearest, onEntry) }
  const sameBindings = { ...bindings }
  const app = createApp((given) => (given === sameBindings ? reading : ports))
  const { mayLag, remember } = ownWrites(ports, replicas)
  return async (request: Request, execution?: ExecutionContext): Promise<Response> => {
    const answer = await app.fetch(request, mayLag(request) ? sameBindings : bindings, execution)
    remember(request, answer)
    return answer
  }
}

/**
 * Who may read from a replica, so that everybody sees their own changes. A cookie names the state of the database after
 * the browser's latest change. D1 never gets it: it would wait for a state that somebody made up.
 * Decision: docs/decisions/reads-from-replicas.md
 */
function ownWrites(ports: Pick<Ports, 'config' | 'origin'>, replicas: Pick<Replicas, 'bookmark'>) {
  const cookieOf = (c: Context) => ownCookie(c, ports, 'mesh_bookmark')
  return {
    /** Whether the answer may lack what was stored in the last seconds. */
    mayLag(request: Request): boolean {
      const { method, headers, url } = request
      if ((method !== 'GET' && method !== 'HEAD') || !CONTENTS.test(new URL(url).pathname)) return false
      // Programs keep no cookies, and a page asks so after an event, which came from the primary.
      if (headers.has('authorization') || headers.has(SEE_AS) || wantsLatest(headers)) return false
      const cookie = headers.get('cookie')
      if (cookie === null) return true
      const c = new Context(request)
      const known = getCookie(c, cookieOf(c).name)
      const seen = replicas.bookmark()
      return known === undefined || (seen !== null && known <= seen)
    },
    /** Adds the cookie to an answer that changed something. */
    remember(request: Request, { status, headers }: Response): void {
      if (status >= 400 || request.headers.has('authorization')) return
      // A sign-in at a provider ends with a GET.
      if (SAFE_METHODS.has(request.method) && !headers.has('set-cookie')) return
      const bookmark = replicas.bookmark()
      if (bookmark === null) return
      const { name, options } = cookieOf(new Context(request))
      headers.append('set-cookie', generateCookie(name, bookmark, { ...options, maxAge: LASTS_SECONDS }))
    },
  }
}

function wantsLatest(headers: Headers): boolean {
  return /\b(?:no-cache|max-age=0)\b/i.test(headers.get('cache-control') ?? '')
}
