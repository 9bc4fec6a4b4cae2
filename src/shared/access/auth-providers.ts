/** Who verifies users: this service by a password, or an OpenID provider. */
export const AUTH_PROVIDERS = ['local', 'oidc'] as const
