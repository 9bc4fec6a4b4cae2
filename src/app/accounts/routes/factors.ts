import { Hono } from 'hono'
import * as z from 'zod'
import { requireLocalAuth, requireEnrollingSession } from '../access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { idParam, validate } from '../../http/validate.ts'
import { requireFactorProof } from '../fresh-proof.ts'
import { dismissReset, dropIdleCodes, factorsSchema, listFactors, removeTotp } from '../factors/factors.ts'
import { hasFactor } from '../users/has-factor.ts'
import { addPasskey, beginPasskey, newPasskeySchema, optionsSchema, removePasskey } from '../factors/passkeys.ts'
import { renewCodes } from '../factors/recovery-codes.ts'
import { relyingParty } from '../factors/relying-party.ts'
import { beginTotp, confirmTotp, totpCodeSchema } from '../factors/totp.ts'

const codesField = z.array(z.string())

const codesAnswer = z.object({
  recoveryCodes: codesField.nullable().describe('Shown once; null: the existing codes remain valid'),
})

const confirmSchema = z.strictObject({
  enrolment: z.string().max(4096).describe('As returned by the first step'),
  code: totpCodeSchema,
})

/** The second factors of the caller. */
export const factorRoutes = new Hono<AppEnv>()
  .get('/', requireEnrollingSession, answers('Your second factors', { 200: factorsSchema }), async (c) =>
    c.json(await listFactors(c.var.ctx, c.var.ctx.viewer.user.id, relyingParty(c, c.var.ctx))),
  )
  .post(
    '/totp',
    requireEnrollingSession,
    requireFactorProof,
    requireLocalAuth,
    answers(
      'Start setting up an authenticator app. Nothing is stored until one of its codes is sent',
      {
        200: z.object({
          secret: z.string().describe('Base32, to be typed into the app'),
          uri: z.string().describe('otpauth:// URI, for a QR code'),
          enrolment: z.string().describe('To be sent with the code, within 10 minutes'),
        }),
      },
      ['local_auth_disabled', 'not_a_local_user'],
    ),
    async (c) => {
      if (c.var.ctx.viewer.user.authProvider !== 'local') throw new AppError('not_a_local_user')
      return c.json(await beginTotp(c.var.ctx))
    },
  )
  .post(
    '/totp/confirm',
    requireEnrollingSession,
    requireLocalAuth,
    answers(
      'Finish setting up an authenticator app; it replaces an earlier one. With your first second factor your other sessions end',
      { 200: codesAnswer },
      ['wrong_code', 'enrolment_ended', 'local_auth_disabled'],
    ),
    validate('json', confirmSchema),
    async (c) => c.json({ recoveryCodes: await confirmTotp(c, c.var.ctx, c.req.valid('json')) }),
  )
  .delete(
    '/totp',
    requireEnrollingSession,
    requireFactorProof,
    answers('Remove your authenticator app', { 204: null }, ['factor_not_found']),
    async (c) => {
      await removeTotp(c.var.ctx)
      return c.body(null, 204)
    },
  )
  .post(
    '/passkeys/options',
    requireEnrollingSession,
    requireFactorProof,
    requireLocalAuth,
    answers('Options for creating a passkey in the browser', { 200: optionsSchema }, [
      'local_auth_disabled',
      'not_a_local_user',
      'passkeys_unavailable',
      'too_many_passkeys',
    ]),
    async (c) => {
      if (c.var.ctx.viewer.user.authProvider !== 'local') throw new AppError('not_a_local_user')
      return c.json({ options: await beginPasskey(c, c.var.ctx) })
    },
  )
  .post(
    '/passkeys',
    requireEnrollingSession,
    requireLocalAuth,
    answers(
      'Store the passkey created by the browser. With your first second factor your other sessions end',
      { 200: codesAnswer },
      ['enrolment_ended', 'passkey_refused', 'passkeys_unavailable', 'too_many_passkeys', 'local_auth_disabled'],
    ),
    validate('json', newPasskeySchema),
    async (c) => c.json({ recoveryCodes: await addPasskey(c, c.var.ctx, c.req.valid('json')) }),
  )
  .delete(
    '/passkeys/:id',
    requireEnrollingSession,
    requireFactorProof,
    answers('Remove one of your passkeys', { 204: null }, ['factor_not_found']),
    validate('param', idParam),
    async (c) => {
      const { ctx } = c.var
      await removePasskey(ctx, c.req.valid('param').id, [dropIdleCodes(ctx, ctx.viewer.user.id)])
      return c.body(null, 204)
    },
  )
  .post(
    '/recovery-codes',
    requireEnrollingSession,
    requireFactorProof,
    answers(
      'Create ten new recovery codes. The earlier ones become invalid',
      { 200: z.object({ recoveryCodes: codesField }) },
      ['no_second_factor'],
    ),
    async (c) => {
      const { ctx } = c.var
      return c.json({ recoveryCodes: await renewCodes(ctx, hasFactor(ctx.viewer.user.id)) })
    },
  )
  .delete(
    '/reset-notice',
    requireEnrollingSession,
    answers('Confirm the notice that an administrator removed your second factors', { 204: null }),
    async (c) => {
      await dismissReset(c.var.ctx)
      return c.body(null, 204)
    },
  )
