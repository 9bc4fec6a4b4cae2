import { and, asc, eq, isNotNull, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertDeliveries, alertDestinations, users } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement } from '../../../db/store.ts'
import {
  DESTINATION_KIND_NAMES,
  type DestinationKind,
  fieldsOf,
  HELD_FOR,
  HIDDEN,
} from '../../../shared/alerts/destination-kinds.ts'
import { MAX_DESTINATIONS } from '../../../shared/alerts/alert-kinds.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { audit } from '../../audit/audit.ts'
import { sha256Hex } from '../../base/crypto.ts'
import type { SignedInCtx, Viewer } from '../../base/context.ts'
import type { BucketSize } from '../../http/limits/buckets.ts'
import { timeField } from '../../http/fields.ts'
import { AppError } from '../../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { isUnchanged } from '../../accounts/factors/unchanged.ts'
import { demandFreshProof } from '../../accounts/fresh-proof.ts'
import { stillAdmin } from '../../accounts/users/still-admin.ts'
import { getUser } from '../../accounts/users/users.ts'
import { plainName } from '../names.ts'
import { NEW_DELIVERY, NEW_TO_DESTINATION } from '../new-delivery.ts'
import { testMessage } from '../notification.ts'
import { isConfirmToken } from './confirm-token.ts'
import { attempt } from './send.ts'
import { hostOf } from './host.ts'
import { KINDS } from './kinds.ts'
import { wordsFor } from '../../words/reader.ts'
import { said } from '../../words/words.ts'

const settingsSchema = z
  .record(z.string().max(40), z.string().max(4096))
  .describe('By field; secrets are never returned')

export const newDestinationSchema = z.strictObject({
  kind: z.enum(DESTINATION_KIND_NAMES),
  name: plainName,
  enabled: z.boolean().default(true),
  settings: settingsSchema,
})

export const destinationChangesSchema = z.strictObject({
  name: plainName.optional(),
  enabled: z.boolean().optional(),
  settings: settingsSchema.optional().describe(`A secret that is missing or ${HIDDEN} is kept`),
})

export const destinationSchema = z
  .object({
    id: z.int(),
    kind: z.enum(DESTINATION_KIND_NAMES),
    name: z.string(),
    enabled: z.boolean().describe('Also false after the receiver reported that it is gone'),
    confirmed: z.boolean().describe('false: nothing is sent until the link in the e-mail has been followed'),
    host: z.string().nullable().describe('Host of the receiver; for an e-mail address its domain'),
    settings: z
      .record(z.string(), z.string().nullable())
      .nullable()
      .describe(`${HIDDEN}: a secret that is set. null: a destination of another user`),
    heldAt: timeField.nullable().describe('Since then nothing is sent, until its owner has looked at it'),
    heldFor: z.enum(HELD_FOR).nullable().describe('After what it is held'),
    newsAt: timeField
      .nullable()
      .describe(
        'When it was created or got another address. null after its owner has confirmed that, and in the session that did it',
      ),
    lastResult: z.string().nullable(),
    lastAt: timeField.nullable(),
    createdAt: timeField,
    owner: z.object({ id: z.int(), username: z.string() }),
  })
  .meta({ id: 'AlertDestination', description: 'Where alerts are sent' })

const columns = { row: alertDestinations, username: users.username }
const value = sql.placeholder

const queries = prepareOnce((db) => {
  const joined = () =>
    db.select(columns).from(alertDestinations).innerJoin(users, eq(users.id, alertDestinations.ownerId))
  return {
    all: joined().orderBy(asc(alertDestinations.id)).limit(1000).prepare(),
    own: joined()
      .where(eq(alertDestinations.ownerId, value('ownerId')))
      .orderBy(asc(alertDestinations.id))
      .prepare(),
    byId: joined()
      .where(eq(alertDestinations.id, value('id')))
      .prepare(),
    byUid: joined()
      .where(eq(alertDestinations.uid, value('uid')))
      .prepare(),
    // One message reports everything that is new when it is sent.
    tellOthers: insertSelect(
      db,
      alertDeliveries,
      {
        ...NEW_TO_DESTINATION,
        notification: 'destination',
        createdAt: value('now'),
        dueAt: value('now'),
      },
      sql`from alert_destinations made join alert_destinations d on d.owner_id = made.owner_id and d.id <> made.id
            and d.enabled and d.confirmed_at is not null and d.held_at is null
          where made.uid = ${value('uid')} and not exists (select 1 from alert_deliveries o
            where o.destination_id = d.id and o.notification = 'destination' and o.state = 'waiting' and o.attempts = 0)`,
    ).prepare(),
  }
})

