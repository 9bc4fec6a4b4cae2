import type { Context } from 'hono'
import type { Result, Router } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import type { H, RouterRoute } from 'hono/types'
import { isPassive } from './describe.ts'

type Answer = (c: Context) => Response | Promise<Response>

const standingAlone = new WeakMap<object, Answer>()

/**
 * A handler that needs no viewer, answers its own errors, and is asked so often that no middleware stands before it.
 * What `quick` answers, unless null, is answered without a promise.
 */
export function alone<H extends Answer>(handler: H, quick: (c: Context) => Response | null): H {
  standingAlone.set(handler, (c) => quick(c) ?? handler(c))
  return handler
}

/**
 * Hono's own router without the handlers that only describe their route: each would cost every request one more promise.
 * They stay in `app.routes`. A GET of a fixed path whose handler stands alone goes straight to what `wrap` makes of it,
 * where Hono would begin a chain of promises.
 */
export function leanRouter(wrap: (answer: Answer, path: string) => Answer): Router<[H, RouterRoute]> {
  const inner = new SmartRouter<[H, RouterRoute]>({ routers: [new RegExpRouter(), new TrieRouter()] })
  const direct = new Map<string, Result<[H, RouterRoute]>>()
  return {
    name: 'LeanRouter',
    add: (method, path, entry) => {
      const [handler, route] = entry
      if (isPassive(handler)) return
      inner.add(method, path, entry)
      const answer = method === 'GET' ? standingAlone.get(handler) : undefined
      if (answer !== undefined) direct.set(path, [[[[wrap(answer, path), route], {}]]])
    },
    match: (method, path) => (method === 'GET' ? direct.get(path) : undefined) ?? inner.match(method, path),
  }
}
