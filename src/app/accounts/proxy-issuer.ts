import type { Config } from '../config/config.ts'
import type { Ports } from '../base/context.ts'

/** The issuer of users that a proxy names. No provider has it. Null without PROXY_AUTH_HEADER. */
export function proxyIssuer({ PROXY_AUTH_HEADER }: Pick<Config, 'PROXY_AUTH_HEADER'>): string | null {
  return PROXY_AUTH_HEADER === null ? null : PROXY
}

const PROXY = 'proxy:'

/** Whether a proxy, not a provider, began a session. */
export function isByProxy({ oidcIssuer }: { readonly oidcIssuer: string | null }): boolean {
  return oidcIssuer === PROXY
}

/** Whether users of this issuer can sign in: those of the configured providers, and of the proxy. */
export function isTrustedIssuer(
  { config, providers }: Pick<Ports, 'config' | 'providers'>,
  issuer: string | null,
): boolean {
  return issuer !== null && (issuer === proxyIssuer(config) || providers.some((provider) => provider.issuer === issuer))
}
