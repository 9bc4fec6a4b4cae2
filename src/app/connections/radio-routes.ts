import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../accounts/access/require.ts'
import { requireFreshProof } from '../accounts/fresh-proof.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { nodeIdField, nodeNumField } from '../http/fields.ts'
import { inTurn } from '../http/limits/in-turn.ts'
import { whereTheRadioIs } from '../http/radio-process.ts'
import { idParam, validate } from '../http/validate.ts'
import {
  addConnection,
  changeConnection,
  connectionChangesSchema,
  connectionSchema,
  deleteConnection,
  newConnectionSchema,
  probeSchema,
  testConnection,
} from './connections.ts'
import { settingsSchema, STORED_KINDS } from './settings.ts'

const answerSchema = z.object({ connection: connectionSchema })
const foundSchema = z.object({
  problem: z.string().nullable().describe('Why it is no usable radio or broker; null: it is one'),
  radio: z
    .object({
      nodeNum: nodeNumField,
      nodeId: nodeIdField,
      longName: z.string().nullable(),
      shortName: z.string().nullable(),
      firmwareVersion: z.string().nullable(),
      hwModel: z.string().nullable(),
      region: z.string().nullable(),
    })
    .nullable(),
  fingerprint: z.string().nullable().describe('SHA-256 of the certificate that it showed'),
})
const candidatesSchema = z.object({
  candidates: z
    .array(
      z.object({
        kind: z.enum(STORED_KINDS),
        name: z.string().describe('What it says of itself: anybody in the network can say anything'),
        settings: settingsSchema,
      }),
    )
    .describe('Serial devices of this machine, and radios that announce themselves in its network (mDNS)'),
})

export const radioConnectionRoutes = new Hono<AppEnv>()
  .get(
    '/candidates',
    requirePermission('configuration', 'write'),
    answers('Look for radios at this machine and in its network. It takes a few seconds', { 200: candidatesSchema }, [
      'unsupported_on_this_runtime',
      'radio_unavailable',
    ]),
    inTurn('read'),
    whereTheRadioIs,
    async (c) => {
      const { connecting } = c.var.ctx
      if (connecting === null) throw new AppError('unsupported_on_this_runtime')
      return c.json({ candidates: [...(await connecting.candidates())] })
    },
  )
  .post(
    '/',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('Add a radio or a broker. It is connected at once, without a restart', { 201: answerSchema }, [
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('json', newConnectionSchema),
    whereTheRadioIs,
    async (c) => c.json({ connection: await addConnection(c.var.ctx, c.req.valid('json')) }, 201),
  )
  .post(
    '/test',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('Connect once, for at most 20 s, and say what is there. Nothing is saved', { 200: foundSchema }, [
      'connection_not_found',
      'rate_limited',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('json', probeSchema),
    inTurn('read'),
    whereTheRadioIs,
    async (c) => c.json(await testConnection(c.var.ctx, c.req.valid('json'))),
  )
  .put(
    '/:id',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('Change a connection, or switch it on or off. No other one is touched', { 200: answerSchema }, [
      'connection_not_found',
      'admin_required',
      'user_not_found',
      'configuration_changed',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('param', idParam),
    validate('json', connectionChangesSchema),
    whereTheRadioIs,
    async (c) =>
      c.json({ connection: await changeConnection(c.var.ctx, c.req.valid('param').id, c.req.valid('json')) }),
  )
  .delete(
    '/:id',
    requirePermission('configuration', 'write'),
    requireFreshProof,
    answers('Delete a connection. What was heard over it stays', { 204: null }, [
      'connection_not_found',
      'radio_unavailable',
      'unsupported_on_this_runtime',
    ]),
    validate('param', idParam),
    whereTheRadioIs,
    async (c) => {
      await deleteConnection(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
