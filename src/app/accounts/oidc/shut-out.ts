import { eq } from 'drizzle-orm'
import { providerSessions } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit, SYSTEM } from '../../audit/audit.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import type { Ctx } from '../../base/context.ts'
import type { StoredSession } from '../sessions/store.ts'
import { holdTokens } from '../tokens/hold.ts'
import { cutOff } from '../sessions/cutoffs.ts'
import type { Identity } from './provider.ts'
import { findAccount } from './users.ts'

/** The statements for a refusal by groups, and the sessions to remove from their store afterwards. */
type ShutOut = { readonly statements: readonly Statement[]; readonly sessions: readonly StoredSession[] }

/** Ends the user's sessions of the provider that refuses them, and holds their tokens until a sign-in succeeds. */
export async function shutOut(ctx: Ctx, settings: ProviderSettings, identity: Identity): Promise<ShutOut> {
  const { issuer, id: providerId } = settings
  const owner = await findAccount(ctx.store, identity)
  if (owner === null) return { statements: [], sessions: [] }
  const { id: userId, username } = owner
  const open = (await ctx.sessions.list(userId, ctx.now())).filter(({ oidcIssuer }) => oidcIssuer === issuer)
  const why = { by: 'groups at the provider', providerId }
  const details = { userId, username, ...why, sessions: open.length }
  return {
    statements: [
      cutOff(ctx, userId, issuer),
      ...(open.length === 0 ? [] : [audit(ctx, 'session_revoked', details, { actor: SYSTEM })]),
      ...holdTokens(ctx, owner, why),
    ],
    sessions: open,
  }
}

/** Removes sessions that have ended from their store. */
export async function removeEnded(ctx: Ctx, ended: readonly StoredSession[]): Promise<void> {
  for (const { tokenHash } of ended) {
    await ctx.sessions.remove(tokenHash)
    await ctx.store.db.delete(providerSessions).where(eq(providerSessions.tokenHash, tokenHash)).run()
  }
}
