import type { Ctx } from '../../base/context.ts'
import type { Permissions } from '../../../shared/access/resources.ts'
import { readViewOf } from './anonymous-reader.ts'
import { readPublicView } from './public-access.ts'
import { findOwner } from './viewer.ts'
import type { View } from './visible.ts'

/** Whoever reaches a port without a login: a user, or an anonymous caller. */
export type PortViewer = {
  /** Null: public access. */
  readonly user: { readonly id: number; readonly username: string } | null
  readonly permissions: Permissions
  readonly view: View
  /** Positions are rounded to this many bits; null: they are shown as sent. */
  readonly precisionBits: number | null
}

/** The viewer of a port with current rights; `userId` null: public access. Null: nobody may see anything there. */
export async function findPortViewer(
  needs: Pick<Ctx, 'store' | 'config' | 'providers' | 'now'>,
  userId: number | null,
): Promise<PortViewer | null> {
  if (userId !== null) {
    const owner = await findOwner(needs, userId)
    if (owner === null) return null
    const { username, permissions, view } = owner
    return { user: { id: userId, username }, permissions, view, precisionBits: null }
  }
  const shared = await readPublicView(needs)
  if (shared === null) return null
  const { permissions, precisionBits } = shared
  return { user: null, permissions, view: await readViewOf(needs, shared), precisionBits }
}
