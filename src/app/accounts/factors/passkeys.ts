import {
  type AuthenticationResponseJSON,
  type AuthenticatorTransport,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { and, count, eq, lt, or, sql } from 'drizzle-orm'
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { passkeyHandles, passkeys, users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { fromBase64url, toBase64url } from '../../base/crypto.ts'
import { AppError } from '../../http/errors.ts'
import { MAX_PASSKEY_NAME } from '../../../shared/limits.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { randomToken } from '../sessions/session-token.ts'
import { ownCookie } from '../sessions/cookies.ts'
import { factorChanged } from './changes.ts'
import { beginAdding } from './adding.ts'
import type { Proof } from './proof.ts'
import { codesForFirstFactor } from './recovery-codes.ts'
import { demandParty, type Party } from './relying-party.ts'

const RP_NAME = 'Mesh Monitoring Service'
const LABEL = 'passkey-challenge'
const LIFETIME_MS = 5 * MINUTE_MS

/** The maximum number per user. */
const MAX_PASSKEYS = 20

/** ES256, EdDSA and RS256: every authenticator supports one of them. */
const ALGORITHMS = [-7, -8, -257]

const short = z.string().max(1024)
const long = z.string().max(16_384)

const registrationSchema = z.object({
  id: short,
  rawId: short,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: long,
    attestationObject: long,
    transports: z.array(z.string().max(32)).max(10).optional(),
  }),
})

/** The result of `startAuthentication` of @simplewebauthn/browser. */
export const assertionSchema = z
  .object({
    id: short,
    rawId: short,
    type: z.literal('public-key'),
    response: z.object({
      clientDataJSON: long,
      authenticatorData: long,
      signature: long,
      userHandle: short.nullish(),
    }),
  })
  .meta({ description: "The browser's answer, in the JSON form of WebAuthn Level 3" })

export const newPasskeySchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(MAX_PASSKEY_NAME)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u),
  response: registrationSchema.meta({ description: "The browser's answer, in the JSON form of WebAuthn Level 3" }),
})

/** WebAuthn options for the browser, in the form of the specification. */
export const optionsSchema = z.object({ options: z.looseObject({ challenge: z.string() }) })
type Options = z.infer<typeof optionsSchema>['options']

/** The purpose of a challenge, which is valid for no other purpose. */
type Purpose = 'add' | 'enter' | 'second' | 'again'

const challengeSchema = z.strictObject({
  challenge: z.string(),
  purpose: z.string(),
  userId: z.int().nullable(),
  expiresAt: z.int(),
})

/** Options for creating a passkey in the browser. Throws `passkeys_unavailable`, `too_many_passkeys`. */
export async function beginPasskey(c: Context, ctx: SignedInCtx): Promise<Options> {
  const { user } = ctx.viewer
  const party = demandParty(c, ctx)
  if ((await countPasskeys(ctx, user.id)) >= MAX_PASSKEYS) throw new AppError('too_many_passkeys')
  const own = await ownPasskeys(ctx, user.id, party)
  const options = await generateRegistrationOptions({
    rpName: RP_NAME,
    rpID: party.id,
    userName: user.username,
    userID: fromBase64url(await handleOf(ctx, user.id)),
    attestationType: 'none',
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: own.map(asDescriptor),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
  })
  await handOut(c, ctx, 'add', user.id, options.challenge)
  return { ...options }
}

/**
 * Stores the passkey created by the browser. The first second factor comes with recovery codes, shown once; null if
 * there are some already. Throws `enrolment_ended`, `passkey_refused`, `passkeys_unavailable`, `too_many_passkeys`.
 */
