import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import { sharedWhole } from '../../accounts/access/shared.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { validate } from '../../http/validate.ts'
import { areaSchema } from './region/area.ts'
import {
  endRegion,
  measureRegion,
  openRegion,
  readRegion,
  regionEndSchema,
  regionSchema,
  regionSizeSchema,
  startRegion,
} from './region/region.ts'
import { OCTETS, sendArchive } from './send-archive.ts'
import { openArchive } from './tiles.ts'

// Files of maps need a disk: these are refused on the edge.
export const mapFileRoutes = new Hono<AppEnv>()
  .get(
    '/archive',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('The map file of this service (PMTiles 3), or a range of it', { 200: OCTETS, 206: OCTETS, 304: null }, [
      'not_found',
      'range_not_satisfiable',
      'map_unavailable',
      'unsupported_on_this_runtime',
    ]),
    async (c) => sendArchive(c, await openArchive(c.var.ctx)),
  )
  .get(
    '/region',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('The detailed map of a region on this machine, and the latest download of one', { 200: regionSchema }, [
      'unsupported_on_this_runtime',
    ]),
    async (c) => c.json(await readRegion(c.var.ctx)),
  )
  .get(
    '/region.pmtiles',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('The map of the region (PMTiles 3), or a range of it', { 200: OCTETS, 206: OCTETS, 304: null }, [
      'not_found',
      'range_not_satisfiable',
      'map_unavailable',
      'unsupported_on_this_runtime',
    ]),
    async (c) => sendArchive(c, await openRegion(c.var.ctx)),
  )
  .post(
    '/region/preview',
    requirePermission('settings', 'write'),
    answers(
      'How large the map of a region would be. The directories of the planet archive are read for it, but no tile',
      { 200: regionSizeSchema },
      ['map_refused', 'unsupported_on_this_runtime'],
    ),
    inTurn('read'),
    validate('json', areaSchema),
    async (c) => c.json(await measureRegion(c.var.ctx, c.req.valid('json'))),
  )
  .post(
    '/region',
    requirePermission('settings', 'write'),
    answers(
      'Download the map of a region. An interrupted download of the same area continues. The map in use is replaced once the new one is complete',
      { 202: z.object({}) },
      ['map_in_progress', 'map_refused', 'radio_unavailable', 'unsupported_on_this_runtime'],
    ),
    validate('json', areaSchema),
    whereTheRadioIs,
    async (c) => {
      await startRegion(c.var.ctx, c.req.valid('json'))
      return c.json({}, 202)
    },
  )
  .delete(
    '/region',
    requirePermission('settings', 'write'),
    answers('End the download of a region, or delete the map in use', { 204: null }, [
      'not_found',
      'map_in_progress',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', regionEndSchema),
    whereTheRadioIs,
    async (c) => {
      await endRegion(c.var.ctx, c.req.valid('query').what)
      return c.body(null, 204)
    },
  )
