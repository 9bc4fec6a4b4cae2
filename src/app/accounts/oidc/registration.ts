import * as z from 'zod'
import { signedOutPage } from '../../config/callback.ts'
import type { ProviderSettings } from '../../config/providers.ts'

export const registrationSchema = z
  .object({
    id: z.string().describe('Name as in GET /api/auth/status'),
    name: z.string().nullable().describe('Its name for people'),
    issuer: z.string(),
    redirectUri: z.string().describe('Register exactly this one, without a wildcard'),
    signedOutUri: z.string().describe('The post-logout redirect URI'),
  })
  .meta({ id: 'ProviderRegistration', description: 'What to register at an OpenID provider' })

export function registrationOf({
  id,
  name,
  issuer,
  redirectUri,
}: ProviderSettings): z.infer<typeof registrationSchema> {
  return { id, name, issuer, redirectUri, signedOutUri: signedOutPage(redirectUri) }
}
