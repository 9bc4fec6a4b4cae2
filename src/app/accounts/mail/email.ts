import { languageFor } from '../../words/reader.ts'
import { and, eq, isNull, sql } from 'drizzle-orm'
import type * as z from 'zod'
import { users, verifiedEmails } from '../../../db/schema.ts'
import { differs } from '../../../db/differs.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { demandFreshProof } from '../fresh-proof.ts'
import type { User } from '../users/user.ts'
import { getUser, updateUser, type userChangesSchema } from '../users/users.ts'
import { demandAccountMail, siteOfMail } from './account-mail.ts'
import { isQueued, newLink, queueLetter } from './letters.ts'
import { dropLinks, findLink, insertLink, readState } from './links.ts'
import { takeFor, LINKS } from './password-reset.ts'
import { forgetPreviousEmail, verifyEmail } from '../users/verified-email.ts'

/**
 * Changes the viewer's own address, and sends a link to the new one, which is unverified until the link is used. If the
 * previous address was verified, it gets a letter. Throws `not_a_local_user`, `account_mail_disabled`.
 */
export async function changeOwnEmail(ctx: SignedInCtx, email: string | null): Promise<User> {
  demandAccountMail(ctx)
  const { id, username, authProvider } = ctx.viewer.user
  if (authProvider !== 'local') throw new AppError('not_a_local_user')
  const before = await getUser(ctx.store, id)
  if (before.email === email) return before
  const { db } = ctx.store
  await ctx.store.atomic([
    db
      .update(users)
      .set({ email })
      .where(and(eq(users.id, id), eq(users.authProvider, 'local'), differs(users, ['email'], { email }))),
    audit(
      ctx,
      'user_updated',
      { userId: id, username, before: { email: before.email }, after: { email } },
      { onlyIfChanged: true },
    ),
    ...forgetPreviousEmail(ctx.store, id, ctx.now()),
  ])
  await offerLink(ctx, id)
  return getUser(ctx.store, id)
}

/**
 * As `updateUser`; another address of a local user gets a link that verifies it. That address, and reactivating an
 * administrator, need a fresh proof: whoever confirms an address can ask there for a new password. Throws
 * `reauthentication_required` as well.
 */
export async function changeUser(
  ctx: SignedInCtx,
  id: number,
  changes: z.infer<typeof userChangesSchema>,
): Promise<void> {
  const before = await getUser(ctx.store, id)
  const { email = before.email } = changes
  const isWayIn = before.authProvider === 'local' && email !== before.email
  if (isWayIn || (before.isAdmin && !before.isActive && changes.isActive === true)) await demandFreshProof(ctx)
  const after = await updateUser(ctx, id, changes)
  if (after.email !== before.email) await offerLink(ctx, id)
}

/**
 * Queues a letter with a link that verifies the user's address, unless the user has no address or it got too many
 * letters.
 */
export async function offerLink(ctx: Ctx, userId: number): Promise<{ readonly uid: string } | null> {
  const { email, username, emailVerified, authProvider, isActive } = await getUser(ctx.store, userId)
  if (siteOfMail(ctx) === null || email === null || emailVerified || authProvider !== 'local' || !isActive) return null
  const state = await readState(ctx, userId, 'verify')
  if (state === null) return null
  const link = await newLink(ctx)
  const { uid, sealed } = link
  const isTheirs = sql`exists (select 1 from ${users} where ${and(eq(users.id, userId), eq(users.email, email))})`
  const details = { username, language: languageFor(ctx) }
  const statements: [Statement, ...Statement[]] = [
    queueLetter(ctx, { uid, userId, kind: 'verify', email, details, sealed, onlyIf: isTheirs }),
    // Only the latest link works.
    dropLinks(ctx, userId, 'verify', isQueued(uid)),
    insertLink(ctx, { ...link, userId, purpose: 'verify', email, state }),
  ]
  await ctx.store.atomic(statements)
  const queued = await ctx.store.db.get<{ n: number }>(sql`select ${isQueued(uid)} as n`)
  return queued?.n === 1 ? { uid } : null
}

/**
 * Sends another link to the viewer's own address. Throws `account_mail_disabled`,
 * `not_a_local_user`, `nothing_to_confirm`, `rate_limited`.
 */
export async function sendLinkAgain(ctx: SignedInCtx): Promise<void> {
  demandAccountMail(ctx)
  const { email, emailVerified, authProvider } = await getUser(ctx.store, ctx.viewer.user.id)
  if (authProvider !== 'local') throw new AppError('not_a_local_user')
  if (email === null || emailVerified) throw new AppError('nothing_to_confirm')
  if ((await offerLink(ctx, ctx.viewer.user.id)) !== null) return
  throw new AppError('rate_limited', 'This address got too many of these e-mails; try again tomorrow', {
    retryAfter: 86_400,
  })
}

/** Marks an address as verified by the link that was sent to it. Throws `link_invalid`, `rate_limited`. */
export async function confirmEmail(ctx: Ctx, token: string): Promise<void> {
  await takeFor(ctx, 'links', LINKS)
  const link = await findLink(ctx, token, ['verify'])
  if (link === null) throw new AppError('link_invalid')
  const { userId, username, email } = link
  const verified = and(
    eq(verifiedEmails.userId, userId),
    isNull(verifiedEmails.endedAt),
    eq(verifiedEmails.email, email),
  )
  const isVerified = sql`exists (select 1 from ${verifiedEmails} where ${verified})`
  await ctx.store.atomic([
    ...forgetPreviousEmail(ctx.store, userId, ctx.now()),
    verifyEmail(ctx.store, { userId, email, now: ctx.now() }, link.isOpen),
    audit(ctx, 'email_verified', { userId, username, email }, { actor: { id: userId, username }, onlyIfChanged: true }),
    dropLinks(ctx, userId, 'verify', isVerified),
  ])
  const { emailVerified } = await getUser(ctx.store, userId)
  if (!emailVerified) throw new AppError('link_invalid')
}
