import type { ProviderSettings } from '../../config/providers.ts'
import type { DiscoveryFailure } from './protocol/discovery.ts'

/** Secrets of one sign-in by OpenID Connect, sent along and checked at the end. At least 256 bits each. */
export type AttemptSecrets = {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/**
 * The groups of a user at the provider, or why they are unknown: the claim is missing, not a list of names, or too long
 * for the token (`overage`), or it may be in UserInfo, which could not be read (`unavailable`).
 */
export type ProviderGroups = readonly string[] | 'missing' | 'malformed' | 'overage' | 'unavailable'

/** A user identified by the provider: issuer and subject are the identity, the profile is for display. */
export type Identity = {
  readonly issuer: string
  readonly subject: string
  /** When the user last proved who they are at the provider, ms; null: the provider does not say. */
  readonly authenticatedAt: number | null
  /** The number of factors used there; null: the provider does not say. */
  readonly factors: 1 | 2 | null
  readonly groups: ProviderGroups
  readonly profile: Profile
  /** The provider's ID of its session; null: it does not say. */
  readonly sid: string | null
  readonly idToken: string
}

/** What has ended at the provider: one session, or all of a user. At least one of the two is set. */
export type EndedSession = {
  /** ID of the message, unique at the provider. */
  readonly id: string
  readonly sid: string | null
  readonly subject: string | null
}

/** What a provider says of itself. */
export type Tested = {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly userinfoEndpoint: string | null
  /** null: signing out ends only the session here. */
  readonly endSessionEndpoint: string | null
  /** How many of its keys can verify an ID token; at least one. */
  readonly keys: number
}

/** An OpenID provider, contacted over HTTP when needed. Each method throws an `OidcFailure` with the reason. */
export interface Provider {
  readonly issuer: string
  readonly settings: ProviderSettings
  /** The URL at which the browser signs in. `anew`: asks even users who are already signed in there. */
  authorizationUrl(secrets: AttemptSecrets, how: 'as-usual' | 'anew'): Promise<string>
  /** Redeems the code of a callback and checks the whole result. */
  identify(callback: { code: string | null; iss: string | null }, secrets: AttemptSecrets): Promise<Identity>
  /** The URL at which the browser signs out there as well; null if the provider has no such page. */
  logoutUrl(idToken: string | null): Promise<string | null>
  /** Asks for the provider's description and keys, without a sign-in and regardless of what is cached. */
  test(): Promise<Tested>
  /** The last discovery by this process, if it failed; later ones may be by others. */
  discoveryFailure(): DiscoveryFailure | null
  /** Checks a token by which the provider reports that something has ended there. */
  checkLogout(token: string): Promise<EndedSession>
}

/** Display data of a user from the provider; never a permission. */
export type Profile = {
  /** A valid username, which may be taken or reserved. */
  readonly username: string
  readonly displayName: string | null
  readonly email: string | null
}
