import { Hono } from 'hono'
import { requirePermission } from '../accounts/access/require.ts'
import { requireFreshProof } from '../accounts/fresh-proof.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { whereTheRadioIs } from '../http/radio-process.ts'
import { validate } from '../http/validate.ts'
import { exportWithSecrets, importFile, previewFile, readPlainFile } from './file-transfer.ts'
import { sourceQuery } from './schemas.ts'
import { importChannels, previewChannels, shareChannels } from './transfer.ts'
import {
  begunSchema,
  channelImportSchema,
  channelPlanSchema,
  channelPreviewSchema,
  fileExportSchema,
  fileImportSchema,
  filePlanSchema,
  filePreviewSchema,
  fileSchema,
  sharedSchema,
  shareSchema,
} from './transfer-schemas.ts'

export const transferRoutes = new Hono<AppEnv>()
  .post(
    '/channels/share',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('Channels of a radio as a URL, with the keys of the named channels', { 200: sharedSchema }, [
      'source_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', sourceQuery),
    validate('json', shareSchema),
    whereTheRadioIs,
    async (c) => c.json(await shareChannels(c.var.ctx, c.req.valid('query').source, c.req.valid('json'))),
  )
  .post(
    '/channels/preview',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('What importing the channels of a URL would change. Nothing is sent', { 200: channelPlanSchema }, [
      'source_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', sourceQuery),
    validate('json', channelPreviewSchema),
    whereTheRadioIs,
    async (c) => c.json(await previewChannels(c.var.ctx, c.req.valid('query').source, c.req.valid('json'))),
  )
  .put(
    '/channels',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      'Import the channels of a URL in one edit. The radio restarts; GET of each section shows the result',
      { 200: begunSchema, 202: begunSchema },
      [
        'source_not_found',
        'radio_unavailable',
        'unsupported_on_this_runtime',
        'confirmation_required',
        'configuration_changed',
        'configuration_change_in_progress',
      ],
    ),
    validate('query', sourceQuery),
    validate('json', channelImportSchema),
    whereTheRadioIs,
    async (c) => {
      const changes = await importChannels(c.var.ctx, c.req.valid('query').source, c.req.valid('json'))
      return c.json({ changes }, changes.length === 0 ? 200 : 202)
    },
  )
  .get(
    '/file',
    requirePermission('configuration', 'read'),
    answers("A radio's settings as the YAML of the Meshtastic CLI, without secrets", { 200: fileSchema }, [
      'source_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', sourceQuery),
    whereTheRadioIs,
    async (c) => c.json(await readPlainFile(c.var.ctx, c.req.valid('query').source)),
  )
  .post(
    '/file/export',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers("A radio's settings as the YAML of the Meshtastic CLI, with the named secrets", { 200: fileSchema }, [
      'source_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', sourceQuery),
    validate('json', fileExportSchema),
    whereTheRadioIs,
    async (c) => c.json(await exportWithSecrets(c.var.ctx, c.req.valid('query').source, c.req.valid('json').secrets)),
  )
  .post(
    '/file/preview',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('What importing a file of the Meshtastic CLI would change. Nothing is sent', { 200: filePlanSchema }, [
      'source_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('query', sourceQuery),
    validate('json', filePreviewSchema),
    whereTheRadioIs,
    async (c) => c.json(await previewFile(c.var.ctx, c.req.valid('query').source, c.req.valid('json'))),
  )
  .put(
    '/file',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers(
      'Apply sections of a file of the Meshtastic CLI in one edit. The radio restarts; GET of each section shows the result',
      { 200: begunSchema, 202: begunSchema },
      [
        'source_not_found',
        'radio_unavailable',
        'unsupported_on_this_runtime',
        'secret_required',
        'confirmation_required',
        'configuration_changed',
        'configuration_change_in_progress',
      ],
    ),
    validate('query', sourceQuery),
    validate('json', fileImportSchema),
    whereTheRadioIs,
    async (c) => {
      const changes = await importFile(c.var.ctx, c.req.valid('query').source, c.req.valid('json'))
      return c.json({ changes }, changes.length === 0 ? 200 : 202)
    },
  )
