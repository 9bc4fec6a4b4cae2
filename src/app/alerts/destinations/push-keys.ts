import * as z from 'zod'
import { alertPushKeys } from '../../../db/schema.ts'
import { seal, unseal } from '../../base/sealing.ts'
import type { Ports } from '../../base/context.ts'

/** The label under which the keys are sealed. */
export const PUSH_KEYS_LABEL = 'push-keys'

const keysSchema = z.strictObject({ publicKey: z.string(), privateKey: z.string() })
export type PushKeys = z.infer<typeof keysSchema>

export type PushNeeds = Pick<Ports, 'store' | 'config' | 'now'>

/**
 * The keys that identify this service to push services (VAPID, RFC 8292), base64url: created once, and again when
 * SESSION_SECRET no longer decrypts them. Several processes that create them simultaneously get the same ones.
 */
export async function readPushKeys(needs: PushNeeds): Promise<PushKeys> {
  const kept = await keptKeys(needs)
  if (kept !== null) return kept
  const { store, config, now } = needs
  const { sealed: before } = (await store.db.select().from(alertPushKeys).get()) ?? { sealed: null }
  const sealed = await seal(config.SESSION_SECRET, PUSH_KEYS_LABEL, JSON.stringify(await makeKeys()))
  const insert = store.db.insert(alertPushKeys).values({ id: 1, sealed, createdAt: now() })
  await store.atomic([
    before === null
      ? insert.onConflictDoNothing()
      : insert.onConflictDoUpdate({ target: alertPushKeys.id, set: { sealed, createdAt: now() } }),
  ])
  const made = await keptKeys(needs)
  if (made === null) throw new Error('the new keys for push services cannot be read')
  return made
}

/** Push services require a contact. This one is for a service without a public address. */
const SUBJECT = 'mailto:nobody@localhost.localdomain'

/** The keys, and the contact for a push service. */
export async function readPushIdentity(needs: PushNeeds) {
  const { PUBLIC_URL: url } = needs.config
  return { keys: await readPushKeys(needs), subject: url?.startsWith('https:') === true ? url : SUBJECT }
}

async function keptKeys({ store, config }: PushNeeds): Promise<PushKeys | null> {
  const row = await store.db.select().from(alertPushKeys).get()
  const text = row === undefined ? null : await unseal(config.SESSION_SECRET, PUSH_KEYS_LABEL, row.sealed)
  return text === null ? null : keysSchema.parse(JSON.parse(text))
}

async function makeKeys(): Promise<PushKeys> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
  const raw = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))
  const { d } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  if (d === undefined) throw new Error('a private key without its number')
  const publicKey = btoa(String.fromCharCode(...raw))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
  return { publicKey, privateKey: d }
}
