import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { idParam, validate } from '../../http/validate.ts'
import { askDirectRange, directRangeSchema } from '../sending/direct-range.ts'
import {
  changedWaypointSchema,
  changeWaypoint,
  createWaypoint,
  deleteWaypoint,
  newWaypointSchema,
} from '../sending/waypoint.ts'
import { waypointSchema } from '../topology/topology.ts'
import { tracerouteSchema } from '../topology/traceroutes.ts'

export const tracerouteRadioRoutes = new Hono<AppEnv>().post(
  '/direct',
  requirePermission('info', 'write'),
  answers(
    'Ask which nodes hear a radio directly: a traceroute to all that nobody repeats. Firmware 2.6 and newer answers',
    { 202: z.object({ traceroute: tracerouteSchema }) },
    ['queue_full', 'unsupported_on_this_runtime', 'radio_unavailable'],
  ),
  validate('json', directRangeSchema),
  whereTheRadioIs,
  async (c) => c.json({ traceroute: await askDirectRange(c.var.ctx, c.req.valid('json')) }, 202),
)

export const waypointRadioRoutes = new Hono<AppEnv>()
  .post(
    '/',
    requirePermission('messages', 'write'),
    answers(
      'Share a waypoint on a channel. It is listed once a radio has sent it',
      { 202: z.object({ waypoint: waypointSchema }) },
      ['queue_full', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('json', newWaypointSchema),
    whereTheRadioIs,
    async (c) => c.json({ waypoint: await createWaypoint(c.var.ctx, c.req.valid('json')) }, 202),
  )
  .put(
    '/:id',
    requirePermission('messages', 'write'),
    answers(
      'Change a waypoint for everybody on its channel. One that is locked can be changed by the node that locked it',
      { 202: z.object({ waypoint: waypointSchema }) },
      ['not_found', 'queue_full', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('param', idParam),
    validate('json', changedWaypointSchema),
    whereTheRadioIs,
    async (c) => {
      const waypoint = await changeWaypoint(c.var.ctx, c.req.valid('param').id, c.req.valid('json'))
      return c.json({ waypoint }, 202)
    },
  )
  .delete(
    '/:id',
    requirePermission('messages', 'write'),
    answers('Delete a waypoint for everybody on its channel, once a radio has sent that', { 202: z.object({}) }, [
      'not_found',
      'queue_full',
      'unsupported_on_this_runtime',
      'radio_unavailable',
    ]),
    validate('param', idParam),
    whereTheRadioIs,
    async (c) => {
      await deleteWaypoint(c.var.ctx, c.req.valid('param').id)
      return c.json({}, 202)
    },
  )
