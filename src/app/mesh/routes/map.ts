import { Hono } from 'hono'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { sharedWhole } from '../../accounts/access/shared.ts'
import { answers } from '../../http/describe.ts'
import { mapSchema, readMap } from '../map/tiles.ts'
import { validate } from '../../http/validate.ts'
import { previewHeaders, previewPage, previewSchema } from '../map/preview.ts'

export const mapRoutes = new Hono<AppEnv>()
  .get(
    '/',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('Where the map gets its tiles', { 200: mapSchema }, ['map_unavailable']),
    async (c) => c.json(await readMap(c.var.ctx)),
  )
  .get(
    '/preview',
    requirePermission('settings', 'write'),
    answers('A preview of tiles from an address that is not saved yet, as a page for a frame', {
      200: { mediaType: 'text/html' },
    }),
    validate('query', previewSchema),
    (c) => {
      const wanted = c.req.valid('query')
      c.set('ctx', { ...c.var.ctx, ownHeaders: previewHeaders(wanted.url) })
      return c.html(previewPage(wanted))
    },
  )
