import { and, asc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { alertDeliveries, alertDestinations, users } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import {
  DESTINATION_KIND_NAMES,
  type DestinationKind,
  fieldsOf,
  HIDDEN,
} from '../../../shared/alerts/destination-kinds.ts'
import { MAX_DESTINATIONS } from '../../../shared/alerts/alert-kinds.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../context.ts'
import type { BucketSize } from '../../http/limits/buckets.ts'
import { timeField } from '../../http/fields.ts'
import { AppError } from '../../http/errors.ts'
import { demandFreshProof } from '../../auth/fresh-proof.ts'
import { plainName } from '../names.ts'
import { testMessage } from '../outbox/outbox.ts'
import { isConfirmToken } from './confirm-token.ts'
import { attempt } from './send.ts'
import { KINDS } from './kinds.ts'

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
    settings: z.record(z.string(), z.string().nullable()).describe(`${HIDDEN}: a secret that is set`),
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
  }
})

type Row = typeof alertDestinations.$inferSelect
type Found = { readonly row: Row; readonly username: string }

export async function listDestinations({ store, viewer }: SignedInCtx, isAll: boolean) {
  const { all, own } = queries(store)
  const rows = isAll ? await all.all() : await own.all({ ownerId: viewer.user.id })
  return { destinations: rows.map(publicDestination), maxDestinations: MAX_DESTINATIONS }
}

function publicDestination({ row, username }: Found): z.infer<typeof destinationSchema> {
  const { id, kind, name, enabled, confirmedAt, lastResult, lastAt, createdAt, ownerId } = row
  return {
    id,
    kind,
    name,
    enabled,
    confirmed: confirmedAt !== null,
    settings: publicSettings(row),
    lastResult,
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

/** Those of the viewer, and for administrators those of all. Throws `destination_not_found`. */
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

/** Confirmation e-mails of one user: they go to addresses that somebody may have invented. */
const LETTERS: BucketSize = { most: 5, everyMs: 12 * 60_000 }
const TESTS: BucketSize = { most: 10, everyMs: 60_000 }

async function take({ buckets, viewer, now }: SignedInCtx, name: string, size: BucketSize): Promise<void> {
  const waitMs = await buckets.take(`alerts:${name}:${viewer.user.id}`, size, now())
  const retryAfter = Math.ceil(waitMs / 1000)
  if (waitMs > 0)
    throw new AppError('rate_limited', `Too many of these requests; try again in ${retryAfter} s`, { retryAfter })
}

/**
 * Throws `too_many_destinations`, `invalid_request`, `email_disabled`, `rate_limited` for too many confirmation
 * e-mails. A webhook without a secret gets one, which is returned once.
 */
export async function createDestination(ctx: SignedInCtx, input: z.infer<typeof newDestinationSchema>) {
  const { kind, name, enabled } = input
  const { store, viewer } = ctx
  if (kind === 'email' && ctx.mail === null) {
    throw new AppError('email_disabled', 'SMTP_URL is not set, or this runtime cannot send e-mail')
  }
  const secret = kind === 'webhook' && input.settings['secret'] === undefined ? newSecret() : null
  const given = secret === null ? input.settings : { ...input.settings, secret }
  const settings = JSON.stringify(checkSettings(kind, given))
  if (kind === 'email') await take(ctx, 'letters', LETTERS)
  const now = ctx.now()
  const uid = crypto.randomUUID()
  const ownerId = viewer.user.id
  const confirmedAt = kind === 'email' ? null : now
  await store.atomic([
    store.db.insert(alertDestinations).select(
      sql`select null, ${uid}, ${ownerId}, ${name}, ${kind}, ${Number(enabled)}, ${settings}, ${confirmedAt}, 0, null, null, null, ${now}, ${now}
        where (select count(*) from ${alertDestinations} where owner_id = ${ownerId}) < ${MAX_DESTINATIONS}`,
    ),
    audit(
      ctx,
      'alert_destination_updated',
      {
        destinationId: sql`(select id from alert_destinations where uid = ${uid})`,
        name,
        kind,
        before: null,
        after: { name, kind, enabled },
      },
      { onlyIfChanged: true },
    ),
    ...(kind === 'email' ? [confirmLetter(ctx, uid, now)] : []),
  ])
  const made = await queries(store).byUid.get({ uid })
  if (made === undefined)
    throw new AppError('too_many_destinations', `At most ${MAX_DESTINATIONS} destinations are possible`)
  return { destination: publicDestination(made), secret }
}

function confirmLetter({ store }: SignedInCtx, uid: string, now: number) {
  return store.db.insert(alertDeliveries).select(
    sql`select null, 'msg_' || lower(hex(randomblob(16))), id, owner_id, null, 'confirm', 'waiting', ${now}, ${now}, 0, null, null, null
      from ${alertDestinations} where uid = ${uid}`,
  )
}

function newSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`
}

/** Throws `destination_not_found`, `invalid_request`. Another address needs its secrets and its confirmation again. */
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
  if (isNewAddress) await take(ctx, 'letters', LETTERS)
  if (!hasNewSettings && after.name === row.name && after.enabled === row.enabled) return publicDestination(before)
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
      })
      .where(eq(alertDestinations.id, id)),
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
  ])
  return publicDestination(await findDestination(ctx, id, 'own'))
}

/** A secret goes only to the server that it was entered for: another server needs it again. */
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

/** Deletes its messages too. Administrators may delete any destination, with a fresh proof. Throws `destination_not_found`. */
export async function deleteDestination(ctx: SignedInCtx, id: number): Promise<void> {
  const { row, username } = await findDestination(ctx, id, 'any')
  const { name, kind, enabled } = row
  if (row.ownerId !== ctx.viewer.user.id) await demandFreshProof(ctx)
  await ctx.store.atomic([
    ctx.store.db.delete(alertDestinations).where(eq(alertDestinations.id, id)),
    audit(
      ctx,
      'alert_destination_updated',
      { destinationId: id, owner: username, name, kind, before: { name, kind, enabled }, after: null },
      { onlyIfChanged: true },
    ),
  ])
}

/**
 * Sends a test now, and returns the result. Throws `destination_not_found`, `destination_unconfirmed`, `rate_limited`.
 */
export async function testDestination(ctx: SignedInCtx, id: number): Promise<{ ok: boolean; result: string }> {
  const { row } = await findDestination(ctx, id, 'own')
  if (row.confirmedAt === null) throw new AppError('destination_unconfirmed', 'Follow the link in the e-mail first')
  await take(ctx, 'tests', TESTS)
  const uid = `msg_${crypto.randomUUID().replaceAll('-', '')}`
  const message = testMessage({ uid, told: 'test', at: ctx.now(), publicUrl: ctx.config.PUBLIC_URL })
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
  return { ok, result }
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
  return publicDestination(await findDestination(ctx, id, 'own'))
}
