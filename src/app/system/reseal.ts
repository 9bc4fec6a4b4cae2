import { and, asc, eq, gt, isNotNull, like, sql } from 'drizzle-orm'
import { alertPushKeys, accountLetters, connections, providerSessions, settings, totpFactors } from '../../db/schema.ts'
import type { Db } from '../../db/store.ts'
import { PUSH_KEYS_LABEL } from '../alerts/destinations/push-keys.ts'
import type { Ports } from '../base/context.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { connectionLabel } from '../connections/label.ts'
import { seedLabel } from '../accounts/factors/totp.ts'
import { linkLabel } from '../accounts/mail/letters.ts'
import { idTokenLabel } from '../accounts/oidc/ending.ts'
import { seal, unseal } from '../base/sealing.ts'
import { RESTORED_ACCESS_KEYS } from './backup/settings.ts'

/** Rows of one slice. Each decryption derives keys, which takes about a tenth of a millisecond. */
export const SLICE = 50

type Sealed<K> = { readonly key: K; readonly sealed: string | null }

/** A column of sealed text: how to read its rows after a key, the label of each, and how to replace one. */
export type Kind<K extends string | number, R extends Sealed<K> = Sealed<K>> = {
  readonly first: K
  readonly read: (db: Db, after: K) => Promise<R[]>
  readonly label: (row: R) => string
  readonly write: (db: Db, key: K, text: { readonly before: string; readonly after: string }) => Promise<unknown>
}

const SEEDS: Kind<number> = {
  first: 0,
  read: async (db, after) =>
    db
      .select({ key: totpFactors.userId, sealed: totpFactors.seed })
      .from(totpFactors)
      .where(gt(totpFactors.userId, after))
      .orderBy(asc(totpFactors.userId))
      .limit(SLICE)
      .all(),
  label: ({ key }) => seedLabel(key),
  // Replaces only the value that was read, because the user may have set up another app meanwhile.
  write: async (db, key, { before, after }) =>
    db
      .update(totpFactors)
      .set({ seed: after })
      .where(and(eq(totpFactors.userId, key), eq(totpFactors.seed, before)))
      .run(),
}

const ID_TOKENS: Kind<string> = {
  first: '',
  read: async (db, after) =>
    db
      .select({ key: providerSessions.tokenHash, sealed: providerSessions.idToken })
      .from(providerSessions)
      .where(and(gt(providerSessions.tokenHash, after), isNotNull(providerSessions.idToken)))
      .orderBy(asc(providerSessions.tokenHash))
      .limit(SLICE)
      .all(),
  label: ({ key }) => idTokenLabel(key),
  write: async (db, key, { before, after }) =>
    db
      .update(providerSessions)
      .set({ idToken: after })
      .where(and(eq(providerSessions.tokenHash, key), eq(providerSessions.idToken, before)))
      .run(),
}

const LINKS: Kind<string> = {
  first: '',
  read: async (db, after) =>
    db
      .select({ key: accountLetters.uid, sealed: accountLetters.sealed })
      .from(accountLetters)
      .where(and(gt(accountLetters.uid, after), isNotNull(accountLetters.sealed)))
      .orderBy(asc(accountLetters.uid))
      .limit(SLICE)
      .all(),
  label: ({ key }) => linkLabel(key),
  write: async (db, key, { before, after }) =>
    db
      .update(accountLetters)
      .set({ sealed: after })
      .where(and(eq(accountLetters.uid, key), eq(accountLetters.sealed, before)))
      .run(),
}

const PUSH_KEYS: Kind<number> = {
  first: 0,
  read: async (db, after) =>
    db
      .select({ key: alertPushKeys.id, sealed: alertPushKeys.sealed })
      .from(alertPushKeys)
      .where(gt(alertPushKeys.id, after))
      .orderBy(asc(alertPushKeys.id))
      .limit(SLICE)
      .all(),
  label: () => PUSH_KEYS_LABEL,
  write: async (db, key, { before, after }) =>
    db
      .update(alertPushKeys)
      .set({ sealed: after })
      .where(and(eq(alertPushKeys.id, key), eq(alertPushKeys.sealed, before)))
      .run(),
}

