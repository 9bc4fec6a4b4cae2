import { type Context, Hono, type Next } from 'hono'
import { matchedRoutes } from 'hono/route'
import { optionalAuth, refuseClosedWay } from './accounts/access/require.ts'
import { alertRoutes } from './alerts/routes.ts'
import { userDestinationRoutes } from './alerts/destinations/of-user-routes.ts'
import { auditRoutes } from './system/audit/routes.ts'
import { authRoutes } from './accounts/routes/account.ts'
import { tokenRoutes } from './accounts/routes/tokens.ts'
import { automationRoutes } from './automation/routes.ts'
import { radioConnectionRoutes } from './connections/radio-routes.ts'
import { connectionRoutes } from './connections/routes.ts'
import { remoteRoutes } from './device-config/remote/radio-routes.ts'
import { transferRoutes } from './device-config/radio-routes.ts'
import { collectedRoutes } from './device-config/collected-routes.ts'
import { configurationRoutes } from './device-config/routes.ts'
import type { AppEnv, Ports } from './base/context.ts'
import { isOnlyDescription } from './http/describe.ts'
import { AUTOMATION_CONFLICTS } from './automation/automations.ts'
import { USER_CONFLICTS } from './accounts/users/conflicts.ts'
import { AppError, problem, toAppError } from './http/errors.ts'
import { eventRoutes } from './mesh/routes/events.ts'
import { alertsOnBatch } from './alerts/findings/on-batch.ts'
import { ingestRoutes } from './mesh/routes/ingest.ts'
import { infoRoutes } from './mesh/routes/info.ts'
import { mapRoutes } from './mesh/routes/map.ts'
import { mapFileRoutes } from './mesh/map/disk-routes.ts'
import { overlayRoutes } from './mesh/overlays/routes.ts'
import { tileOrigins } from './mesh/map/tiles.ts'
import { messageRoutes } from './mesh/routes/messages.ts'
import { nodeRoutes } from './mesh/routes/nodes.ts'
import { boardRoutes } from './mesh/boards/routes.ts'
import { findingRoutes } from './mesh/findings/routes.ts'
import { nodeHistoryRoutes } from './mesh/history/routes.ts'
import { coverageRoutes, topologyRoutes } from './mesh/survey/routes.ts'
import { playbackRoutes } from './mesh/playback/routes.ts'
import { tracerouteRadioRoutes, waypointRadioRoutes } from './mesh/routes/radio-routes.ts'
import { nodeRequestRoutes } from './mesh/routes/node-requests.ts'
import { telemetryRoutes } from './mesh/routes/telemetry.ts'
import { channelRoutes, linkRoutes, neighborRoutes, packetRoutes, waypointRoutes } from './mesh/routes/topology.ts'
import { tracerouteRoutes } from './mesh/routes/traceroutes.ts'
import { docsRoutes } from './http/openapi/routes.ts'
import { isApi, type Pages, unconditional } from './http/pages.ts'
import { newRequestId } from './http/request-id.ts'
import { allowedMethods } from './http/route-methods.ts'
import { refuseForeign, SAFE_METHODS, securityHeaders } from './http/security.ts'
import { backupRoutes } from './system/backup/routes.ts'
import { copyRoutes } from './system/copies/disk-routes.ts'
import { settingsRoutes } from './system/settings-routes.ts'
import { dashboardRoutes } from './system/dashboard/routes.ts'
import { metricsRoutes } from './system/metrics/routes.ts'
import { movingInRoutes } from './system/moving-in/routes.ts'
import { restoreRoutes, stagingRoutes } from './system/restore/routes.ts'
import { systemRoutes } from './system/status/routes.ts'
import { healthRoutes, liveRoutes, readyRoutes } from './system/routes.ts'
import { publicAccessRoutes } from './accounts/routes/public-access.ts'
import { findFrame, redirectTo } from './accounts/access/embed-profiles.ts'
import { isEmbedPath } from '../shared/pages.ts'
import { userRoutes } from './accounts/routes/users.ts'
import { limitBody } from './http/validate.ts'
import { limitWrites } from './http/limits/write-limit.ts'
import { wordsFor } from './words/reader.ts'

/**
 * The whole service as one `fetch` handler. `resolvePorts` runs on each request with the runtime's bindings, and
 * returns the same ports for the same bindings. `pages` serves the web application, unless the runtime does so before.
 */
