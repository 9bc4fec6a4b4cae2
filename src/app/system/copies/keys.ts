import { Encrypter } from 'age-encryption'
import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { MAX_RECIPIENTS } from '../../../shared/copies.ts'
import { MAX_KEY_NAME } from '../../../shared/limits.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { timeField } from '../../http/fields.ts'

const recipientField = z
  .string()
  .regex(/^age1[02-9ac-hj-np-z]{58}$/, 'a public key of age, such as age1…')
  .refine(isRecipient, 'a public key of age without typing errors')
  .describe('A public key of age (X25519). It encrypts, and cannot decrypt')

function isRecipient(text: string): boolean {
  try {
    new Encrypter().addRecipient(text)
    return true
  } catch {
    return false
  }
}

export const recipientsSchema = z.strictObject({
  recipients: z
    .array(z.strictObject({ recipient: recipientField, name: z.string().trim().min(1).max(MAX_KEY_NAME) }))
    .max(MAX_RECIPIENTS)
    .refine((all) => new Set(all.map(({ recipient }) => recipient)).size === all.length, 'each key only once'),
})

export const keysSchema = z.object({
  recipients: z
    .array(z.object({ recipient: z.string(), name: z.string(), addedAt: timeField }))
    .describe('Each of their private keys opens all copies that are made from then on'),
  drill: z
    .object({ at: timeField, by: z.string() })
    .nullable()
    .describe('When somebody last restored a copy on another machine, and said so'),
})

export type CopyKeys = z.infer<typeof keysSchema>

/** With the prefix of the other settings of backups, which the general list leaves out. */
export const COPY_KEYS_KEY = 'backup.copies'
const NONE: CopyKeys = { recipients: [], drill: null }

export async function readCopyKeys({ db }: Store): Promise<CopyKeys> {
  const row = await db.select({ value: settings.value }).from(settings).where(eq(settings.key, COPY_KEYS_KEY)).get()
  const read = row === undefined ? null : keysSchema.safeParse(JSON.parse(row.value))
  return read?.success === true ? read.data : NONE
}

/**
 * Replaces the recipients; copies that were made before keep theirs. Decision:
 * docs/decisions/copies-have-no-passphrase.md
 */
export async function replaceRecipients(
  ctx: SignedInCtx,
  wanted: z.infer<typeof recipientsSchema>['recipients'],
): Promise<void> {
  const before = await readCopyKeys(ctx.store)
  const now = ctx.now()
  const since = new Map(before.recipients.map(({ recipient, addedAt }) => [recipient, addedAt]))
  const recipients = wanted.map((one) => ({ ...one, addedAt: since.get(one.recipient) ?? now }))
  if (JSON.stringify(recipients) === JSON.stringify(before.recipients)) return
  await ctx.store.atomic([
    put(ctx.store, 'recipients', recipients, now),
    audit(ctx, 'backup_copies_updated', {
      before: { recipients: before.recipients.map(named) },
      after: { recipients: recipients.map(named) },
    }),
  ])
  ctx.copies?.wake()
}

const named = ({ name, recipient }: { readonly name: string; readonly recipient: string }) => `${name}: ${recipient}`

/** Notes that somebody has restored a copy on another machine. */
export async function noteDrill(ctx: SignedInCtx): Promise<void> {
  const now = ctx.now()
  const drill = { at: now, by: ctx.viewer.user.username }
  await ctx.store.atomic([
    put(ctx.store, 'drill', drill, now),
    audit(ctx, 'backup_copies_updated', { after: { drill: 'done' } }),
  ])
}

/** Replaces one field, whatever somebody else writes to the other at the same time. */
function put({ db }: Store, field: 'recipients' | 'drill', value: unknown, now: number) {
  const json = JSON.stringify(value)
  return db
    .insert(settings)
    .values({ key: COPY_KEYS_KEY, value: JSON.stringify({ ...NONE, [field]: value }), updatedAt: now })
    .onConflictDoUpdate({
      target: settings.key,
      set: { value: sql`json_set(${settings.value}, ${`$.${field}`}, json(${json}))`, updatedAt: now },
    })
}
