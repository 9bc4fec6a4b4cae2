import { Hono } from 'hono'
import * as z from 'zod'
import { requireToken } from '../../accounts/access/require.ts'
import type { AppEnv, SignedInCtx } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import type { OnBatch } from '../ingest/on-batch.ts'
import { demandRoom } from '../ingest/trust/room.ts'
import { integerQuery, validate } from '../../http/validate.ts'
import { DOWNLINK_KINDS, POLL_MS } from '../../../shared/mesh/downlink.ts'
import { ingestAnswerSchema, storeDelivery } from '../collector/delivery.ts'
import { ingestSchema } from '../collector/items.ts'
import { reportSchema, storeReports, takeCommand } from '../downlink/commands.ts'
import { commandSchema, wordSchema } from '../downlink/contents.ts'
import { listen } from '../downlink/listening.ts'

/** Radios of one collector. */
const MAX_RADIOS = 8
/** Reports of one request. */
const MAX_REPORTS = 50

const radioField = z.string().min(1).max(300)
const askedSchema = z.object({
  radio: z
    .union([radioField.transform((one) => [one]), z.array(radioField).max(MAX_RADIOS)])
    .describe('Names of connected radios, as in its deliveries'),
  kind: z
    .union([
      z.enum(DOWNLINK_KINDS).transform((one) => [one]),
      z.array(z.enum(DOWNLINK_KINDS)).max(DOWNLINK_KINDS.length),
    ])
    .describe('What the collector allows'),
  wait: integerQuery(0, POLL_MS / 1000)
    .default(POLL_MS / 1000)
    .describe('Seconds to wait for a command'),
})

/** The token that a collector has. */
function tokenOf({ viewer: { credential } }: SignedInCtx): number {
  if (credential.kind !== 'token') throw new AppError('forbidden')
  return credential.tokenId
}

/**
 * `onBatch` takes part in the step of each batch.
 * Decision: docs/decisions/ingest-tokens.md
 */
export const ingestRoutes = (onBatch: OnBatch) =>
  new Hono<AppEnv>()
    .post(
      '/',
      requireToken('ingest'),
      answers(
        'Store what a collector has heard. Repeating a delivery changes nothing. A source belongs to the token that delivers it, at most 20 sources per token; when the token is gone, its reports about radios and channels no longer count. Favourites and ignored nodes of a radio are not copied',
        { 200: ingestAnswerSchema },
        ['source_taken', 'too_many_sources'],
      ),
      validate('json', ingestSchema),
      async (c) => {
        demandRoom(c.var.ctx.disk)
        return c.json(await storeDelivery(c.var.ctx, c.req.valid('json'), tokenOf(c.var.ctx), onBatch))
      },
    )
    .get(
      '/commands',
      requireToken('radio'),
      answers(
        'What radios of a collector shall send. Waits until there is something. A newer request of the same token ends an earlier one. A collector sends nothing before it has taken the command',
        { 200: z.object({ commands: z.array(commandSchema) }) },
        ['admin_required'],
      ),
      validate('query', askedSchema),
      async (c) => {
        const { ctx } = c.var
        const { radio: radios, kind: kinds, wait } = c.req.valid('query')
        const asked = { radios, kinds, waitMs: wait * 1000 }
        return c.json({ commands: await listen(ctx, tokenOf(ctx), asked, c.req.raw.signal) })
      },
    )
    .post(
      '/commands/take',
      requireToken('radio'),
      answers(
        'Take a command, in order to send it once. `claim` is a random word: repeating the request with it changes nothing, and nobody else gets the command',
        { 200: z.object({ remainingMs: z.int().describe('How long it may still be sent; 0: not at all') }) },
        ['admin_required'],
      ),
      validate('json', z.strictObject({ id: wordSchema, claim: wordSchema })),
      async (c) => {
        const { ctx } = c.var
        return c.json({ remainingMs: await takeCommand(ctx, tokenOf(ctx), c.req.valid('json')) })
      },
    )
    .post(
      '/commands/report',
      requireToken('radio'),
      answers('Say what became of commands. Repeating a report changes nothing', { 204: null }, ['admin_required']),
      validate('json', z.strictObject({ reports: z.array(reportSchema).min(1).max(MAX_REPORTS) })),
      async (c) => {
        const { ctx } = c.var
        await storeReports(ctx, tokenOf(ctx), c.req.valid('json').reports)
        return c.body(null, 204)
      },
    )
