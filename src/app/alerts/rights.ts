import { canReadChannel } from '../../shared/access/scope.ts'
import type { Permissions, Resource } from '../../shared/access/resources.ts'
import { seesNodes, type View } from '../accounts/access/visible.ts'

/** What the owner of a rule needs: read access to these resources, or the rights of an administrator. */
export type Requirement = readonly Resource[] | 'admin'

/** The permissions and the view that a rule has. */
export type AlertOwner = { readonly isAdmin: boolean; readonly permissions: Permissions; readonly view: View }

type Viewer = { readonly user: { readonly isAdmin: boolean }; readonly permissions: Permissions; readonly view: View }

/** The viewer as the owner of a rule. */
export function ownerOf({ user: { isAdmin }, permissions, view }: Viewer): AlertOwner {
  return { isAdmin, permissions, view }
}

/**
 * The channel of an alert's data, as for `canReadChannel`; null: none, because our own radio reported it about itself.
 */
export type Contents = {
  readonly channel: number | null
  /** It is about a direct message. */
  readonly direct: boolean
  /** The node that it is about. */
  readonly nodeNum?: number | null
} | null

/**
 * Whether the owner may currently see what a rule with this requirement watches, and these contents. Every alert is checked
 * here: when it fires, when it is listed, and when its message is sent.
 */
export function maySee(
  { isAdmin, permissions, view }: AlertOwner,
  requires: Requirement,
  contents: Contents = null,
): boolean {
  if (requires === 'admin') return isAdmin
  if (!requires.every((resource) => permissions[resource].read)) return false
  if (contents === null) return true
  if (!seesNodes(view, [contents.nodeNum ?? null])) return false
  return (!contents.direct || view.direct.read) && canReadChannel(view, contents.channel)
}
