import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import type { AuditAction } from '../../../shared/access/audit-actions.ts'
import { isNameOf, namesOf } from '../../../shared/names.ts'
import { common } from './fields.ts'
import { defineKind, type LogEntry } from './kind.ts'

const signInSchema = z.strictObject({ kind: z.literal('sign_in'), ...common }).meta({
  id: 'SignInRule',
  description: "A sign-in from a new address or by a new browser, or a new password or API token, of the rule's owner",
})

/** The audit actions that are reported to the owner of an account, and their texts. */
const ACTIONS = {
  login_success: 'Somebody signed in to your account from an address or a browser not seen before',
  password_changed: 'Your password was changed',
  password_reset: 'An administrator reset your password',
  second_factor_added: 'A second factor was added to your account',
  second_factor_removed: 'A second factor of your account was removed',
  second_factor_reset: 'An administrator removed your second factors',
  token_created: 'An API token was created in your name',
  token_revoked: 'One of your API tokens was revoked',
  alert_destination_updated: 'A destination of your alerts was added, changed or deleted',
  alert_destinations_held: 'The destinations of your alerts are held until you have looked at them',
} as const satisfies Partial<Record<AuditAction, string>>

export const signIn = defineKind(signInSchema, {
  requires: [],
  logged: { actions: namesOf(ACTIONS), tell },
  preview: async () => ({ fires: [], note: 'The audit log shows what happened to your account.' }),
})

const EARLIER_SIGN_IN = sql`user_id = ${sql.placeholder('userId')} and action = 'login_success'
  and id < ${sql.placeholder('id')}`

const queries = prepareOnce((db) => ({
  seenFrom: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and ip is ${sql.placeholder('ip')}`)
    .limit(1)
    .prepare(),
  seenBy: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and details ->> 'browser' = ${sql.placeholder('browser')}`)
    .limit(1)
    .prepare(),
  seenByAny: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${EARLIER_SIGN_IN} and details ->> 'browser' is not null`)
    .limit(1)
    .prepare(),
}))

async function tell(store: Store, entry: LogEntry): Promise<string | null> {
  const { action, ip, details } = entry
  if (!isNameOf(ACTIONS, action)) return null
  if (action === 'login_success' && (await isFamiliar(store, entry))) return null
  const by = [ip, browserIn(details)].filter((part) => part !== null).join(', ')
  return by === '' ? ACTIONS[action] : `${ACTIONS[action]} (${by})`
}

/** Whether both the address and the browser of a sign-in were seen before. */
async function isFamiliar(store: Store, { userId, id, ip, details }: LogEntry): Promise<boolean> {
  const { seenFrom, seenBy, seenByAny } = queries(store)
  if ((await seenFrom.get({ userId, id, ip })) === undefined) return false
  const browser = browserIn(details)
  if (browser === null || (await seenBy.get({ userId, id, browser })) !== undefined) return true
  // As long as no browser was ever recorded, it is unknown which ones are new.
  return (await seenByAny.get({ userId, id })) === undefined
}

function browserIn(details: string): string | null {
  const { browser } = Object(JSON.parse(details))
  return typeof browser === 'string' ? browser : null
}
