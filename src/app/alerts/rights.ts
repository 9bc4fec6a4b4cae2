import { canReadChannel } from '../../shared/access/scope.ts'
import type { Permissions } from '../../shared/access/resources.ts'
import type { View } from '../sharing/visible.ts'
import { ALERT_KINDS, type AlertKind } from '../../shared/alerts/alert-kinds.ts'

/** With whose eyes a rule sees. */
export type AlertOwner = { readonly isAdmin: boolean; readonly permissions: Permissions; readonly view: View }

/** The channel of an alert's data; `channel` null: none, our own radio reported it of itself. */
export type Contents = { readonly channel: number | null; readonly direct: boolean } | null

/**
 * Whether the owner may see now what a rule of this kind watches, and these contents. Every alert is checked here: when
 * it fires, when it is listed, and when its message is sent.
 */
export function maySee(
  { isAdmin, permissions, view }: AlertOwner,
  kind: AlertKind,
  contents: Contents = null,
): boolean {
  const needs = ALERT_KINDS[kind]
  if (needs === 'admin') return isAdmin
  if (!needs.every((resource) => permissions[resource].read)) return false
  if (contents === null) return true
  return contents.direct ? view.direct.read : canReadChannel(view, contents.channel)
}
