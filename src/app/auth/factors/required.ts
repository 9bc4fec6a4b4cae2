import type { Ctx, Viewer } from '../../context.ts'

/**
 * Whether REQUIRE_SECOND_FACTOR asks this viewer to set one up before anything else. Tokens are machines. Whom a provider
 * signed in is its business, unless it says itself that there was one factor, and everybody needs two.
 */
export function isFactorMissing({ config }: Pick<Ctx, 'config'>, { user, credential, secondFactor }: Viewer): boolean {
  const { REQUIRE_SECOND_FACTOR: who } = config
  if (who === 'none' || credential.kind !== 'session') return false
  const { oidcIssuer, factors } = credential.session
  if (oidcIssuer !== null) return who === 'all' && factors === 1
  return (who === 'all' || user.isAdmin) && !secondFactor.isSetUp
}
