import type { Ctx, Viewer } from '../../base/context.ts'

/**
 * Whether REQUIRE_SECOND_FACTOR requires this viewer to set up a second factor before anything else. Depends on how the
 * session began. Tokens belong to machines and are exempt. A provider decides about its own users, unless it reports a
 * single factor and all users need two.
 */
export function isFactorMissing({ config }: Pick<Ctx, 'config'>, { user, credential, secondFactor }: Viewer): boolean {
  const { REQUIRE_SECOND_FACTOR: who } = config
  if (who === 'none' || credential.kind !== 'session') return false
  const { oidcIssuer, factors } = credential.session
  if (oidcIssuer !== null) return who === 'all' && factors === 1
  return (who === 'all' || user.isAdmin) && !(secondFactor.isSetUp && factors === 2)
}