type Row = typeof alertDestinations.$inferSelect
type Found = { readonly row: Row; readonly username: string }

export async function listDestinations(ctx: SignedInCtx, isAll: boolean) {
  const { all, own } = queries(ctx.store)
  const rows = isAll ? await all.all() : await own.all({ ownerId: ctx.viewer.user.id })
  return {
    destinations: await Promise.all(rows.map((found) => publicDestination(ctx, found))),
    maxDestinations: MAX_DESTINATIONS,
  }
}

/** The destinations of a user, for administrators. Throws `user_not_found`. */
export async function listDestinationsOf(ctx: SignedInCtx, userId: number) {
  await getUser(ctx.store, userId)
  const rows = await queries(ctx.store).own.all({ ownerId: userId })
  return { destinations: await Promise.all(rows.map((found) => publicDestination(ctx, found))) }
}

/** Identifies the viewer's session by its beginning, because a fresh proof changes its token. */
function sessionOf({ credential }: Viewer): number | null {
  return credential.kind === 'session' ? credential.session.createdAt : null
}

async function publicDestination(
  ctx: SignedInCtx,
  { row, username }: Found,
): Promise<z.infer<typeof destinationSchema>> {
  const { viewer } = ctx
  const words = await wordsFor(ctx)
  const { id, kind, name, enabled, confirmedAt, lastResult, lastAt, createdAt, ownerId, heldAt, heldFor } = row
  const isOwn = ownerId === viewer.user.id
  return {
    id,
    kind,
    name,
    enabled,
    confirmed: confirmedAt !== null,
    host: hostOf(kind, storedSettings(row)),
    settings: isOwn ? publicSettings(row) : null,
    heldAt,
    heldFor,
    newsAt: isOwn && row.newsSession === sessionOf(viewer) ? null : row.newsAt,
    lastResult: lastResult === null ? null : words.translate(lastResult),
    lastAt,
    createdAt,
    owner: { id: ownerId, username },
  }
}

function storedSettings({ settings }: Pick<Row, 'settings'>): Readonly<Record<string, string>> {
  return settingsSchema.safeParse(JSON.parse(settings)).data ?? {}
}

function publicSettings(row: Pick<Row, 'kind' | 'settings'>): Record<string, string | null> {
  const stored = storedSettings(row)
  return Object.fromEntries(
    fieldsOf(row.kind).map(([name, { secret }]) => {
      const given = stored[name]
      return [name, given === undefined ? null : secret === true ? HIDDEN : given]
    }),
  )
}

/** Finds one of the viewer's destinations, or for administrators any. Throws `destination_not_found`. */
async function findDestination({ store, viewer }: SignedInCtx, id: number, whose: 'own' | 'any'): Promise<Found> {
  const found = await queries(store).byId.get({ id })
  const isVisible = found?.row.ownerId === viewer.user.id || (whose === 'any' && viewer.user.isAdmin)
  if (found === undefined || !isVisible) throw new AppError('destination_not_found')
  return found
}

function checkSettings(kind: DestinationKind, settings: Readonly<Record<string, string>>): object {
  const result = KINDS[kind].settings.safeParse(settings)
  if (result.success) return result.data
  const issues = result.error.issues.map(({ path, message }) => ({
    path: ['settings', ...path].map(String).join('.'),
    message,
  }))
  throw new AppError('invalid_request', issues.map(({ path, message }) => `${path}: ${message}`).join('; '), { issues })
}

/** The limit for confirmation e-mails requested by one user, because they go to addresses that may be made up. */
const LETTERS: BucketSize = { most: 5, everyMs: DAY_MS / 5 }
/** The limit for one address, whoever requests them. Otherwise each user could send their share to it. */
const LETTERS_TO_ADDRESS: BucketSize = { most: 3, everyMs: DAY_MS / 3 }
const TESTS: BucketSize = { most: 10, everyMs: 60_000 }

async function take({ buckets, viewer, now }: SignedInCtx, name: string, size: BucketSize): Promise<void> {
  refuseLater(await buckets.take(`alerts:${name}:${viewer.user.id}`, size, now()))
}

/** Counts a confirmation e-mail for its recipient and for the user who requested it. Throws `rate_limited`. */
async function takeLetter(ctx: SignedInCtx, settings: string): Promise<void> {
  const { address = '' } = storedSettings({ settings })
  const key = `alerts:letters-to:${sha256Hex(address.toLowerCase())}`
  const waitMs = await ctx.buckets.take(key, LETTERS_TO_ADDRESS, ctx.now())
  refuseLater(waitMs)
  try {
    await take(ctx, 'letters', LETTERS)
  } catch (error) {
    await ctx.buckets.giveBack(key, LETTERS_TO_ADDRESS)
    throw error
  }
}

