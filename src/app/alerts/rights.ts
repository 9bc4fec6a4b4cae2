import { canReadChannel, type Scope } from '../../shared/access/scope.ts'
import type { Permissions } from '../../shared/access/resources.ts'
import { ALERT_KINDS, type AlertKind } from '../../shared/alerts/alert-kinds.ts'

/** With whose eyes a rule sees. */
export type AlertOwner = { readonly isAdmin: boolean; readonly permissions: Permissions; readonly scope: Scope }

/** On which channel it came what an alert tells; `channel` null: on none, a radio of ours told it of itself. */
export type Contents = { readonly channel: number | null; readonly direct: boolean } | null

/**
 * Whether the owner may learn now what a rule of this kind watches, and these contents. Everything that an alert tells
 * passes here: when it happens, when it is listed, and when its message goes out.
 */
export function maySee(
  { isAdmin, permissions, scope }: AlertOwner,
  kind: AlertKind,
  contents: Contents = null,
): boolean {
  const needs = ALERT_KINDS[kind]
  if (needs === 'admin') return isAdmin
  if (!needs.every((resource) => permissions[resource].read)) return false
  if (contents === null) return true
  return contents.direct ? scope.direct.read : canReadChannel(scope, contents.channel)
}
