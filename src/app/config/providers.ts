import type { GroupPermissions } from './group-permissions.ts'

/** An OpenID provider as the variables describe it. */
export type ProviderSettings = {
  /** `default`, or its name in OIDC_PROVIDERS. */
  readonly id: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  /** Its name for people; null: none. */
  readonly name: string | null
  readonly icon: string | null
  readonly usernameClaim: string | null
  readonly adminSubject: string | null
  readonly autoCreateUsers: boolean
  readonly groupsClaim: string | null
  readonly allowedGroups: readonly string[]
  readonly adminGroups: readonly string[]
  readonly groupPermissions: readonly GroupPermissions[]
  /** Null: `keep` until the provider has sent the claim for anybody, then `none`. */
  readonly groupsMissing: GroupsMissing | null
}

/** What a missing claim of groups means: no group, no change of the role, or no sign-in. */
export const GROUPS_MISSING = ['none', 'keep', 'refuse'] as const
export type GroupsMissing = (typeof GROUPS_MISSING)[number]

export const DEFAULT_PROVIDER = 'default'

/** The parts that each provider has its own variable for. */
const OF_EACH = [
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_REDIRECT_URI',
  'OIDC_SCOPES',
  'OIDC_NAME',
  'OIDC_ICON',
  'OIDC_ALLOW_INSECURE_ISSUER',
  'OIDC_USERNAME_CLAIM',
  'OIDC_ADMIN_SUBJECT',
  'OIDC_GROUPS_CLAIM',
  'OIDC_ALLOWED_GROUPS',
  'OIDC_ADMIN_GROUPS',
  'OIDC_GROUP_PERMISSIONS',
  'OIDC_GROUPS_MISSING',
  'OIDC_AUTO_CREATE_USERS',
] as const

type OfEach = (typeof OF_EACH)[number]

/** The variables of a provider that OIDC_PROVIDERS names, each with the plain variable that it corresponds to. */
export function namedVariables(provider: string): readonly { readonly name: string; readonly like: OfEach }[] {
  return OF_EACH.map((like) => ({ name: variableName(provider, like), like }))
}

/** The variable with which a provider sets what `like` sets for the default one. */
export function variableName(provider: string, like: `OIDC_${string}`): string {
  return provider === DEFAULT_PROVIDER ? like : `OIDC_${provider.toUpperCase()}_${like.slice('OIDC_'.length)}`
}
