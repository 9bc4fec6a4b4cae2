import { ownedBy } from '../../base/owned.ts'
import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import { type Db, prepareOnce, rememberUnchanged, type Store } from '../../../db/store.ts'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import {
  DEFAULT_PUBLIC_ACCESS,
  MIN_PRECISION_BITS,
  MAX_PRECISION_BITS,
  type PublicAccess,
} from '../../../shared/access/public-access.ts'
import { MAX_SCOPE_CHANNELS } from '../../../shared/access/scope.ts'
import { MAX_RETENTION_DAYS } from '../../../shared/limits.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { type PublicView, publicViewOf } from './public-view.ts'

const readOnly = z.strictObject({ read: z.boolean(), write: z.literal(false).default(false) })

export const publicAccessSchema = z
  .strictObject({
    enabled: z.boolean().describe('Whether anonymous callers see anything'),
    permissions: z
      .strictObject({ dashboard: readOnly, nodes: readOnly, messages: readOnly, info: readOnly })
      .describe('The areas that are shown; everything else stays hidden, and nothing can be changed'),
    channels: z
      .array(z.int().min(0).max(MAX_NUMBER))
      .max(MAX_SCOPE_CHANNELS)
      .transform((numbers) => [...new Set(numbers)].toSorted((a, b) => a - b))
      .readonly()
      .describe('Channels whose messages, positions and measurements are shown. Direct messages never are'),
    positionPrecisionBits: z
      .int()
      .min(MIN_PRECISION_BITS)
      .max(MAX_PRECISION_BITS)
      .nullable()
      .describe('Positions are rounded to this many bits; null: they are shown as sent'),
    hideSilentAfterDays: z
      .int()
      .min(1)
      .max(MAX_RETENTION_DAYS)
      .nullable()
      .describe('Nodes not heard for this many days are hidden; null: all are shown'),
  })
  .meta({ id: 'PublicAccess', description: 'What anonymous callers see' })

/** Missing fields stay as they are. */
export const publicAccessChangesSchema = publicAccessSchema.partial()

/** How long caches in front of the service keep answers for anonymous callers. */
export const FRESH_SECONDS = 5

/** Key of the row in `settings`. */
export const PUBLIC_ACCESS_KEY = 'publicAccess'

const queries = prepareOnce((db) => ({
  get: db.select({ value: settings.value }).from(settings).where(eq(settings.key, PUBLIC_ACCESS_KEY)).prepare(),
}))

/** The current settings. Unreadable ones count as off. */
export async function readPublicAccess(store: Store): Promise<PublicAccess> {
  return parsePublicAccess((await queries(store).get.get())?.value)
}

/** The settings from the row of `PUBLIC_ACCESS_KEY`. */
export function parsePublicAccess(value: string | undefined): PublicAccess {
  const parsed = value === undefined ? null : publicAccessSchema.safeParse(JSON.parse(value))
  return parsed?.success ? parsed.data : DEFAULT_PUBLIC_ACCESS
}

/** Null while public access is off. Costs no query while the database has not changed. */
const readEnabled: (store: Store, key: 'view') => PublicView | null | Promise<PublicView | null> = rememberUnchanged(
  1,
  async (store) => {
    const access = await readPublicAccess(store)
    return access.enabled ? publicViewOf(access) : null
  },
)

/**
 * How long the settings are used unchecked if only a query could show a change, in milliseconds: as long as caches keep
 * answers.
 */
const LASTS_MS = FRESH_SECONDS * 1000
const lately = ownedBy((_db: Db): { read: { readonly at: number; readonly view: PublicView | null } | null } => ({
  read: null,
}))

/**
 * The current scope of anonymous callers; null while public access is off. On D1, another process may see a change 5 s
 * later.
 */
export async function readPublicView({ store, now }: Pick<Ctx, 'store' | 'now'>): Promise<PublicView | null> {
  if (store.version() !== null) return readEnabled(store, 'view')
  const at = now()
  const state = lately(store.db)
  const known = state.read
  if (known !== null && at >= known.at && at - known.at < LASTS_MS) return known.view
  const view = await readEnabled(store, 'view')
  state.read = { at, view }
  return view
}

/** Whether other sites may show nodes in a frame. */
export async function mayEmbed(ctx: Pick<Ctx, 'store' | 'now'>): Promise<boolean> {
  return (await readPublicView(ctx))?.permissions.nodes.read === true
}

/** Sets the named fields and leaves the others. Applies from the next request. */
export async function updatePublicAccess(
  ctx: Ctx,
  changes: z.infer<typeof publicAccessChangesSchema>,
): Promise<PublicAccess> {
  const before = await readPublicAccess(ctx.store)
  const { enabled, permissions, channels, positionPrecisionBits, hideSilentAfterDays } = changes
  const after = publicAccessSchema.parse({
    ...before,
    ...(enabled !== undefined && { enabled }),
    ...(permissions !== undefined && { permissions }),
    ...(channels !== undefined && { channels }),
    ...(positionPrecisionBits !== undefined && { positionPrecisionBits }),
    ...(hideSilentAfterDays !== undefined && { hideSilentAfterDays }),
  })
  const value = JSON.stringify(after)
  if (value === JSON.stringify(before)) return before
  const same = and(eq(settings.key, PUBLIC_ACCESS_KEY), eq(settings.value, value))
  await ctx.store.atomic([
    audit(
      ctx,
      'public_access_updated',
      { before, after },
      // Another request may have made the same change since it was read.
      { onlyIf: sql`not exists (select 1 from ${settings} where ${same})` },
    ),
    ctx.store.db
      .insert(settings)
      .values({ key: PUBLIC_ACCESS_KEY, value, updatedAt: ctx.now() })
      .onConflictDoUpdate({ target: settings.key, set: { value, updatedAt: ctx.now() } }),
    ...stillAdmin(ctx),
  ])
  lately(ctx.store.db).read = null
  return after
}
