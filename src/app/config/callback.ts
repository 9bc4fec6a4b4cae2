/** Where the first provider may send browsers; each provider has its own address below it. */
export const CALLBACK_PATH = '/api/auth/oidc/callback'

/**
 * The path of this service to which a provider sends browsers.
 * Decision: docs/decisions/redirect-uris.md
 */
export function callbackPathOf(provider: string): string {
  return `${CALLBACK_PATH}/${provider}`
}

/** The callback that a redirect URI names. */
export type Callback = {
  /** Everything before its path. */
  readonly site: string
  /** The provider that it names; null: the one without a name, which is for the first provider. */
  readonly provider: string | null
}

/**
 * Null if the URI is not one of our paths, such as the address of a proxy that routes it to a callback. The URI must be
 * valid.
 */
export function callbackIn(redirectUri: string): Callback | null {
  const { origin, pathname } = new URL(redirectUri)
  const found = /^(.*)\/api\/auth\/oidc\/callback(?:\/([^/]+))?$/.exec(pathname)
  return found === null ? null : { site: `${origin}${found[1] ?? ''}`, provider: found[2] ?? null }
}

/** The redirect URI of a provider that has none set, derived from that of the first; null: none can be derived. */
export function redirectUriBeside(first: string, provider: string): string | null {
  const site = callbackIn(first)?.site
  return site === undefined ? null : `${site}${callbackPathOf(provider)}`
}

/** The login page beside the callback, at the address that the provider knows. */
export function signedOutPage(redirectUri: string): string {
  return `${callbackIn(redirectUri)?.site ?? new URL(redirectUri).origin}/login`
}
