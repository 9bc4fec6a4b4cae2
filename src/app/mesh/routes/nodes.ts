import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody } from '../../http/compression.ts'
import { answers, describing } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { flagQuery, integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { announceNodes } from '../live/details.ts'
import { keyHealthSchema, listKeyHealth } from '../nodes/key-health.ts'
import { listNodes, MAX_NODES, openNodeCursor } from '../nodes/list/list.ts'
import {
  acceptKey,
  deleteNode,
  nodeChangesSchema,
  nodeClaimsSchema,
  nodeDetailSchema,
  nodeIdentitySchema,
  nodeKeySchema,
  nodeNumSchema,
  nodeNumsQuery,
  nodeOwnSchema,
  nodeSchema,
  settleNode,
  updateNode,
} from '../nodes/nodes.ts'
import { markStatesSchema, readMarkStates } from '../nodes/marks.ts'
import { readTrack, trackSchema } from '../nodes/positions.ts'
import { decideOwnRadio, readClaims } from '../radios/source-table.ts'
import { getNode } from '../nodes/seen.ts'
import { shared, sharedList } from '../../accounts/access/shared.ts'
import {
  getNodeShown,
  listNodesShown,
  nodeAsked,
  nodesAsked,
  nodesForm,
  readTrackShown,
  trackAsked,
} from '../nodes/anonymous.ts'
import { MAX_SEARCH } from '../../../shared/limits.ts'

const MAX_TRACK = 10_000
const YEAR_SECONDS = 31_536_000
const END_OF_TIME = 8_640_000_000_000_000

const nodeParam = z.object({ id: nodeNumSchema })

const tellsRest = describing({
  headers: {
    'X-Total-Count': 'Of a list without filters: the number of nodes',
    'X-Next-Cursor': 'Of an incomplete list without filters: `cursor` of the next page',
  },
})

export const nodeRoutes = new Hono<AppEnv>()
  .get(
    '/',
    sharedList('nodes', nodesAsked, nodesForm, listNodesShown),
    requirePermission('nodes', 'read'),
    inTurn('read'),
    answers(
      'All nodes, most recently heard first. Beyond 5,000 in pages: a node that changes meanwhile may appear twice, and the later one counts. With an ETag',
      { 200: z.array(nodeSchema), 304: null },
    ),
    tellsRest,
    validate(
      'query',
      z
        .object({
          limit: integerQuery(1, MAX_NODES).default(MAX_NODES).describe('Maximum number of entries in the response'),
          since: timeQuery.optional().describe('Heard at or after this time'),
          q: z.string().min(1).max(MAX_SEARCH).optional().describe('Part of a name, of the node ID or of the status'),
          ids: nodeNumsQuery
            .optional()
            .describe('These nodes alone: up to 100 node numbers or !hex IDs, separated by commas'),
          activeWithin: integerQuery(1, YEAR_SECONDS).optional().describe('Heard in the last n seconds'),
          signed: flagQuery.optional().describe('Nodes with a verified signature, or without one'),
          cursor: z
            .string()
            .max(200)
            .optional()
            .describe('X-Next-Cursor of the previous response: the next page, by node number. Not with filters'),
        })
        .refine(
          ({ cursor, since, q, ids, activeWithin, signed }) =>
            cursor === undefined || [since, q, ids, activeWithin, signed].every((filter) => filter === undefined),
          { path: ['cursor'], message: 'not together with filters' },
        ),
    ),
    async (c) => {
      const { ctx } = c.var
      const { cursor: sealed, ...query } = c.req.valid('query')
      const cursor = sealed === undefined ? undefined : await openNodeCursor(ctx.config, sealed)
      const { body, total, next } = await listNodes(ctx, { ...query, cursor })
      return answerBody(c, ctx.compressor, body, {
        ...(total === null ? {} : { 'X-Total-Count': String(total) }),
        ...(next === null ? {} : { 'X-Next-Cursor': next }),
      })
    },
  )
  .get(
    '/keys',
    requirePermission('nodes', 'read'),
    inTurn('read'),
    answers('Nodes with a public key that is weak, shared with another node, or contradicted', {
      200: z.array(keyHealthSchema),
    }),
    async (c) => c.json(await listKeyHealth(c.var.ctx)),
  )
  .get(
    '/:id',
    shared('nodes', nodeAsked, getNodeShown),
    requirePermission('nodes', 'read'),
    answers('One node. Its former numbers also work', { 200: nodeDetailSchema }, ['node_not_found']),
    validate('param', nodeParam),
    async (c) => c.json(await getNode(c.var.ctx.store, c.var.ctx.viewer.view, c.req.valid('param').id)),
  )
  .put(
    '/:id',
    requirePermission('nodes', 'write'),
    answers(
      'Change the notes and marks of a node. The radios of this service get isFavorite and isIgnored, too',
      { 200: nodeDetailSchema },
      ['node_not_found'],
    ),
    validate('param', nodeParam),
    validate('json', nodeChangesSchema),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      await updateNode(ctx, id, c.req.valid('json'))
      await announceNodes(ctx, [id])
      return c.json(await getNode(ctx.store, ctx.viewer.view, id))
    },
  )
  .delete(
    '/:id',
    requirePermission('nodes', 'write'),
    answers(
      'Delete a node until it is heard again. Its track and telemetry are deleted too, and our radios forget it',
      { 204: null },
      ['node_not_found'],
    ),
    validate('param', nodeParam),
    async (c) => {
      await deleteNode(c.var.ctx, c.req.valid('param').id)
      await announceNodes(c.var.ctx, [c.req.valid('param').id])
      return c.body(null, 204)
    },
  )
  .put(
    '/:id/key',
    requirePermission('nodes', 'write'),
    answers(
      'Decide which of the announced public keys belongs to the node. That key is kept, and the warnings end',
      { 200: nodeDetailSchema },
      ['node_not_found'],
    ),
    validate('param', nodeParam),
    validate('json', nodeKeySchema),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      await acceptKey(ctx, id, c.req.valid('json').publicKey)
      await announceNodes(ctx, [id])
      return c.json(await getNode(ctx.store, ctx.viewer.view, id))
    },
  )
  .put(
    '/:id/identity',
    requirePermission('nodes', 'write'),
    answers(
      'Settle a conflict about a node: what is known stays, or the refused key and names replace it. The warnings end',
      { 200: nodeDetailSchema },
      ['node_not_found', 'node_changed'],
    ),
    validate('param', nodeParam),
    validate('json', nodeIdentitySchema),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      await settleNode(ctx, id, c.req.valid('json'))
      await announceNodes(ctx, [id])
      return c.json(await getNode(ctx.store, ctx.viewer.view, id))
    },
  )
  .put(
    '/:id/own',
    requirePermission('configuration', 'write'),
    answers(
      'Decide whether a node that a collector calls its radio is a radio of this service. What that collector says about it is then believed, or never',
      { 200: nodeClaimsSchema },
      ['node_not_found'],
    ),
    validate('param', nodeParam),
    validate('json', nodeOwnSchema),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      const { nodeNum } = await getNode(ctx.store, ctx.viewer.view, id)
      await decideOwnRadio(ctx, nodeNum, c.req.valid('json').own)
      await announceNodes(ctx, [nodeNum])
      return c.json(await readClaims(ctx.store, nodeNum))
    },
  )
  .get(
    '/:id/positions',
    shared('nodes', trackAsked, readTrackShown),
    requirePermission('nodes', 'read'),
    inTurn('read'),
    answers('The track of a node, oldest position first', { 200: trackSchema }, ['node_not_found']),
    validate('param', nodeParam),
    validate(
      'query',
      z
        .object({
          from: timeQuery.default(0).describe('At this time or later'),
          to: timeQuery.default(END_OF_TIME).describe('At this time or earlier'),
          limit: integerQuery(1, MAX_TRACK).default(MAX_TRACK).describe('Maximum number of entries in the response'),
        })
        .refine(({ from, to }) => from <= to, { path: ['from'], message: 'must not be after to' }),
    ),
    async (c) => c.json(await readTrack(c.var.ctx, c.req.valid('param').id, c.req.valid('query'))),
  )
  .get(
    '/:id/radios',
    requirePermission('nodes', 'read'),
    inTurn('read'),
    answers(
      'Whether the radios of this service have the node as a favourite, or ignore it',
      { 200: markStatesSchema },
      ['node_not_found'],
    ),
    validate('param', nodeParam),
    async (c) => c.json(await readMarkStates(c.var.ctx, c.req.valid('param').id)),
  )