export async function addPasskey(
  c: Context,
  ctx: SignedInCtx,
  { name, response }: z.infer<typeof newPasskeySchema>,
): Promise<string[] | null> {
  const { user } = ctx.viewer
  const party = demandParty(c, ctx)
  const challenge = await take(c, ctx, 'add', user.id)
  if (challenge === null) throw new AppError('enrolment_ended')
  const verified = await verifyRegistrationResponse({
    response: asRegistration(response),
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    supportedAlgorithmIDs: ALGORITHMS,
    requireUserVerification: false,
  }).catch(() => null)
  if (verified?.verified !== true) throw new AppError('passkey_refused')
  const { credential: made, credentialDeviceType, credentialBackedUp } = verified.registrationInfo
  const { db } = ctx.store
  const use = randomToken()
  const adding = await beginAdding(ctx)
  const hasRoom = sql`(select count(*) from ${passkeys} where ${eq(passkeys.userId, user.id)}) < ${MAX_PASSKEYS}`
  const passkey = {
    userId: user.id,
    name,
    credentialId: made.id,
    publicKey: toBase64url(made.publicKey),
    counter: made.counter,
    isBackupEligible: credentialDeviceType === 'multiDevice',
    isBackedUp: credentialBackedUp,
    transports: response.response.transports ?? [],
    rpId: party.id,
    lastUse: use,
    createdAt: ctx.now(),
  }
  const isAllowed = sql`from ${users} where ${and(eq(users.id, user.id), adding.unchanged, hasRoom)}`
  const isNew = sql`exists (select 1 from ${passkeys} where ${passkeys.lastUse} = ${use})`
  const codes = codesForFirstFactor(ctx, user.id, isNew)
  await ctx.store.atomic([
    insertSelect(db, passkeys, passkey, isAllowed).onConflictDoNothing(),
    ...factorChanged(ctx, 'second_factor_added', { factor: 'passkey', name }),
    ...codes.statements,
    ...adding.statements(isNew),
  ])
  const stored = await db.select({ n: count() }).from(passkeys).where(eq(passkeys.lastUse, use)).get()
  const shown = await codes.read()
  // This passkey is already registered, or the session ended meanwhile. If it was stored and another request then used
  // or removed it, the codes that came with it are still shown.
  if (stored?.n !== 1 && shown === null) {
    const isFull = (await countPasskeys(ctx, user.id)) >= MAX_PASSKEYS
    throw new AppError(isFull ? 'too_many_passkeys' : 'passkey_refused')
  }
  await adding.finish(c)
  return shown
}

/** Removes one of the viewer's passkeys. `also` are statements for the same step. Throws `factor_not_found`. */
export async function removePasskey(
  ctx: SignedInCtx,
  id: number,
  also: readonly Parameters<Ctx['store']['atomic']>[0][number][],
): Promise<void> {
  const own = and(eq(passkeys.id, id), eq(passkeys.userId, ctx.viewer.user.id))
  const known = await ctx.store.db.select({ name: passkeys.name }).from(passkeys).where(own).get()
  if (known === undefined) throw new AppError('factor_not_found')
  await ctx.store.atomic([
    ctx.store.db.delete(passkeys).where(own),
    ...factorChanged(ctx, 'second_factor_removed', { factor: 'passkey', name: known.name }),
    ...also,
  ])
}

/**
 * Options for using a passkey of `userId` in the browser, or of any user if that is null. Throws
 * `passkeys_unavailable`.
 */
export async function askForPasskey(
  c: Context,
  ctx: Ctx,
  purpose: Exclude<Purpose, 'add'>,
  userId: number | null,
): Promise<Options> {
  const party = demandParty(c, ctx)
  const own = userId === null ? [] : await ownPasskeys(ctx, userId, party)
  if (userId !== null && own.length === 0) {
    throw new AppError('passkeys_unavailable', 'You have no passkey for this host name')
  }
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    allowCredentials: own.map(asDescriptor),
    userVerification: purpose === 'second' ? 'preferred' : 'required',
  })
  await handOut(c, ctx, purpose, userId, options.challenge)
  return { ...options }
}

export type UsedPasskey = { readonly userId: number; readonly proof: Proof }

/**
 * The user whose passkey signed the challenge that this browser was given for `purpose`; null for anything else. A
 * passkey whose counter did not increase was copied: it is refused and logged. The audit log records sign-ins refused
 * to known passkeys only, because anybody could fill it with unknown ones.
 */
