import type { Permissions } from '../../shared/resources.ts'
import { ALERT_KINDS, type AlertKind } from '../../shared/alert-kinds.ts'

/** With whose eyes a rule sees. */
export type AlertOwner = { readonly isAdmin: boolean; readonly permissions: Permissions }

/** What of the contents of messages an alert tells; null: nothing. */
export type Contents = { readonly channel: number | null; readonly direct: boolean } | null

/**
 * Whether the owner may learn now what a rule of this kind watches, and these contents. Everything that an alert tells
 * passes here: when it happens, when it is listed, and when its message goes out.
 */
export function maySee({ isAdmin, permissions }: AlertOwner, kind: AlertKind, _contents: Contents = null): boolean {
  const needs = ALERT_KINDS[kind]
  return needs === 'admin' ? isAdmin : needs.every((resource) => permissions[resource].read)
}
