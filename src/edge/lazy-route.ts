import type { Context, Handler, Hono, MiddlewareHandler, Next } from 'hono'
import type { AppEnv } from '../app/base/context.ts'
import { describe, isOnlyDescription } from '../app/http/describe.ts'

type Route = { readonly method: string; readonly path: string; readonly isGetOnly: boolean }

/**
 * The handler of a route whose router is loaded by its first request, for scripts/worker-plugins.js. It runs what the
 * route has there after its access rule, which has let the request through already.
 */
export function lazily(
  load: () => Promise<Hono<AppEnv>>,
  { method, path, isGetOnly }: Route,
): MiddlewareHandler<AppEnv> {
  return describe(
    async (c, next) => {
      const { routes } = await load()
      const [, ...handlers] = routes.flatMap((route) =>
        route.method === method && route.path === path ? [route.handler] : [],
      )
      await runAll(
        handlers.filter((handler) => !isOnlyDescription(handler)),
        c,
        next,
      )
    },
    isGetOnly ? { getOnly: true } : {},
  )
}

/** As hono runs handlers; but it would take the parameters of the path from other ones. */
async function runAll([first, ...others]: readonly Handler[], c: Context<AppEnv>, next: Next): Promise<void> {
  if (first === undefined) return next()
  const answer = await first(c, () => runAll(others, c, next))
  if (answer instanceof Response && !c.finalized) c.res = answer
}
