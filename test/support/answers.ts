import { expect } from 'vitest'
import { auditRows, type Client, type TestApp } from './app.ts'

/** `200`, or `403 forbidden`: the status and, of a problem, its code. Does not read the answer itself. */
export async function outcomeOf(answer: Response | Promise<Response>): Promise<string> {
  const given = await answer
  if (given.headers.get('content-type') !== 'application/problem+json') return String(given.status)
  return `${given.status} ${Object(await given.clone().json()).code}`
}

/** The actions that are written to the audit log while `during` runs, oldest first. */
export async function auditedBy(app: TestApp, during: () => Promise<unknown>): Promise<string[]> {
  const before = auditRows(app).length
  await during()
  return auditRows(app)
    .slice(before)
    .map(({ action }) => action)
}

/** Anonymous, a regular user, an administrator: each with its own browser. */
export async function threeCallers(app: TestApp): Promise<Record<'anonymous' | 'user' | 'admin', Client>> {
  return { anonymous: app.client(), user: await app.user('regular'), admin: await app.admin() }
}

/** Users, their rights, tokens and the audit log, which a refused request must not change. */
export function stateOf({ store }: TestApp): string {
  return JSON.stringify(
    ['users', 'user_permissions', 'api_tokens', 'audit_log'].map((table) =>
      store.sqlite.prepare(`select * from ${table}`).all(),
    ),
  )
}

/** Fails unless the request is refused with this outcome and changes nothing. */
export async function expectRefused(app: TestApp, answer: () => Promise<Response>, outcome: string): Promise<void> {
  const before = stateOf(app)
  expect(await outcomeOf(answer())).toBe(outcome)
  expect(stateOf(app)).toBe(before)
}
