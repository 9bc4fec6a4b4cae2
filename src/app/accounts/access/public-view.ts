import type { PublicAccess } from '../../../shared/access/public-access.ts'
import { NONE, type Permissions, permissionsFrom } from '../../../shared/access/resources.ts'
import type { Scope } from '../../../shared/access/scope.ts'
import { DAY_MS } from '../../../shared/time.ts'

/** What anonymous callers may see. */
export type PublicView = {
  readonly permissions: Permissions
  readonly scope: Scope
  readonly precisionBits: number | null
  /** Milliseconds; null: forever. */
  readonly hideSilentAfter: number | null
  /** Views with the same key show the same data. */
  readonly key: string
}

/** What anonymous callers would see with these settings, whether they are enabled or not. */
export function publicViewOf(access: PublicAccess): PublicView {
  const { permissions, channels, positionPrecisionBits, hideSilentAfterDays } = access
  const shown: Partial<Record<string, { readonly read: boolean }>> = permissions
  return {
    permissions: permissionsFrom((resource) => ({ read: shown[resource]?.read === true, write: false })),
    scope: { channels: { read: channels, write: [] }, direct: NONE },
    precisionBits: positionPrecisionBits,
    hideSilentAfter: hideSilentAfterDays === null ? null : hideSilentAfterDays * DAY_MS,
    key: JSON.stringify([permissions, channels, positionPrecisionBits, hideSilentAfterDays]),
  }
}
