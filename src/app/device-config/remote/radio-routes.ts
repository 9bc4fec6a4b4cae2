import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { validate } from '../../http/validate.ts'
import {
  changeRemote,
  listRemote,
  nameRemote,
  readFromRemote,
  readRemote,
  readRemoteSection,
  rebootRemote,
} from './remote.ts'
import {
  remoteActionAskSchema,
  remoteActionSchema,
  remoteChangeSchema,
  remoteListSchema,
  remoteNamingSchema,
  remoteOverviewSchema,
  remoteParam,
  remoteSectionParam,
  remoteSectionSchema,
} from './schemas.ts'

const begun = z.object({ action: remoteActionSchema })

export const remoteRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('configuration', 'read'),
    answers('The nodes that are administered over the mesh', { 200: remoteListSchema }, [
      'unsupported_on_this_runtime',
    ]),
    async (c) => c.json(await listRemote(c.var.ctx)),
  )
  .get(
    '/:id',
    requirePermission('configuration', 'read'),
    answers(
      'A node that is administered over the mesh, and about what each action costs on the air',
      { 200: remoteOverviewSchema },
      ['node_not_found', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('param', remoteParam),
    whereTheRadioIs,
    async (c) => c.json(await readRemote(c.var.ctx, c.req.valid('param').id)),
  )
  .put(
    '/:id',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      'Name a node as own, so that it may be administered over the mesh, and trust its present public key; or end that',
      { 200: remoteListSchema },
      ['node_not_found', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('param', remoteParam),
    validate('json', remoteNamingSchema),
    whereTheRadioIs,
    async (c) => {
      await nameRemote(c.var.ctx, c.req.valid('param').id, c.req.valid('json').own)
      return c.json(await listRemote(c.var.ctx))
    },
  )
  .post(
    '/:id',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      'Read a section of a node over the mesh, or make the node restart. GET shows how it stands, and live events of the kind `configuration` tell each step',
      { 202: begun },
      [
        'node_not_found',
        'section_not_found',
        'configuration_changed',
        'configuration_change_in_progress',
        'unsupported_on_this_runtime',
        'radio_unavailable',
      ],
    ),
    validate('param', remoteParam),
    validate('json', remoteActionAskSchema),
    whereTheRadioIs,
    async (c) => {
      const { id } = c.req.valid('param')
      const asked = c.req.valid('json')
      const { ctx } = c.var
      const action = await (asked.action === 'read' ? readFromRemote(ctx, id, asked.section) : rebootRemote(ctx, id))
      return c.json({ action }, 202)
    },
  )
  .get(
    '/:id/:section',
    requirePermission('configuration', 'read'),
    answers(
      'A section of the settings of a node, as it was last read over the mesh. Secrets are left out',
      { 200: remoteSectionSchema },
      ['node_not_found', 'section_not_found', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('param', remoteSectionParam),
    whereTheRadioIs,
    async (c) => {
      const { id, section } = c.req.valid('param')
      return c.json(await readRemoteSection(c.var.ctx, id, section))
    },
  )
  .put(
    '/:id/:section',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      'Change a section of the settings of a node over the mesh. The node saves it and restarts, and the section is read again',
      { 200: z.object({ action: z.null() }).describe('The node already has these values'), 202: begun },
      [
        'node_not_found',
        'section_not_found',
        'secret_required',
        'confirmation_required',
        'configuration_changed',
        'configuration_change_in_progress',
        'unsupported_on_this_runtime',
        'radio_unavailable',
      ],
    ),
    validate('param', remoteSectionParam),
    validate('json', remoteChangeSchema),
    whereTheRadioIs,
    async (c) => {
      const { id, section } = c.req.valid('param')
      const action = await changeRemote(c.var.ctx, id, section, c.req.valid('json'))
      return action === null ? c.json({ action }, 200) : c.json({ action }, 202)
    },
  )