export async function proveByPasskey(
  c: Context,
  ctx: Ctx,
  purpose: Exclude<Purpose, 'add'>,
  userId: number | null,
  response: z.infer<typeof assertionSchema>,
): Promise<UsedPasskey | null> {
  const party = demandParty(c, ctx)
  const row = await ctx.store.db.select().from(passkeys).where(eq(passkeys.credentialId, response.id)).get()
  // Checked before the challenge is used up, which writes a row, so that nobody can fill the database with made-up
  // passkeys.
  if (row === undefined) return null
  const challenge = await take(c, ctx, purpose, userId)
  const refuse = async (reason: 'wrong_passkey' | 'copied_passkey'): Promise<null> => {
    // The callers for other purposes record their refusals themselves.
    if (purpose === 'enter') await recordRefusedPasskey(ctx, row.userId, reason)
    return null
  }
  // Anybody can send this, so it is counted but not recorded.
  if (challenge === null) return null
  if ((userId !== null && row.userId !== userId) || !(await isOwnHandle(ctx, row.userId, response))) {
    return refuse('wrong_passkey')
  }
  const verified = await verifyAuthenticationResponse({
    response: asAssertion(response),
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    credential: {
      id: row.credentialId,
      publicKey: fromBase64url(row.publicKey),
      // The counter is compared below, where its meaning is known.
      counter: 0,
    },
    // After a password, having the passkey is enough. Otherwise the user must have unlocked it.
    requireUserVerification: purpose !== 'second',
  }).catch(() => null)
  if (verified?.verified !== true) return refuse('wrong_passkey')
  const { newCounter, credentialBackedUp } = verified.authenticationInfo
  const { id } = row
  if (newCounter <= row.counter && (newCounter > 0 || row.counter > 0)) {
    ctx.log.warn('A passkey was refused: its counter did not increase, so a copy of it exists', { passkeyId: id })
    return refuse('copied_passkey')
  }
  const use = randomToken()
  const grows = or(lt(passkeys.counter, newCounter), sql`${passkeys.counter} = 0 and ${newCounter} = 0`)
  const proof: Proof = {
    factor: 'passkey',
    claim: (unchanged) =>
      ctx.store.db
        .update(passkeys)
        .set({ counter: newCounter, isBackedUp: credentialBackedUp, lastUse: use, lastUsedAt: ctx.now() })
        .where(and(eq(passkeys.id, id), grows, unchanged)),
    isClaimed: sql`exists (select 1 from ${passkeys} where ${passkeys.id} = ${id} and ${passkeys.lastUse} = ${use})`,
  }
  return { userId: row.userId, proof }
}

/** Records a sign-in refused to the known passkey of this user. */
export async function recordRefusedPasskey(
  ctx: Ctx,
  userId: number,
  reason: 'wrong_passkey' | 'copied_passkey' | 'user_inactive',
): Promise<void> {
  const { db } = ctx.store
  const user = await db.select({ username: users.username }).from(users).where(eq(users.id, userId)).get()
  if (user === undefined) return
  const details = { username: user.username, provider: 'local', factor: 'passkey', reason }
  const actor = { id: userId, username: user.username }
  await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor })], 'lazily')
}

/** Whether the passkey's user handle is that of the account. Security keys of the second step send none. */
async function isOwnHandle(
  { store }: Ctx,
  userId: number,
  { response: { userHandle } }: z.infer<typeof assertionSchema>,
): Promise<boolean> {
  if (userHandle == null || userHandle === '' || userHandle === oldHandle(userId)) return true
  const row = await store.db.select().from(passkeyHandles).where(eq(passkeyHandles.userId, userId)).get()
  return row?.handle === userHandle
}

/** The handle in passkeys that were created before handles were random. */
function oldHandle(userId: number): string {
  return toBase64url(new TextEncoder().encode(`mesh:${userId}`))
}

/** The user's passkeys for this host: a browser refuses passkeys of other hosts. */
async function ownPasskeys({ store }: Ctx, userId: number, { id }: Party) {
  const { credentialId, transports, rpId } = passkeys
  const own = and(eq(passkeys.userId, userId), eq(rpId, id))
  return store.db.select({ credentialId, transports }).from(passkeys).where(own).all()
}

async function countPasskeys({ store }: Ctx, userId: number): Promise<number> {
  return store.db.$count(passkeys, eq(passkeys.userId, userId))
}

