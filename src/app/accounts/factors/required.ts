import type { Ctx, Viewer } from '../../base/context.ts'

/**
 * Whether REQUIRE_SECOND_FACTOR asks this viewer to set one up before anything else, judged by how the session began.
 * Tokens belong to machines and are exempt. A provider decides about its own users, unless it reports a single factor
 * and all users need two.
 */
export function isFactorMissing({ config }: Pick<Ctx, 'config'>, { user, credential, secondFactor }: Viewer): boolean {
  const { REQUIRE_SECOND_FACTOR: who } = config
  if (who === 'none' || credential.kind !== 'session') return false
  const { oidcIssuer, factors } = credential.session
  if (oidcIssuer !== null) return who === 'all' && factors === 1
  return (who === 'all' || user.isAdmin) && !(secondFactor.isSetUp && factors === 2)
}
