import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { isNameOf, namesOf } from '../../../shared/names.ts'
import { ACCOUNT_EVENTS, type Fact } from '../facts.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type LogEntry } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const signInSchema = z.strictObject({ kind: z.literal('sign_in'), ...common }).meta({
  id: 'SignInRule',
  description: "A sign-in from a new address or by a new browser, or a new password or API token, of the rule's owner",
})

export const signIn = defineKind(signInSchema, {
  requires: ALERT_NEEDS.sign_in,
  logged: { actions: namesOf(ACCOUNT_EVENTS), tell },
  preview: async () => ({ fires: [], note: said('The audit log shows what happened to your account.') }),
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

async function tell(store: Store, entry: LogEntry): Promise<Fact | null> {
  const { action, ip, details } = entry
  if (!isNameOf(ACCOUNT_EVENTS, action)) return null
  if (action === 'login_success' && (await isFamiliar(store, entry))) return null
  return { event: 'account', action, ip, browser: browserIn(details) }
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
