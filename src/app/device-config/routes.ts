import { requireFreshProof } from '../accounts/fresh-proof.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { preferWhereTheRadioIs, whereTheRadioIs } from '../http/radio-process.ts'
import { validate } from '../http/validate.ts'
import { readTimely } from '../mesh/downlink/timely.ts'
import { changeSection, readOverview, readSection } from './device-config.ts'
import {
  changeSchema,
  overviewSchema,
  sectionChangeSchema,
  sectionParam,
  sectionSchema,
  sourceQuery,
} from './schemas.ts'

export const configurationRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('configuration', 'read'),
    answers("The sections of a radio's settings", { 200: overviewSchema }, ['source_not_found']),
    validate('query', sourceQuery),
    preferWhereTheRadioIs,
    async (c) => {
      const { ctx } = c.var
      const read = () => readOverview(ctx, c.req.valid('query').source)
      return c.json(await readTimely(ctx, read, ({ lastChange }) => lastChange?.state === 'waiting'))
    },
  )
  .get(
    '/:section',
    requirePermission('configuration', 'read'),
    answers(
      "A section of a radio's settings. Secrets are left out; `fields` describes each field for an editor",
      { 200: sectionSchema },
      ['source_not_found', 'section_not_found'],
    ),
    validate('param', sectionParam),
    validate('query', sourceQuery),
    preferWhereTheRadioIs,
    async (c) => {
      const { ctx } = c.var
      const read = () => readSection(ctx, c.req.valid('param').section, c.req.valid('query').source)
      return c.json(await readTimely(ctx, read, ({ lastChange }) => lastChange?.state === 'waiting'))
    },
  )
  .put(
    '/:section',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      "Change a section of a radio's settings. The radio saves it and restarts, and the section is read again; GET shows the result",
      {
        200: z.object({ change: z.null() }).describe('The radio already has these values'),
        202: z.object({ change: changeSchema }),
      },
      [
        'source_not_found',
        'section_not_found',
        'secret_required',
        'confirmation_required',
        'configuration_changed',
        'configuration_change_in_progress',
        'queue_full',
        'unsupported_on_this_runtime',
        'radio_unavailable',
      ],
    ),
    validate('param', sectionParam),
    validate('query', sourceQuery),
    validate('json', sectionChangeSchema),
    whereTheRadioIs,
    async (c) => {
      const { section } = c.req.valid('param')
      const change = await changeSection(c.var.ctx, section, c.req.valid('query').source, c.req.valid('json'))
      return change === null ? c.json({ change }, 200) : c.json({ change }, 202)
    },
  )