/** The user handle for new passkeys of this user. */
async function handleOf({ store }: Ctx, userId: number): Promise<string> {
  const { db } = store
  await db.insert(passkeyHandles).values({ userId, handle: randomToken() }).onConflictDoNothing().run()
  const row = await db.select().from(passkeyHandles).where(eq(passkeyHandles.userId, userId)).get()
  if (row === undefined) throw new AppError('unauthenticated')
  return row.handle
}

function asDescriptor({ credentialId, transports }: { credentialId: string; transports: string[] }) {
  return { id: credentialId, transports: transports.filter(isTransport) }
}

const TRANSPORTS: readonly string[] = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

function isTransport(name: string): name is AuthenticatorTransport {
  return TRANSPORTS.includes(name)
}

// The schemas limit what the library reads; it checks the rest itself, and refuses what it does not know.
function asRegistration(response: z.infer<typeof registrationSchema>): RegistrationResponseJSON {
  const { clientDataJSON, attestationObject } = response.response
  const { id, rawId, type } = response
  return { id, rawId, type, clientExtensionResults: {}, response: { clientDataJSON, attestationObject } }
}

function asAssertion(response: z.infer<typeof assertionSchema>): AuthenticationResponseJSON {
  const { clientDataJSON, authenticatorData, signature } = response.response
  const { id, rawId, type } = response
  return { id, rawId, type, clientExtensionResults: {}, response: { clientDataJSON, authenticatorData, signature } }
}

/** Stores a challenge in the browser, sealed in a cookie. The service stores nothing. */
async function handOut(
  c: Context,
  ctx: Ctx,
  purpose: Purpose,
  userId: number | null,
  challenge: string,
): Promise<void> {
  const content: z.infer<typeof challengeSchema> = { challenge, purpose, userId, expiresAt: ctx.now() + LIFETIME_MS }
  const sealed = await seal(ctx.config.SESSION_SECRET, LABEL, JSON.stringify(content))
  const { name, options } = ownCookie(c, ctx, 'mesh_passkey', 'Strict')
  setCookie(c, name, sealed, { ...options, maxAge: LIFETIME_MS / 1000 })
}

/**
 * The user whose passkey an answer claims to come from, if this browser was asked for any user's passkey; null: nobody,
 * or the answer is invalid.
 */
export async function claimedOwner(
  c: Context,
  ctx: Ctx,
  response: z.infer<typeof assertionSchema>,
): Promise<number | null> {
  const content = await presented(c, ctx)
  if (content === null || !isValid(ctx, content, 'enter', null)) return null
  const own = eq(passkeys.credentialId, response.id)
  return (await ctx.store.db.select({ userId: passkeys.userId }).from(passkeys).where(own).get())?.userId ?? null
}

/** The purpose for which the browser was asked for a passkey; null: none. */
export async function askedPurpose(c: Context, ctx: Ctx): Promise<string | null> {
  return (await presented(c, ctx))?.purpose ?? null
}

async function presented(c: Context, ctx: Ctx): Promise<z.infer<typeof challengeSchema> | null> {
  const sealed = getCookie(c, ownCookie(c, ctx, 'mesh_passkey').name)
  const text = sealed === undefined ? null : await unseal(ctx.config.SESSION_SECRET, LABEL, sealed)
  return text === null ? null : challengeSchema.parse(JSON.parse(text))
}

/**
 * The challenge that this browser was given for this purpose; null without one. It is valid once across all instances.
 */
async function take(c: Context, ctx: Ctx, purpose: Purpose, userId: number | null): Promise<string | null> {
  const content = await presented(c, ctx)
  if (content === null) return null
  const { name, options } = ownCookie(c, ctx, 'mesh_passkey', 'Strict')
  deleteCookie(c, name, options)
  if (!isValid(ctx, content, purpose, userId)) return null
  const { count: uses } = await ctx.sessions.hit(`passkey:used:${content.challenge}`, LIFETIME_MS, ctx.now())
  return uses === 1 ? content.challenge : null
}

function isValid(
  { now }: Ctx,
  content: z.infer<typeof challengeSchema>,
  purpose: Purpose,
  userId: number | null,
): boolean {
  const left = content.expiresAt - now()
  return content.purpose === purpose && content.userId === userId && left > 0 && left <= LIFETIME_MS
}
