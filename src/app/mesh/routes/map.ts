import { Hono } from 'hono'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { sharedWhole } from '../../accounts/access/shared.ts'
import { answers } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { readRange } from '../map/byte-range.ts'
import { mapSchema, openArchive, readMap } from '../map/tiles.ts'
import { validate } from '../../http/validate.ts'
import { previewHeaders, previewPage, previewSchema } from '../map/preview.ts'
import { matchesEtag } from '../../http/compression.ts'

const OCTETS = { mediaType: 'application/octet-stream' }

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
  .get(
    '/archive',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('The map file of this service (PMTiles 3), or a range of it', { 200: OCTETS, 206: OCTETS, 304: null }, [
      'not_found',
      'range_not_satisfiable',
      'map_unavailable',
    ]),
    async (c) => {
      const archive = await openArchive(c.var.ctx)
      const { size, etag } = archive
      const isStale = !matchesEtag(c.req.header('if-range') ?? etag, etag)
      const range = isStale ? null : readRange(c.req.header('range'), size)
      const isKnown = matchesEtag(c.req.header('if-none-match'), etag)
      if (isKnown || range === 'unsatisfiable' || c.req.method === 'HEAD') await archive.close()
      if (isKnown) return c.body(null, 304, { ETag: etag })
      if (range === 'unsatisfiable')
        throw new AppError('range_not_satisfiable', undefined, { contentRange: `bytes */${size}` })
      const { first, last } = range ?? { first: 0, last: size - 1 }
      const headers = {
        'Content-Type': OCTETS.mediaType,
        'Content-Length': String(last - first + 1),
        'Accept-Ranges': 'bytes',
        ETag: etag,
        ...(range !== null && { 'Content-Range': `bytes ${first}-${last}/${size}` }),
      }
      const status = range === null ? 200 : 206
      if (c.req.method === 'HEAD') return c.body(null, status, headers)
      return c.body(archive.stream({ first, last }), status, headers)
    },
  )