const CONNECTIONS: Kind<string> = {
  first: '',
  read: async (db, after) =>
    db
      .select({ key: connections.name, sealed: connections.sealed })
      .from(connections)
      .where(and(gt(connections.name, after), isNotNull(connections.sealed)))
      .orderBy(asc(connections.name))
      .limit(SLICE)
      .all(),
  label: ({ key }) => connectionLabel(key),
  write: async (db, key, { before, after }) =>
    db
      .update(connections)
      .set({ sealed: after })
      .where(and(eq(connections.name, key), eq(connections.sealed, before)))
      .run(),
}

const SEED_TO_REAPPLY = sql<string>`json_extract(${settings.value}, '$.undone.to.seed')`

/** Apps that a restore replaced with earlier ones, until an administrator decides. */
const REPLACED_SEEDS: Kind<string, Sealed<string> & { readonly userId: number }> = {
  first: '',
  read: async (db, after) =>
    db
      .select({
        key: settings.key,
        sealed: SEED_TO_REAPPLY,
        userId: sql<number>`json_extract(${settings.value}, '$.userId')`,
      })
      .from(settings)
      .where(and(gt(settings.key, after), like(settings.key, RESTORED_ACCESS_KEYS), isNotNull(SEED_TO_REAPPLY)))
      .orderBy(asc(settings.key))
      .limit(SLICE)
      .all(),
  label: ({ userId }) => seedLabel(userId),
  write: async (db, key, { before, after }) =>
    db
      .update(settings)
      .set({ value: sql`json_set(${settings.value}, '$.undone.to.seed', ${after})` })
      .where(and(eq(settings.key, key), eq(SEED_TO_REAPPLY, before)))
      .run(),
}

type Needs = Pick<Ports, 'store' | 'config' | 'log' | 'connecting'>

/** Seals further columns anew. Whether it reached the end. */
export type Also = (reseal: (kind: Kind<string>) => Promise<boolean>) => Promise<boolean>

/**
 * Seals all text in the database that was sealed under other secrets of SESSION_SECRET again under the first one, and
 * logs when the others are no longer needed. Does nothing with one secret. If `pause` ends it early, the next call
 * starts over.
 */
export async function resealAll(needs: Needs, pause: Pause, also: Also = async () => true): Promise<void> {
  if (needs.config.SESSION_SECRET.length < 2) return
  const found = { resealed: 0, unreadable: 0 }
  const isDone =
    (await resealKind(needs, SEEDS, found, pause)) &&
    (await resealKind(needs, ID_TOKENS, found, pause)) &&
    (await resealKind(needs, LINKS, found, pause)) &&
    (await resealKind(needs, PUSH_KEYS, found, pause)) &&
    (needs.connecting === null || (await resealKind(needs, CONNECTIONS, found, pause))) &&
    (await also((kind) => resealKind(needs, kind, found, pause))) &&
    (await resealKind(needs, REPLACED_SEEDS, found, pause))
  if (!isDone) return
  needs.log.info('The database needs only the first secret of SESSION_SECRET: the others can be removed', found)
}

/** Whether it reached the end. */
async function resealKind<K extends string | number, R extends Sealed<K>>(
  { store, config }: Needs,
  kind: Kind<K, R>,
  found: { resealed: number; unreadable: number },
  pause: Pause,
): Promise<boolean> {
  const [first = '', ...earlier] = config.SESSION_SECRET
  for (let after = kind.first; ;) {
    const rows = await kind.read(store.db, after)
    for (const row of rows) {
      const { key, sealed } = row
      after = key
      const label = kind.label(row)
      if (sealed === null || (await unseal([first], label, sealed)) !== null) continue
      const text = await unseal(earlier, label, sealed)
      if (text === null) {
        found.unreadable++
        continue
      }
      await kind.write(store.db, key, { before: sealed, after: await seal([first], label, text) })
      found.resealed++
    }
    if (rows.length < SLICE) return true
    if (!(await pause())) return false
  }
}
