import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { heardPageSchema, readHeard } from './heard.ts'
import { hourPageSchema, readHours } from './hours.ts'
import { readTracks, trackPageSchema } from './tracks.ts'

const timeOf = (after: z.ZodType<number, string | undefined>) =>
  z
    .object({
      from: timeQuery.describe('Inclusive'),
      to: timeQuery.describe('Exclusive'),
      after: after.describe('`next` of the page before'),
    })
    .refine(({ from, to }) => from <= to, { path: ['from'], message: 'must not be after to' })

const afterNode = timeOf(integerQuery(0, 0xffffffff).default(0))
const afterPacket = timeOf(integerQuery(0, Number.MAX_SAFE_INTEGER).default(0))

export const playbackRoutes = new Hono<AppEnv>()
  .get(
    '/tracks',
    requirePermission('nodes', 'read'),
    inTurn('read'),
    answers('Where all nodes were in a time, by their numbers, in pages', { 200: trackPageSchema }),
    validate('query', afterNode),
    async (c) => c.json(await readTracks(c.var.ctx, c.req.valid('query'))),
  )
  .get(
    '/heard',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('When nodes were heard and who heard whom directly, by the log of packets, in pages', {
      200: heardPageSchema,
    }),
    validate('query', afterPacket),
    async (c) => c.json(await readHeard(c.var.ctx, c.req.valid('query'))),
  )
  .get(
    '/hours',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('In which hours nodes were heard, also before the log of packets begins, in pages', {
      200: hourPageSchema,
    }),
    validate('query', afterNode),
    async (c) => c.json(await readHours(c.var.ctx, c.req.valid('query'))),
  )
