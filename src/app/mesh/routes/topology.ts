import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody, hashedBody } from '../../http/compression.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { idSchema, integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { configuredRadios } from '../radios/channel-table.ts'
import { nodeNumSchema, nodeNumsQuery } from '../nodes/nodes.ts'
import { shared } from '../../accounts/access/shared.ts'
import { listChannelsShown } from '../messages/anonymous.ts'
import { listNeighborsShown, listWaypointsShown } from '../topology/anonymous.ts'
import { linkSchema, listLinks } from '../topology/links.ts'
import { listPackets, packetPageSchema } from '../topology/packets.ts'
import {
  channelSchema,
  listChannels,
  listNeighbors,
  listWaypoints,
  neighborSchema,
  waypointSchema,
} from '../topology/topology.ts'

export const neighborRoutes = new Hono<AppEnv>().get(
  '/',
  shared('info', z.strictObject({}), listNeighborsShown),
  requirePermission('info', 'read'),
  inTurn('read'),
  answers('The neighbours of each node, by its latest report. With an ETag', {
    200: z.object({ neighbors: z.array(neighborSchema) }),
    304: null,
  }),
  validate(
    'query',
    z.object({
      ids: nodeNumsQuery
        .optional()
        .describe('Reports of these nodes alone: up to 100 node numbers or !hex IDs, separated by commas'),
      node: nodeNumSchema
        .optional()
        .describe('Node number or !hex: only what this node hears, and who hears it. Excludes ids'),
    }),
  ),
  async (c) => {
    const neighbors = await listNeighbors(c.var.ctx, c.req.valid('query'))
    return answerBody(c, c.var.ctx.compressor, await hashedBody(JSON.stringify({ neighbors })))
  },
)

export const linkRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('info', 'read'),
  inTurn('read'),
  answers('Who received whose packets directly, by the latest packets in the log. With an ETag', {
    200: z.object({ links: z.array(linkSchema) }),
    304: null,
  }),
  validate(
    'query',
    z.object({
      since: timeQuery.default(0).describe('Only packets at this time or later'),
      until: timeQuery.default(Number.MAX_SAFE_INTEGER).describe('Only packets before this time'),
    }),
  ),
  async (c) => {
    const links = await listLinks(c.var.ctx, c.req.valid('query'))
    return answerBody(c, c.var.ctx.compressor, await hashedBody(JSON.stringify({ links })))
  },
)

export const channelRoutes = new Hono<AppEnv>().get(
  '/',
  shared('messages', z.strictObject({}), listChannelsShown),
  requirePermission('messages', 'read'),
  inTurn('read'),
  answers('Channels of all radios and brokers, without their keys', {
    200: z.object({ channels: z.array(channelSchema) }),
  }),
  async (c) => {
    const { ctx } = c.var
    return c.json({ channels: await listChannels(ctx.store, configuredRadios(ctx.radio), ctx.viewer.view) })
  },
)

export const waypointRoutes = new Hono<AppEnv>().get(
  '/',
  shared('nodes', z.strictObject({}), listWaypointsShown),
  requirePermission('nodes', 'read'),
  inTurn('read'),
  answers('Waypoints that have not expired', { 200: z.object({ waypoints: z.array(waypointSchema) }) }),
  async (c) => c.json({ waypoints: await listWaypoints(c.var.ctx) }),
)

const broadcast = z.union([
  z.literal('4294967295').transform(Number),
  z.literal('!ffffffff').transform(() => 0xffffffff),
])

export const packetRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('info', 'read'),
  inTurn('read'),
  answers('The packet log, newest first', { 200: packetPageSchema, 304: null }),
  validate(
    'query',
    z.object({
      limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
      before: idSchema.optional().describe('ID of a logged packet: returns earlier ones'),
      after: idSchema.optional().describe('ID of a logged packet: returns later ones'),
      since: timeQuery.optional().describe('Inclusive'),
      until: timeQuery.optional().describe('Exclusive'),
      from: nodeNumSchema.optional().describe('Node number or !hex of the sender'),
      to: z.union([nodeNumSchema, broadcast]).optional().describe('Node number or !hex; !ffffffff: broadcast'),
      port: integerQuery(0, 511).optional().describe('Port number, e.g. 1 for texts'),
    }),
  ),
  async (c) => {
    const page = await listPackets(c.var.ctx, { ...c.req.valid('query'), signal: c.req.raw.signal })
    return answerBody(c, c.var.ctx.compressor, await hashedBody(page))
  },
)
