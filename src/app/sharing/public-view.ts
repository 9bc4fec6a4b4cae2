import type { PublicAccess } from '../../shared/access/public-access.ts'
import { NONE, type Permissions, permissionsFrom } from '../../shared/access/resources.ts'
import type { Scope } from '../../shared/access/scope.ts'
import { DAY_MS } from '../../shared/time.ts'

/** With whose eyes a stranger sees. */
export type PublicView = {
  readonly permissions: Permissions
  readonly scope: Scope
  readonly precisionBits: number | null
  /** Milliseconds; null: for ever. */
  readonly hideSilentAfter: number | null
  /** Two with the same one show the same. */
  readonly key: string
}

/** What a stranger would see by these settings, whether they are enabled or not. */
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
