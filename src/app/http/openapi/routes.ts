import { Hono } from 'hono'
import type { RouterRoute } from 'hono/types'
import * as z from 'zod'
import type { AppEnv } from '../../base/context.ts'
import { answerText, type Body, bodyOf } from '../compression.ts'
import { answers, anyone } from '../describe.ts'
import { openApiDocument } from './document.ts'
import { docsPage, STYLE } from './page.ts'

/**
 * The API document of all `routes`, and a page that shows it with no script at all. Both are made at the first request:
 * anybody may ask for them again and again.
 */
export function docsRoutes(routes: () => readonly RouterRoute[]) {
  let built: ReturnType<typeof openApiDocument> | undefined
  const document = () => (built ??= openApiDocument(routes()))
  let json: Promise<Body> | undefined
  let page: Promise<Body> | undefined
  const documentBody = () => (json ??= document().then((made) => bodyOf(JSON.stringify(made), '')))
  const pageBody = () => (page ??= document().then(makePage))
  return new Hono<AppEnv>()
    .get('/openapi.json', anyone, answers('This document', { 200: z.record(z.string(), z.unknown()) }), async (c) =>
      answerText(c, c.var.ctx.compressor, await documentBody(), 'application/json'),
    )
    .get('/docs', anyone, answers('The API as a page for people', { 200: { mediaType: 'text/html' } }), async (c) =>
      answerText(c, c.var.ctx.compressor, await pageBody(), 'text/html; charset=UTF-8'),
    )
    .get('/docs/style.css', anyone, answers('The stylesheet of that page', { 200: { mediaType: 'text/css' } }), (c) =>
      c.body(STYLE, 200, { 'Content-Type': 'text/css; charset=utf-8' }),
    )
}

async function makePage(document: unknown): Promise<Body> {
  return bodyOf(String(await docsPage(document)), '')
}
