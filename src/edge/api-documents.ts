// Replaces src/app/http/openapi/routes.ts in the worker (scripts/edge.js): the same answers, from files that the build
// made.
import { type Context, Hono } from 'hono'
import type { AppEnv } from '../app/base/context.ts'
import { anyone } from '../app/http/describe.ts'
import type { Env } from './environment.ts'

type FileEnv = AppEnv & { Bindings: Env }

export function docsRoutes() {
  return new Hono<FileEnv>()
    .get('/openapi.json', anyone, (c) => answerFile(c, 'application/json'))
    .get('/docs', anyone, (c) => answerFile(c, 'text/html; charset=UTF-8'))
    .get('/docs/style.css', anyone, (c) => answerFile(c, 'text/css; charset=utf-8'))
}

async function answerFile(c: Context<FileEnv>, mediaType: string): Promise<Response> {
  const { origin } = new URL(c.req.url)
  const { body } = await c.env.ASSETS.fetch(`${origin}${c.req.path}`)
  return new Response(body, { headers: { 'Content-Type': mediaType } })
}
