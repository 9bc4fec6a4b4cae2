import { Hono } from 'hono'
import type { RouterRoute } from 'hono/types'
import * as z from 'zod'
import type { AppEnv } from '../../base/context.ts'
import { answers, anyone } from '../describe.ts'
import { openApiDocument } from './document.ts'
import { docsPage, STYLE } from './page.ts'

/** The API document of all `routes`, built at the first request, and a page that shows it with no script at all. */
export function docsRoutes(routes: () => readonly RouterRoute[]) {
  let built: ReturnType<typeof openApiDocument> | undefined
  const document = () => (built ??= openApiDocument(routes()))
  return new Hono<AppEnv>()
    .get('/openapi.json', anyone, answers('This document', { 200: z.record(z.string(), z.unknown()) }), (c) =>
      c.json(document()),
    )
    .get('/docs', anyone, answers('The API as a page for people', { 200: { mediaType: 'text/html' } }), (c) =>
      c.html(docsPage(document())),
    )
    .get('/docs/style.css', anyone, answers('The stylesheet of that page', { 200: { mediaType: 'text/css' } }), (c) =>
      c.body(STYLE, 200, { 'Content-Type': 'text/css; charset=utf-8' }),
    )
}
