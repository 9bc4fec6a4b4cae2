import type { Ctx, Reader } from '../../base/context.ts'
import { readSharedView, type SharedView } from './visible.ts'
import type { PublicView } from './public-view.ts'

type Needs = Pick<Ctx, 'store' | 'now'>

/** What anonymous callers see now. */
export function readViewOf({ store, now }: Needs, { scope, hideSilentAfter }: PublicView): Promise<SharedView> {
  return readSharedView(store, scope, hideSilentAfter === null ? null : now() - hideSilentAfter)
}

/** An anonymous caller as a reader: the same rules apply as for users. */
export async function readerFor(ctx: Needs, view: PublicView): Promise<Reader> {
  return { store: ctx.store, viewer: { permissions: view.permissions, view: await readViewOf(ctx, view) } }
}
