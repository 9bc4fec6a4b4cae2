import { refreshTogether } from '../../accounts/access/refresh-together.ts'
import { refreshViewer } from '../../accounts/access/viewer.ts'
import type { SignedInCtx, Viewer } from '../../base/context.ts'
import { ownedBy } from '../../base/owned.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import type { Events } from './event.ts'

/** `viewer`: null if the session or token has ended. `last`: no event up to this one is newer than that. */
export type Refreshed = { readonly viewer: Viewer | null; readonly last: number }

/** If each query is a round trip, viewers are read again at most once in this time, all of them at once. */
const TOGETHER_MS = 1000

/** The viewer of a stream as they are now, before they get the next events. */
export async function refresh(ctx: SignedInCtx, events: Events): Promise<Refreshed> {
  if (ctx.store.batch !== undefined && ctx.sessions.isInDatabase) return refreshed(ctx, events)
  const viewer = await refreshViewer(ctx, ctx.viewer)
  return { viewer, last: events.last() }
}

type Asked = {
  readonly ctx: SignedInCtx
  readonly resolve: (refreshed: Refreshed) => void
  readonly reject: (error: unknown) => void
}

const rounds = ownedBy((_events: Events): { asked: Asked[]; isRunning: boolean } => ({ asked: [], isRunning: false }))

function refreshed(ctx: SignedInCtx, events: Events): Promise<Refreshed> {
  const round = rounds(events)
  return new Promise((resolve, reject) => {
    round.asked.push({ ctx, resolve, reject })
    if (!round.isRunning) void keepRefreshing(events)
  })
}

async function keepRefreshing(events: Events): Promise<void> {
  const round = rounds(events)
  round.isRunning = true
  while (round.asked.length > 0) {
    // The event that woke this reader wakes others, too.
    await nextTurn()
    const asked = round.asked.splice(0)
    const last = events.last()
    try {
      const viewers = await refreshTogether(asked.map(({ ctx }) => ctx))
      for (const [index, { resolve }] of asked.entries()) resolve({ viewer: viewers[index] ?? null, last })
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
    await new Promise<void>((resolve) => events.after(TOGETHER_MS, resolve))
  }
  round.isRunning = false
}
