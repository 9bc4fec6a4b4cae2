import * as z from 'zod'
import { AUTH_PROVIDERS } from '../../../shared/access/auth-providers.ts'
import { timeField } from '../../http/fields.ts'

/** An account at a provider that signs a user in. */
export const identitySchema = z
  .object({
    provider: z
      .string()
      .nullable()
      .describe('Name as in GET /api/auth/status; null: no longer configured, or an authenticating proxy'),
    issuer: z.string(),
    subject: z.string().describe('`sub` at the provider'),
    linkedAt: timeField,
  })
  .meta({ id: 'LinkedProvider', description: 'An account at an OpenID provider that signs a user in' })

export const userSchema = z
  .object({
    id: z.int(),
    username: z.string(),
    email: z.string().nullable(),
    emailVerified: z
      .boolean()
      .describe(
        'Whether a local user followed a link that was sent to this address. Always false for users of a provider',
      ),
    displayName: z.string().nullable(),
    authProvider: z.enum(AUTH_PROVIDERS),
    oidcSubject: z
      .string()
      .nullable()
      .describe('`sub` at the OpenID provider that the account is of, or else at the one linked first; null: none'),
    isAdmin: z.boolean(),
    isActive: z.boolean(),
    createdAt: timeField,
    lastLoginAt: timeField.nullable(),
    createdBy: z
      .int()
      .nullable()
      .describe('ID of the administrator who created it; null: the service or the OpenID provider'),
  })
  .meta({ id: 'User' })

export type User = z.infer<typeof userSchema>

/** A user as administrators see it. */
export const listedUserSchema = userSchema
  .extend({
    secondFactor: z.array(z.enum(['totp', 'passkey'])).describe('The second factors that are set up'),
    links: z.array(identitySchema).describe('The accounts at OpenID providers that sign this user in'),
  })
  .meta({ id: 'ListedUser' })

export type ListedUser = z.infer<typeof listedUserSchema>
