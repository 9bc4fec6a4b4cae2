import { Hono } from 'hono'
import * as z from 'zod'
import { COVERAGE_BITS } from '../../../shared/mesh/coverage.ts'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody, hashedBody } from '../../http/compression.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { coverageSchema, readCoverage } from './coverage.ts'
import { readTopology, topologySchema } from './edges.ts'

const degrees = (most: number) => z.number().min(-most).max(most)

const coverageQuery = z.object({
  bounds: z
    .string()
    .regex(/^-?\d{1,3}(?:\.\d{1,9})?(?:,-?\d{1,3}(?:\.\d{1,9})?){3}$/)
    .transform((text) => text.split(',').map(Number))
    .pipe(z.tuple([degrees(180), degrees(90), degrees(180), degrees(90)]))
    .default([-180, -90, 180, 90])
    .describe('Degrees: west, south, east, north. West of the date line, the west lies east of the east'),
  bits: integerQuery(COVERAGE_BITS.min, COVERAGE_BITS.max)
    .default(12)
    .describe('Bits of the coordinates of a cell: at 13 it is 0.052 degrees wide, and with each bit half as wide'),
})

export const coverageRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('info', 'read'),
  inTurn('read'),
  answers('How well receivers hear what is sent from where, in cells of the map. With an ETag', {
    200: coverageSchema,
    304: null,
  }),
  validate('query', coverageQuery),
  async (c) => {
    const coverage = await readCoverage(c.var.ctx, c.req.valid('query'))
    return answerBody(c, c.var.ctx.compressor, await hashedBody(JSON.stringify(coverage)))
  },
)

export const topologyRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('info', 'read'),
  inTurn('read'),
  answers('Who heard whom, by direct receptions, reports of neighbours and traceroutes. With an ETag', {
    200: topologySchema,
    304: null,
  }),
  validate(
    'query',
    z.object({
      since: timeQuery.optional().describe('Heard for the last time at this time or later; absent: in the last 7 days'),
      until: timeQuery.optional().describe('Heard for the last time before this time'),
    }),
  ),
  async (c) => {
    const { ctx } = c.var
    const topology = await readTopology(ctx, { ...c.req.valid('query'), now: ctx.now() })
    return answerBody(c, ctx.compressor, await hashedBody(JSON.stringify(topology)))
  },
)
