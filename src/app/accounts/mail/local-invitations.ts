import { languageFor } from '../../words/reader.ts'
import { and, eq, isNull, sql, type SQL } from 'drizzle-orm'
import type * as z from 'zod'
import { invitations, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { LinkPurpose } from '../../../shared/access/letters.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { stillAdmin } from '../users/still-admin.ts'
import type { ListedUser, User } from '../users/user.ts'
import { createUser, getListedUser, getUser, type newUserSchema, nextEpoch } from '../users/users.ts'
import { hashNewPassword } from '../passwords/passwords.ts'
import {
  insertInvitation,
  type Invitation,
  type invitationBody,
  invitationMade,
  inviteUser,
  isOpen,
  type NewInvitation,
  readInvitation,
  auditInvitation,
  withoutLink,
} from '../oidc/invitations.ts'
import { hashToken } from '../sessions/session-token.ts'
import { demandAccountMail } from './account-mail.ts'
import { MAX_PER_DAY, newLink, queueLetter, recently } from './letters.ts'
import { LINKS, takeFor } from './password-reset.ts'
import { verifyEmail } from '../users/verified-email.ts'

const LIFETIME_MS = 7 * DAY_MS

type Added = {
  readonly user: ListedUser
  /** The random password, in clear. */
  readonly password: string | null
  readonly invitation: Invitation | null
}

/**
 * Creates a local user, and invites them by e-mail if the input asks for it. A repeat with the same key gets the user
 * and the open invitation, but no password. Throws as `inviteNewUser` or `createUser`, and `idempotency_key_reused`.
 */
export async function addUser(
  ctx: SignedInCtx,
  input: z.infer<typeof newUserSchema>,
  keyed: Keyed | null,
): Promise<Added> {
  return createOnce(ctx, keyed, {
    async create(remember) {
      const added = await (input.invite === true ? inviteNewUser : createUser)(ctx, input, { remember })
      return { ...added, user: await getListedUser(ctx, added.user.id) }
    },
    async repeat(id) {
      const user = await getListedUser(ctx, id)
      const open = await readInvitation(ctx, id)
      return { user, password: null, invitation: open === null ? null : withoutLink(open) }
    },
  })
}

/**
 * Creates a local user without a password, and sends a link for choosing one. Throws `account_mail_disabled`,
 * `email_required`, `invalid_request` if a password is given too, and as `createUser`.
 */
async function inviteNewUser(
  ctx: SignedInCtx,
  input: z.infer<typeof newUserSchema>,
  { remember }: { readonly remember: Remember },
): Promise<{ user: User; password: null; invitation: Invitation }> {
  demandAccountMail(ctx)
  const { username, email, password } = input
  if (email == null) throw new AppError('email_required')
  if (password !== undefined) {
    const message = 'the invited user chooses it'
    throw new AppError('invalid_request', `password: ${message}`, { issues: [{ path: 'password', message }] })
  }
  const letter = await invitationLetter(ctx, email)
  const { user } = await createUser(ctx, input, { invite: (id) => letter.statements({ id, username }), remember })
  return { user, password: null, invitation: letter.invitation }
}

/**
 * Makes another link to an account, by e-mail for a local user. A repeat with the same key gets the invitation without
 * its link, as long as it is open. Throws as `inviteByMail` or `inviteUser`, `idempotency_key_reused`, `not_found` for a
 * repeat whose link was used, replaced or withdrawn.
 */
export async function inviteAgain(
  ctx: SignedInCtx,
  id: number,
  input: z.infer<typeof invitationBody>,
  { site, keyed }: { readonly site: string; readonly keyed: Keyed | null },
): Promise<Invitation> {
  const { authProvider } = await getUser(ctx.store, id)
  return createOnce(ctx, keyed, {
    create: (remember) =>
      authProvider === 'local' ? inviteByMail(ctx, id, remember) : inviteUser(ctx, id, input, { site, remember }),
    async repeat(madeAt) {
      const open = await readInvitation(ctx, id)
      if (open?.createdAt === madeAt) return withoutLink(open)
      throw new AppError('not_found', 'The link that the first request created was used, replaced or withdrawn')
    },
  })
}

/**
 * Sends another link to a local user who has not chosen a password yet; it replaces an earlier one. Throws
 * `account_mail_disabled`, `user_not_found`, `user_inactive`, `has_signed_in`, `email_required`, `rate_limited`.
 */
async function inviteByMail(ctx: SignedInCtx, id: number, remember: Remember): Promise<Invitation> {
  demandAccountMail(ctx)
  const { username, email, isActive } = await getUser(ctx.store, id)
  if (!isActive) throw new AppError('user_inactive')
  if (!(await isInvitable(ctx, id))) throw new AppError('has_signed_in')
  if (email === null) throw new AppError('email_required')
  const mine = sql`select count(*) as n from account_letters where user_id = ${id} and kind = 'invitation' and ${recently(ctx.now())}`
  const today = await ctx.store.db.get<{ n: number }>(mine)
  if ((today?.n ?? 0) >= MAX_PER_DAY.invitation) {
    throw new AppError('rate_limited', 'This user got too many invitations; try again tomorrow', { retryAfter: 86_400 })
  }
  const letter = await invitationLetter(ctx, email)
  const [first, ...rest] = letter.statements({ id, username })
  if (first !== undefined) {
    await ctx.store.atomic([first, ...rest, ...stillAdmin(ctx), ...remember(invitationMade(id))])
  }
  return letter.invitation
}

/** Whether a user is local and has no password yet. */
export async function isInvitable({ store }: Pick<Ctx, 'store'>, id: number): Promise<boolean> {
  const open = and(eq(users.id, id), eq(users.authProvider, 'local'), isNull(users.passwordHash))
  return (await store.db.select({ id: users.id }).from(users).where(open).get()) !== undefined
}

async function invitationLetter(ctx: SignedInCtx, email: string) {
  const { uid, tokenHash, sealed } = await newLink(ctx)
  const invitation: Invitation = { url: null, sentTo: email, expiresAt: ctx.now() + LIFETIME_MS }
  const made: NewInvitation = { tokenHash, invitation }
  const statements = ({ id, username }: { id: SQL | number; username: string }): Statement[] => [
    insertInvitation(ctx, id, made),
    auditInvitation(ctx, { id, username }, made),
    queueLetter(ctx, {
      uid,
      userId: id,
      kind: 'invitation',
      email,
      details: { username, language: languageFor(ctx) },
      sealed,
    }),
  ]
  return { invitation, statements }
}

type Invited = {
  readonly purpose: LinkPurpose
  readonly userId: number
  readonly username: string
  readonly email: string
  readonly expiresAt: number
  /** A condition on the row of `users`: the invitation is still valid. */
  readonly isOpen: SQL | undefined
}

/** The invitation by e-mail of a token; null: expired, used, withdrawn, or the account has changed since. */
export async function findInvited(ctx: Ctx, token: string): Promise<Invited | null> {
  const open = and(eq(invitations.tokenHash, hashToken(token)), isOpen(ctx))
  const free = and(
    eq(users.authProvider, 'local'),
    eq(users.isActive, true),
    isNull(users.passwordHash),
    sql`${users.email} = (select ${invitations.email} from ${invitations} where ${open})`,
    sql`${users.id} = (select ${invitations.userId} from ${invitations} where ${open})`,
  )
  const { id: userId, username, email } = users
  const row = await ctx.store.db
    .select({ userId, username, email, expiresAt: invitations.expiresAt })
    .from(users)
    .innerJoin(invitations, eq(invitations.userId, users.id))
    .where(and(free, open))
    .get()
  if (row === undefined || row.email === null) return null
  return { ...row, email: row.email, purpose: 'invitation', isOpen: free }
}

/**
 * Sets the first password by the link of an invitation, which also proves that the address is the user's. Of several
 * simultaneous calls, one succeeds. Throws `link_invalid`, `weak_password`, `rate_limited`.
 */
export async function acceptByMail(ctx: Ctx, { token, password }: { token: string; password: string }): Promise<void> {
  await takeFor(ctx, 'links', LINKS)
  const invited = await findInvited(ctx, token)
  if (invited === null) throw new AppError('link_invalid')
  const { userId, username, email } = invited
  const passwordHash = await hashNewPassword(ctx, password, username)
  const { store } = ctx
  const ours = and(eq(users.id, userId), eq(users.passwordHash, passwordHash))
  const isOurs = sql`exists (select 1 from ${users} where ${ours})`
  await store.atomic([
    store.db
      .update(users)
      .set({ passwordHash, mustChangePassword: false, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, userId), invited.isOpen)),
    audit(ctx, 'invitation_accepted', { userId, username }, { actor: { id: userId, username }, onlyIfChanged: true }),
    verifyEmail(store, { userId, email, now: ctx.now() }, isOurs),
    store.db.delete(invitations).where(and(eq(invitations.userId, userId), isOurs)),
  ])
  const won = await store.db.select({ id: users.id }).from(users).where(ours).get()
  if (won === undefined) throw new AppError('link_invalid')
}
