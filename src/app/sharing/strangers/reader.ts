import type { Ctx, Reader } from '../../context.ts'
import { readSharedView } from '../visible.ts'
import type { PublicView } from '../public-view.ts'

/** An anonymous caller as a reader: the same rules apply as for users. */
export async function readerFor({ store, now }: Pick<Ctx, 'store' | 'now'>, view: PublicView): Promise<Reader> {
  const { permissions, scope, hideSilentAfter } = view
  const heardAfter = hideSilentAfter === null ? null : now() - hideSilentAfter
  return { store, viewer: { permissions, view: await readSharedView(store, scope, heardAfter) } }
}
