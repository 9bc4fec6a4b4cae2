import { count, eq, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { users } from '../../../db/schema.ts'
import { audit, type AuditContext, SYSTEM } from '../../audit/audit.ts'
import { hashNewPassword, randomPassword } from '../passwords/passwords.ts'
import type { Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { writePermissions } from './permissions.ts'
import { userIdByName } from './users.ts'
import { ALL_PERMISSIONS } from '../../../shared/access/resources.ts'

export type FirstAdmin =
  | { readonly made: false }
  | { readonly made: true; readonly username: string; readonly randomPassword: string | null }

/**
 * Creates the first administrator if there are no users. A given password must meet the rules and stays valid; a random
 * one is temporary and is returned here, once. Throws `weak_password`.
 */
export async function makeFirstAdmin(ports: Ports): Promise<FirstAdmin> {
  const { store, config } = ports
  if (config.DISABLE_LOCAL_AUTH || (await countUsers(ports)) > 0) return { made: false }
  const username = config.ADMIN_USERNAME
  const random = config.ADMIN_PASSWORD === null ? randomPassword() : null
  const passwordHash = await hashNewPassword(ports, config.ADMIN_PASSWORD ?? random ?? '', username).catch(explain)
  const ctx: AuditContext = { store, viewer: null, ip: null, requestId: null, now: () => ports.now() }
  const id = userIdByName(username)
  const admin = {
    username,
    authProvider: 'local',
    passwordHash,
    mustChangePassword: random !== null,
    isAdmin: true,
    createdAt: ports.now(),
  } as const
  await store.atomic([
    insertSelect(store.db, users, admin, sql`where not exists (select 1 from ${users})`),
    audit(ctx, 'admin_bootstrapped', { username, userId: id }, { actor: SYSTEM, onlyIfChanged: true }),
    // If another instance was first, its administrator is kept.
    writePermissions(store, eq(users.passwordHash, passwordHash), ALL_PERMISSIONS, { at: ports.now(), by: null }),
  ])
  const stored = await store.db.select({ hash: users.passwordHash }).from(users).get()
  return stored?.hash === passwordHash ? { made: true, username, randomPassword: random } : { made: false }
}

async function countUsers({ store }: Ports): Promise<number> {
  return (await store.db.select({ n: count() }).from(users).get())?.n ?? 0
}

function explain(error: unknown): never {
  if (!(error instanceof AppError) || error.code !== 'weak_password') throw error
  const rules = (error.extra.issues ?? []).map(({ message }) => message.toLowerCase()).join('; ')
  throw new AppError('weak_password', `ADMIN_PASSWORD: found (not shown), expected a password with: ${rules}`)
}
