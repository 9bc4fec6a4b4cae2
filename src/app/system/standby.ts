import { eq, sql } from 'drizzle-orm'
import { apiTokens } from '../../db/schema.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { releaseConnections } from '../connections/held.ts'
import { releasePlaces } from './copies/held.ts'
import { listSources } from '../mesh/radios/sources.ts'
import { markLocalNodes, retireRadios } from '../mesh/radios/source-table.ts'
import { IS_STANDBY, readStandby, writeStandby } from '../settings/standby.ts'
import { MINUTE_MS } from '../../shared/time.ts'

/**
 * A primary that delivered within this time is not replaced. The last use of a token is stored every five minutes only.
 */
const QUIET_MS = 10 * MINUTE_MS

type DeliveredSources = Awaited<ReturnType<typeof listSources>>

/** A token that delivers here, as a user of the command line names it. */
type Primary = {
  readonly id: number
  readonly name: string
  readonly owner: string
  readonly lastDeliveredAt: number | null
}

/** What a promotion did. `sources`: those that the old primary delivered. */
export type Promotion = {
  readonly isRepeat: boolean
  readonly revoked: Primary | null
  readonly sources: DeliveredSources
}

/** From now on no alert about the mesh is sent from here, and a start with radios is refused. */
export async function makeStandby(ctx: Ctx): Promise<void> {
  // Those that a restored backup brought: a connection of this service would speak for them, and not the collector.
  await retireRadios(ctx.store, [])
  await ctx.store.atomic([
    audit(
      ctx,
      'standby_changed',
      { before: { standby: false }, after: { standby: true } },
      { onlyIf: sql`not ${IS_STANDBY}` },
    ),
    writeStandby(ctx.store, true, ctx.now()),
  ])
}

/**
 * Ends the standby and revokes the token of the old primary, in one step. A repeat changes nothing. Throws
 * `invalid_request` for a service that is no standby, for a primary that may still deliver unless `isForced`, and if
 * several tokens deliver and `tokenId` names none of them.
 */
export async function promoteStandby(
  ctx: Ctx,
  { tokenId, isForced }: { readonly tokenId: number | null; readonly isForced: boolean },
): Promise<Promotion> {
  const { store } = ctx
  const state = await readStandby(store)
  if (state === 'never') {
    throw refused(
      'This service is no standby, and nothing changed. To make a user an administrator: promote <username>',
    )
  }
  const all = (await listSources(store, { withTokens: true })).filter(({ kind }) => kind === 'ingest')
  if (state === 'promoted') return { isRepeat: true, revoked: null, sources: all.filter(({ token }) => token === null) }
  const revoked = await findPrimary(ctx, all, tokenId)
  if (!isForced) demandQuiet(ctx, revoked)
  const now = ctx.now()
  const details = {
    before: { standby: true },
    after: { standby: false },
    forced: isForced,
    ...(revoked !== null && { tokenId: revoked.id, lastDeliveredAt: revoked.lastDeliveredAt }),
  }
  await store.atomic([
    audit(ctx, 'standby_changed', details, { onlyIf: IS_STANDBY }),
    ...(revoked === null ? [] : await revocation(ctx, revoked)),
    writeStandby(store, false, now),
    // The radios and the places for copies that the backup brought are its own from now on.
    releaseConnections(store),
    releasePlaces(store),
    markLocalNodes(store),
  ])
  return { isRepeat: false, revoked, sources: all.filter(({ token }) => token !== null && token.id === revoked?.id) }
}

async function revocation(ctx: Ctx, { id, name, owner }: Primary) {
  const { db } = ctx.store
  const token = await db.select({ prefix: apiTokens.prefix }).from(apiTokens).where(eq(apiTokens.id, id)).get()
  const details = { username: owner, tokenId: id, name, prefix: token?.prefix ?? null }
  const exists = sql`exists (select 1 from ${apiTokens} where ${eq(apiTokens.id, id)})`
  return [audit(ctx, 'token_revoked', details, { onlyIf: exists }), db.delete(apiTokens).where(eq(apiTokens.id, id))]
}

/** Null: nothing was ever delivered, or the token was revoked already. */
async function findPrimary({ store }: Ctx, all: DeliveredSources, tokenId: number | null): Promise<Primary | null> {
  const byToken = Map.groupBy(all, ({ token }) => token?.id ?? null)
  const ids = [...byToken.keys()].filter((id) => id !== null)
  if (tokenId !== null && !ids.includes(tokenId)) throw refused(`No collector delivers with the token ${tokenId}`)
  if (tokenId === null && ids.length > 1) {
    const lines = ids.map((id) => {
      const [first] = byToken.get(id) ?? []
      return `  ${id}  ${first?.token?.name} of ${first?.token?.owner}: ${byToken
        .get(id)
        ?.map(({ name }) => name)
        .join(', ')}`
    })
    throw refused(
      ['Several collectors deliver here; say whose place this service takes: promote --token <id>', ...lines].join(
        '\n',
      ),
    )
  }
  const id = tokenId ?? ids[0]
  const delivered = byToken.get(id ?? null) ?? []
  const token = delivered[0]?.token ?? null
  if (id === undefined || token === null) return null
  const used = await store.db.select({ at: apiTokens.lastUsedAt }).from(apiTokens).where(eq(apiTokens.id, id)).get()
  const times = [used?.at ?? null, ...delivered.map(({ lastReceivedAt }) => lastReceivedAt)].filter((at) => at !== null)
  return { id, name: token.name, owner: token.owner, lastDeliveredAt: times.length === 0 ? null : Math.max(...times) }
}

function demandQuiet({ now }: Ctx, primary: Primary | null): void {
  if (primary === null) {
    throw refused('No collector delivers here, so nothing shows that the primary is down; if it is: promote --force')
  }
  const { lastDeliveredAt } = primary
  if (lastDeliveredAt === null || lastDeliveredAt <= now() - QUIET_MS) return
  const at = new Date(lastDeliveredAt).toISOString()
  const minutes = QUIET_MS / MINUTE_MS
  throw refused(
    `The primary delivered at ${at}, less than ${minutes} minutes ago; stop it, then promote --force or wait`,
  )
}

function refused(reason: string): AppError {
  return new AppError('invalid_request', reason)
}