export function createApp(resolvePorts: (env: unknown) => Ports, pages: Pages | null = null) {
  const app = new Hono<AppEnv>()
  leaveOutDescriptions(app)
  app.use(async (c, next) => {
    const ports = resolvePorts(c.env)
    c.set('ctx', {
      ...ports,
      ip: ports.clientIp(c),
      namedByProxy: ports.proxyUser(c),
      userAgent: c.req.header('user-agent'),
      acceptLanguage: c.req.header('accept-language'),
      requestId: newRequestId(),
      viewer: null,
    })
    const began = ports.meter?.now()
    await next()
    if (began !== undefined) countRequest(c, matchedPattern(c), c.res.status, began)
  })
  app.use(securityHeaders(tileOrigins))
  app.use((c, next) => {
    if (!SAFE_METHODS.has(c.req.method)) return admitUnsafe(c, next)
    if (pages === null || isApi(c.req.path) || c.req.method === 'OPTIONS') return next()
    return isEmbedPath(c.req.path) ? embed(c, pages) : pages(c.req.raw)
  })

  const routes = app
    // These come before the viewer is looked up: they must answer even a request with a cookie while the database does not.
    .route('/api/health', healthRoutes)
    .route('/api/ready', readyRoutes)
    .route('/api/live', liveRoutes)
    // One step, because a separate middleware that only unsafe requests need would cost every polled route another
    // promise.
    .use((c, next) => optionalAuth(c, SAFE_METHODS.has(c.req.method) ? next : () => limitWrites(c, next)))
    .route('/api/auth', authRoutes)
    .route('/api/tokens', tokenRoutes)
    .route('/api/users', userRoutes)
    .route('/api/users', userDestinationRoutes)
    .route('/api/audit', auditRoutes)
    .route('/api/nodes', nodeRoutes)
    .route('/api/nodes', nodeRequestRoutes)
    .route('/api/nodes', nodeHistoryRoutes)
    .route('/api/findings', findingRoutes)
    .route('/api/boards', boardRoutes)
    .route('/api/playback', playbackRoutes)
    .route('/api/ingest', ingestRoutes(alertsOnBatch))
    .route('/api/ingest', collectedRoutes)
    .route('/api/messages', messageRoutes)
    .route('/api/info', infoRoutes)
    .route('/api/traceroutes', tracerouteRoutes)
    .route('/api/traceroutes', tracerouteRadioRoutes)
    .route('/api/neighbors', neighborRoutes)
    .route('/api/links', linkRoutes)
    .route('/api/coverage', coverageRoutes)
    .route('/api/topology', topologyRoutes)
    .route('/api/packets', packetRoutes)
    .route('/api/waypoints', waypointRoutes)
    .route('/api/waypoints', waypointRadioRoutes)
    .route('/api/map', mapRoutes)
    .route('/api/map', mapFileRoutes)
    .route('/api/map/overlays', overlayRoutes)
    .route('/api/channels', channelRoutes)
    .route('/api/telemetry', telemetryRoutes)
    .route('/api/dashboard', dashboardRoutes)
    .route('/api/events', eventRoutes)
    .route('/api/metrics', metricsRoutes)
    .route('/api/settings', settingsRoutes)
    .route('/api/public-access', publicAccessRoutes)
    .route('/api/automation', automationRoutes)
    .route('/api/alerts', alertRoutes)
    .route('/api/configuration', configurationRoutes)
    .route('/api/connections', connectionRoutes)
    .route('/api/connections', radioConnectionRoutes)
    .route('/api/remote', remoteRoutes)
    .route('/api/configuration/transfer', transferRoutes)
    .route('/api/system', systemRoutes)
    .route('/api/system/backup', backupRoutes)
    .route('/api/system/backup', stagingRoutes)
    .route('/api/system/restore', restoreRoutes)
    .route('/api/system/copies', copyRoutes)
    .route('/api/system/import', movingInRoutes)
    .route(
      '/api',
      docsRoutes(() => app.routes),
    )

  const methodsOf = allowedMethods(app.routes)
  app.notFound(async (c) => {
    const allow = pages === null || isApi(c.req.path) ? methodsOf(c.req.path) : ['GET', 'HEAD']
    const error =
      allow.length === 0 ? new AppError('not_found') : new AppError('method_not_allowed', undefined, { allow })
    return problem(error, c.get('ctx').requestId, await wordsFor(c.get('ctx')))
  })
  app.onError((cause, c) => answerError(c, cause))
  return routes
}

/** Handlers that only describe their route stay in `routes`, but no request passes through them. */
function leaveOutDescriptions({ router }: Hono<AppEnv>): void {
  const add = router.add.bind(router)
  router.add = (method, path, handler) => {
    if (!isOnlyDescription(handler[0])) add(method, path, handler)
  }
}

/** Pages in frames exist only while public access shows nodes, and with a profile only as long as that. */
async function embed(c: Context<AppEnv>, pages: Pages): Promise<Response> {
  const ctx = c.get('ctx')
  const frame = await findFrame(ctx, new URL(c.req.url).searchParams)
  if (frame !== null) c.set('ctx', { ...ctx, embedIn: frame.origins })
  const page = await pages(unconditional(c.req.raw))
  if (frame !== null && frame.redirect !== null && page.status === 200) return redirectTo(frame.redirect)
  return frame !== null || page.status !== 200 ? page : new Response(page.body, { status: 404, headers: page.headers })
}

/** The pattern of the route; `none` for an unknown path, so that made-up paths add no labels. */
function matchedPattern(c: Context<AppEnv>): string {
  return matchedRoutes(c).findLast(({ method }) => method !== 'ALL')?.path ?? 'none'
}

function countRequest(c: Context<AppEnv>, route: string, status: number, began: number): void {
  const { meter } = c.get('ctx')
  if (meter !== null) meter.countRequest(c.req.method, route, status, meter.now() - began)
}

/** Lets an unsafe request pass if it comes from this origin and its body has the type that the API accepts. */
function admitUnsafe(c: Context<AppEnv>, next: Next) {
  refuseForeign(c)
  // Whatever the body is: a form that signs in by password must learn that it cannot.
  if (c.req.path === '/api/auth/login') refuseClosedWay(c.get('ctx'))
  return limitBody(c, next)
}

/** Of every feature whose tables refuse something themselves. */
const CONFLICTS = [...USER_CONFLICTS, ...AUTOMATION_CONFLICTS]

async function answerError(c: Context<AppEnv>, cause: unknown): Promise<Response> {
  const { ctx } = c.var
  const error = toAppError(cause, CONFLICTS)
  if (error.code === 'internal' || error.code === 'database_unavailable') {
    const { method, path } = c.req
    ctx.log.error('Request failed', { requestId: ctx.requestId, method, path: path.slice(0, 200), error: cause })
  }
  return problem(error, ctx.requestId, await wordsFor(ctx))
}

export type AppType = ReturnType<typeof createApp>