function refuseLater(waitMs: number): void {
  const retryAfter = Math.ceil(waitMs / 1000)
  if (waitMs > 0)
    throw new AppError(
      'rate_limited',
      said('Too many of these requests; try again in {retryAfter} s', { retryAfter }),
      { retryAfter },
    )
}

type NewDestination = { readonly destination: z.infer<typeof destinationSchema>; readonly secret: string | null }

/**
 * Creates a destination. A webhook without a secret gets one, which is returned once: a repeat with the same key gets
 * the destination without it. Throws `too_many_destinations`, `invalid_request`, `email_disabled`, `rate_limited` for
 * too many confirmation e-mails, `idempotency_key_reused`, and `destination_not_found` for a repeat whose destination
 * was deleted.
 */
export async function createDestination(
  ctx: SignedInCtx,
  input: z.infer<typeof newDestinationSchema>,
  keyed: Keyed | null,
): Promise<NewDestination> {
  return createOnce(ctx, keyed, {
    create: (remember) => insertDestination(ctx, input, remember),
    repeat: async (id) => ({
      destination: await publicDestination(ctx, await findDestination(ctx, id, 'own')),
      secret: null,
    }),
  })
}

async function insertDestination(
  ctx: SignedInCtx,
  input: z.infer<typeof newDestinationSchema>,
  remember: Remember,
): Promise<NewDestination> {
  const { kind, name, enabled } = input
  const { store, viewer } = ctx
  if (kind === 'email' && ctx.mail === null) {
    throw new AppError('email_disabled', 'SMTP_URL is not set, or this runtime cannot send e-mail')
  }
  const secret = kind === 'webhook' && input.settings['secret'] === undefined ? newSecret() : null
  const given = secret === null ? input.settings : { ...input.settings, secret }
  const settings = JSON.stringify(checkSettings(kind, given))
  if (kind === 'email') await takeLetter(ctx, settings)
  const now = ctx.now()
  const uid = crypto.randomUUID()
  const ownerId = viewer.user.id
  const confirmedAt = kind === 'email' ? null : now
  const destinationId = sql`(select id from alert_destinations where uid = ${uid})`
  await store.atomic([
    insertSelect(
      store.db,
      alertDestinations,
      {
        uid,
        ownerId,
        name,
        kind,
        enabled,
        settings,
        confirmedAt,
        createdAt: now,
        updatedAt: now,
        newsAt: now,
        newsSession: sessionOf(viewer),
      },
      sql`where (select count(*) from ${alertDestinations} where owner_id = ${ownerId}) < ${MAX_DESTINATIONS}
        and ${stillOwner(ctx)}`,
    ),
    audit(
      ctx,
      'alert_destination_updated',
      {
        destinationId,
        name,
        kind,
        before: null,
        after: { name, kind, host: hostOf(kind, given), enabled },
      },
      { onlyIfChanged: true },
    ),
    ...(kind === 'email' ? [confirmLetter(ctx, uid, now)] : []),
    bind(queries(store).tellOthers, { uid, now }),
    ...remember(destinationId),
  ])
  const made = await queries(store).byUid.get({ uid })
  if (made === undefined) {
    const owned = await store.db.$count(alertDestinations, eq(alertDestinations.ownerId, ownerId))
    if (owned < MAX_DESTINATIONS) throw new AppError('unauthenticated')
    throw new AppError(
      'too_many_destinations',
      said('At most {most} destinations are possible', { most: MAX_DESTINATIONS }),
    )
  }
  return { destination: await publicDestination(ctx, made), secret }
}

/**
 * A simultaneous reset or deactivation wins: destinations that it holds are not changed, and none are added after it.
 */
function stillOwner({ store, viewer: { user, credential } }: SignedInCtx): SQL {
  return credential.kind === 'session'
    ? isUnchanged(store, { userId: user.id, epoch: credential.session.epoch })
    : sql`true`
}

function confirmLetter({ store }: SignedInCtx, uid: string, now: number): Statement {
  const delivery = {
    ...NEW_DELIVERY,
    destinationId: sql`id`,
    ownerId: sql`owner_id`,
    notification: 'confirm',
    createdAt: now,
    dueAt: now,
  } as const
  return insertSelect(store.db, alertDeliveries, delivery, sql`from ${alertDestinations} where uid = ${uid}`)
}

function newSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`
}

/**
 * Changes a destination. A new address or secret needs a fresh proof. A new address also needs its secrets and its
 * confirmation again. Throws `destination_not_found`, `invalid_request`, `reauthentication_required`.
 */
export async function changeDestination(
  ctx: SignedInCtx,
  id: number,
  changes: z.infer<typeof destinationChangesSchema>,
) {
  const { store } = ctx
  const before = await findDestination(ctx, id, 'own')
  const { row } = before
  const { kind } = row
  const after = { name: changes.name ?? row.name, enabled: changes.enabled ?? row.enabled }
  const settings = changes.settings === undefined ? row.settings : JSON.stringify(mergeSettings(row, changes.settings))
  const hasNewSettings = settings !== row.settings
  const isNewAddress = hasNewSettings && kind === 'email'
  if (hasNewSettings) await demandFreshProof(ctx)
  if (isNewAddress) await takeLetter(ctx, settings)
  if (!hasNewSettings && after.name === row.name && after.enabled === row.enabled) return publicDestination(ctx, before)
  const now = ctx.now()
  await store.atomic([
    store.db
      .update(alertDestinations)
      .set({
        ...after,
        settings,
        updatedAt: now,
        failures: 0,
        retryAt: null,
        ...(isNewAddress ? { confirmedAt: null } : {}),
        ...(hasNewSettings ? { newsAt: now, newsSession: sessionOf(ctx.viewer) } : {}),
      })
      .where(and(eq(alertDestinations.id, id), stillOwner(ctx))),
    audit(
      ctx,
      'alert_destination_updated',
      {
        destinationId: id,
        name: row.name,
        kind,
        before: { name: row.name, enabled: row.enabled },
        after: { ...after, ...(hasNewSettings ? { settings: 'changed' } : {}) },
      },
      { onlyIfChanged: true },
    ),
    ...(isNewAddress ? [confirmLetter(ctx, row.uid, now)] : []),
    ...(hasNewSettings ? [bind(queries(store).tellOthers, { uid: row.uid, now })] : []),
  ])
  return publicDestination(ctx, await findDestination(ctx, id, 'own'))
}

/**
 * Marks a destination as reviewed by its owner. If it was held, it is used again. The notice about a new address ends,
 * unless this session entered the address. Throws `destination_not_found`, and `rate_limited` for too many confirmation
 * e-mails.
 */
export async function releaseDestination(ctx: SignedInCtx, id: number) {
  const { row } = await findDestination(ctx, id, 'own')
  const { name, kind, heldFor } = row
  // A confirmation e-mail that was waiting when the destination was held has been dropped.
  const needsLetter = row.heldAt !== null && kind === 'email' && row.confirmedAt === null && ctx.mail !== null
  if (needsLetter) await take(ctx, 'letters', LETTERS)
  const isOwnNews = row.newsSession === sessionOf(ctx.viewer)
  await ctx.store.atomic([
    ctx.store.db
      .update(alertDestinations)
      .set({ heldAt: null, heldFor: null })
      .where(and(eq(alertDestinations.id, id), isNotNull(alertDestinations.heldAt), stillOwner(ctx))),
    audit(
      ctx,
      'alert_destination_updated',
      { destinationId: id, name, kind, before: { held: heldFor }, after: { held: null } },
      { onlyIfChanged: true },
    ),
    // Changes made after the owner read the list are not confirmed by this.
    ...(isOwnNews
      ? []
      : [
          ctx.store.db
            .update(alertDestinations)
            .set({ newsAt: null })
            .where(and(eq(alertDestinations.id, id), sql`news_at is ${row.newsAt}`, stillOwner(ctx))),
        ]),
    ...(needsLetter ? [confirmLetter(ctx, row.uid, ctx.now())] : []),
  ])
  return publicDestination(ctx, await findDestination(ctx, id, 'own'))
}

/** A secret is sent only to the server for which it was entered. For another server it must be entered again. */
function mergeSettings(row: Pick<Row, 'kind' | 'settings'>, given: Readonly<Record<string, string>>): object {
  const stored = storedSettings(row)
  const fields = fieldsOf(row.kind)
  const isHidden = (name: string) => given[name] === undefined || given[name] === HIDDEN
  const { server = stored['server'] } = given
  const kept = fields.filter(([name, { secret }]) => secret === true && isHidden(name) && stored[name] !== undefined)
  const isElsewhere = server !== stored['server']
  const [lost] = kept
  if (isElsewhere && lost !== undefined) {
    const issues = kept.map(([name]) => ({
      path: `settings.${name}`,
      message: 'must be entered again for another server',
    }))
    throw new AppError('invalid_request', `settings.${lost[0]}: must be entered again for another server`, { issues })
  }
  const plain = Object.fromEntries(Object.entries(given).filter(([, text]) => text !== HIDDEN))
  return checkSettings(row.kind, { ...Object.fromEntries(kept.map(([name]) => [name, stored[name] ?? ''])), ...plain })
}

/**
 * Deletes a destination and its messages. Administrators may delete any destination, with a fresh proof. Throws
 * `destination_not_found`.
 */
export async function deleteDestination(ctx: SignedInCtx, id: number): Promise<void> {
  const found = await findDestination(ctx, id, 'any')
  if (found.row.ownerId !== ctx.viewer.user.id) await demandFreshProof(ctx)
  const [first, ...rest] = deletion(ctx, found)
  await ctx.store.atomic([first, ...rest])
}

/** Deletes one destination of a user. Throws `user_not_found`, `destination_not_found`. */
export async function deleteDestinationOf(ctx: SignedInCtx, userId: number, id: number): Promise<void> {
  await getUser(ctx.store, userId)
  const found = await findDestination(ctx, id, 'any')
  if (found.row.ownerId !== userId) throw new AppError('destination_not_found')
  const [first, ...rest] = deletion(ctx, found)
  await ctx.store.atomic([first, ...rest, ...stillAdmin(ctx)])
}

/** Deletes every destination of a user, with an entry for each. Throws `user_not_found`. */
export async function deleteDestinationsOf(ctx: SignedInCtx, userId: number): Promise<void> {
  await getUser(ctx.store, userId)
  const found = await queries(ctx.store).own.all({ ownerId: userId })
  const [first, ...rest] = found.flatMap((one) => deletion(ctx, one))
  if (first !== undefined) await ctx.store.atomic([first, ...rest, ...stillAdmin(ctx)])
}

function deletion(ctx: SignedInCtx, { row, username }: Found): [Statement, Statement] {
  const { id, ownerId, name, kind, enabled } = row
  const details = {
    destinationId: id,
    userId: ownerId,
    owner: username,
    name,
    kind,
    before: { name, kind, host: hostOf(kind, storedSettings(row)), enabled },
    after: null,
  }
  return [
    ctx.store.db.delete(alertDestinations).where(eq(alertDestinations.id, id)),
    audit(ctx, 'alert_destination_updated', details, { onlyIfChanged: true }),
  ]
}

/**
 * Sends a test now, and returns the result. Throws `destination_not_found`, `destination_unconfirmed`,
 * `destination_held`, `rate_limited`.
 */
export async function testDestination(ctx: SignedInCtx, id: number): Promise<{ ok: boolean; result: string }> {
  const { row } = await findDestination(ctx, id, 'own')
  if (row.confirmedAt === null) throw new AppError('destination_unconfirmed', 'Follow the link in the e-mail first')
  if (row.heldAt !== null) throw new AppError('destination_held')
  await take(ctx, 'tests', TESTS)
  const uid = `msg_${crypto.randomUUID().replaceAll('-', '')}`
  const words = await wordsFor(ctx)
  const message = testMessage({ uid, notification: 'test', at: ctx.now(), publicUrl: ctx.config.PUBLIC_URL, words })
  const made = await attempt(
    ctx,
    { kind: row.kind, settings: row.settings, mayBePrivate: ctx.viewer.user.isAdmin },
    message,
  )
  const { ok, result } = made
  const isGone = !made.ok && made.isGone
  await ctx.store.db
    .update(alertDestinations)
    .set({
      lastResult: result,
      lastAt: ctx.now(),
      ...(ok ? { failures: 0, retryAt: null } : {}),
      ...(isGone ? { enabled: false } : {}),
    })
    .where(eq(alertDestinations.id, id))
    .run()
  return { ok, result: words.translate(result) }
}

/** Confirms an address after its owner followed the link. Throws `destination_not_found`, also for a wrong token. */
export async function confirmDestination(ctx: SignedInCtx, id: number, token: string) {
  const { row } = await findDestination(ctx, id, 'own')
  if (row.kind !== 'email' || !(await isConfirmToken(ctx.config, row, token)))
    throw new AppError('destination_not_found')
  const { name, kind } = row
  await ctx.store.atomic([
    ctx.store.db
      .update(alertDestinations)
      .set({ confirmedAt: ctx.now() })
      .where(and(eq(alertDestinations.id, id), sql`confirmed_at is null and settings = ${row.settings}`)),
    audit(
      ctx,
      'alert_destination_updated',
      { destinationId: id, name, kind, before: { confirmed: false }, after: { confirmed: true } },
      { onlyIfChanged: true },
    ),
  ])
  return publicDestination(ctx, await findDestination(ctx, id, 'own'))
}
