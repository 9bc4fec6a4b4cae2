import { and, eq } from 'drizzle-orm'
import { totpFactors, users } from '../../../db/schema.ts'
import { isSeedReadable } from '../factors/totp.ts'
import type { Ports } from '../../base/context.ts'
import { hasLocalWay, hasProviderWay, isRealAdmin } from '../users/way-in.ts'

/** Logs one line if nobody can ever sign in with this configuration and these users. */
export async function warnIfNobodyEnters(ports: Ports): Promise<void> {
  const local = await whyNotLocally(ports)
  const oidc = local === null ? null : await whyNotByOidc(ports)
  if (local !== null && oidc !== null) ports.log.error(`Nobody can sign in: ${local}, and ${oidc}`)
  else if (!(await hasAdmin(ports))) warnOfNoAdmin(ports)
  await warnIfSealedElsewhere(ports)
}

async function hasAdmin({ store, config }: Ports): Promise<boolean> {
  const found = await store.db.select({ id: users.id }).from(users).where(isRealAdmin(config)).limit(1).get()
  return found !== undefined
}

/** If the configuration names the next administrator, this is no error yet. */
function warnOfNoAdmin({ config, log }: Ports): void {
  const { OIDC_PROVIDERS: providers, PROXY_AUTH_HEADER, OIDC_ADMIN_SUBJECT } = config
  const isNamed =
    providers.some(({ adminSubject }) => adminSubject !== null) ||
    (PROXY_AUTH_HEADER !== null && OIDC_ADMIN_SUBJECT !== null)
  if (isNamed)
    return log.warn('No administrator can sign in: the user of OIDC_ADMIN_SUBJECT becomes one at the next sign-in')
  if (providers.some(({ adminGroups }) => adminGroups.length > 0)) {
    return log.warn('No administrator can sign in: a member of OIDC_ADMIN_GROUPS becomes one at the next sign-in')
  }
  log.error('No administrator can sign in: set OIDC_ADMIN_SUBJECT, or use promote or create-admin at the console')
}

/**
 * This happens for example after a restore on another machine. Users then need their recovery codes, or help from the
 * command line.
 */
async function warnIfSealedElsewhere(ports: Ports): Promise<void> {
  const { userId, seed } = totpFactors
  const rows = await ports.store.db.select({ userId, seed }).from(totpFactors).limit(MAX_LOOKED_AT).all()
  const unreadable = await Promise.all(rows.map(async (row) => !(await isSeedReadable(ports, row.userId, row.seed))))
  const users = unreadable.filter(Boolean).length
  if (users === 0) return
  ports.log.warn(
    'Authenticator apps of users were set up under another SESSION_SECRET: these users need recovery codes, or cli reset-second-factor',
    { users },
  )
}

/** Each decryption derives a key, so a start does not check thousands. */
const MAX_LOOKED_AT = 20

async function whyNotLocally({ config, store }: Ports): Promise<string | null> {
  if (config.DISABLE_LOCAL_AUTH) return 'DISABLE_LOCAL_AUTH is true'
  const user = await store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.isActive, true), hasLocalWay(config)))
    .limit(1)
    .get()
  return user === undefined ? 'there is no active local user' : null
}

async function whyNotByOidc({ providers, store, config }: Ports): Promise<string | null> {
  if (config.PROXY_AUTH_HEADER !== null) return null
  if (providers.length === 0) return 'OIDC_ENABLED is not true'
  if (providers.some(({ settings }) => settings.autoCreateUsers || settings.adminSubject !== null)) return null
  const user = await store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.isActive, true), hasProviderWay(config)))
    .limit(1)
    .get()
  if (user !== undefined) return null
  return providers.length === 1
    ? 'OIDC_AUTO_CREATE_USERS is false while OIDC_ISSUER has no active user here'
    : 'OIDC_AUTO_CREATE_USERS is false while no provider has an active user here'
}
