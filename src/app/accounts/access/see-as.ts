import { said, type Said } from '../../words/words.ts'
import type { Context } from 'hono'
import * as z from 'zod'
import { isFuture, MINUTE_MS } from '../../../shared/time.ts'
import { audit } from '../../audit/audit.ts'
import { isFactorMissing } from '../factors/required.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { viewerSeenAs } from './viewer.ts'
import type { Ctx, SignedInCtx, Viewer } from '../../base/context.ts'
import { timeField } from '../../http/fields.ts'
import { AppError } from '../../http/errors.ts'
import { SAFE_METHODS } from '../../http/security.ts'
import { getUser } from '../users/users.ts'
import type { PublicAccess } from '../../../shared/access/public-access.ts'
import { publicAccessSchema } from './public-access.ts'
import { type PublicView, publicViewOf } from './public-view.ts'

/** Request header with which an administrator sees what somebody else sees. */
export const SEE_AS = 'x-see-as'

const LABEL = 'see-as'
const LASTS_MS = 30 * MINUTE_MS

/** Sealed, so that only this service can create one, and valid only in the session that created it. */
const ticketSchema = z.object({
  session: z.string(),
  at: z.int(),
  eyes: z.union([z.object({ userId: z.int() }), z.object({ access: publicAccessSchema })]),
})
type Ticket = z.output<typeof ticketSchema>

export const ticketAnswer = z.object({
  seeAs: z.string().describe('Value of the header X-See-As, for GET requests of this session'),
  until: timeField,
})

/** Starts seeing as a user. Throws `user_not_found`, `user_inactive`, `invalid_request` for an administrator. */
export async function beginSeeingAs(ctx: SignedInCtx, userId: number): Promise<z.infer<typeof ticketAnswer>> {
  const { username, isAdmin } = await getUser(ctx.store, userId)
  if (isAdmin) throw new AppError('invalid_request', 'An administrator sees everything')
  if ((await viewerSeenAs(ctx, ctx.viewer, userId)) === null) throw new AppError('user_inactive')
  await ctx.store.atomic([audit(ctx, 'view_started', { userId, username })])
  return makeTicket(ctx, { userId })
}

/** Starts a preview of what anonymous callers would see with these settings, whether they are in force or not. */
export async function beginPreview(ctx: SignedInCtx, access: PublicAccess): Promise<z.infer<typeof ticketAnswer>> {
  await ctx.store.atomic([audit(ctx, 'view_started', { publicAccess: access })])
  return makeTicket(ctx, { access: publicAccessSchema.parse(access) })
}

async function makeTicket(ctx: SignedInCtx, eyes: Ticket['eyes']): Promise<z.infer<typeof ticketAnswer>> {
  const { credential } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('admin_required')
  const at = ctx.now()
  const ticket: Ticket = { session: credential.session.tokenHash, at, eyes }
  return { seeAs: await seal(ctx.config.SESSION_SECRET, LABEL, JSON.stringify(ticket)), until: at + LASTS_MS }
}

type Found = {
  readonly viewer: Viewer | null
  readonly nodesRevision?: number
  readonly toReview?: number
  readonly meshName?: string | null
  readonly isTokenHeld?: true
  readonly preview?: PublicView
}

/**
 * The viewer whose view the request gets: the one in X-See-As, for a read request of an administrator's session. Throws
 * `see_as_refused` for any other request with that header.
 */
export async function seeAs(c: Context, ctx: Ctx, found: Found): Promise<Found> {
  const sealed = c.req.header(SEE_AS)
  if (sealed === undefined) return found
  const { viewer } = found
  if (!SAFE_METHODS.has(c.req.method)) throw refusal(said('Nothing is changed while you see as somebody else'))
  if (viewer === null || viewer.credential.kind !== 'session' || !viewer.user.isAdmin) throw refusal(ADMINS_ONLY)
  if (viewer.mustChangePassword || isFactorMissing(ctx, viewer)) throw refusal(ADMINS_ONLY)
  const { credential } = viewer
  const ticket = await readTicket(ctx, sealed)
  if (ticket?.session !== credential.session.tokenHash) throw refusal(ENDED)
  const age = ctx.now() - ticket.at
  if (age >= LASTS_MS || isFuture(ticket.at, ctx.now(), MINUTE_MS)) throw refusal(ENDED)
  if ('access' in ticket.eyes) return { viewer: null, preview: publicViewOf(ticket.eyes.access) }
  const seen = await viewerSeenAs(ctx, viewer, ticket.eyes.userId)
  if (seen === null) throw refusal(ENDED)
  return { ...found, viewer: seen }
}

const ADMINS_ONLY = said('Only an administrator who is signed in can see as somebody else')
const ENDED = said('You no longer see as somebody else; begin again')

function refusal(detail: Said): AppError {
  return new AppError('see_as_refused', detail)
}

async function readTicket({ config }: Ctx, sealed: string): Promise<Ticket | null> {
  const text = sealed.length > 20_000 ? null : await unseal(config.SESSION_SECRET, LABEL, sealed)
  const parsed = text === null ? null : ticketSchema.safeParse(JSON.parse(text))
  return parsed?.success ? parsed.data : null
}
