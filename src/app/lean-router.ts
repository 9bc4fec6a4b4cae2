import type { Router } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import type { H, RouterRoute } from 'hono/types'
import { isPassive } from './describe.ts'

/**
 * Hono's own router without the handlers that only describe their route: each would cost every request one more promise.
 * They stay in `app.routes`.
 */
export function leanRouter(): Router<[H, RouterRoute]> {
  const inner = new SmartRouter<[H, RouterRoute]>({ routers: [new RegExpRouter(), new TrieRouter()] })
  return {
    name: 'LeanRouter',
    add: (method, path, entry) => {
      if (!isPassive(entry[0])) inner.add(method, path, entry)
    },
    match: (method, path) => inner.match(method, path),
  }
}
