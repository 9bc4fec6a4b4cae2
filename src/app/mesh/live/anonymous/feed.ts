import type { Ctx } from '../../../base/context.ts'
import type { Events } from '../event.ts'
import { RESET } from '../stream.ts'
import { readPublicView } from '../../../accounts/access/public-access.ts'
import type { PublicView } from '../../../accounts/access/public-view.ts'
import { eventForAnonymous, listWholeNodes } from './events.ts'
import { readNodesShown } from '../../nodes/anonymous.ts'
import { readViewOf } from '../../../accounts/access/anonymous-reader.ts'

/** Events sent at once. If there are more, pages reload the lists, which costs less than sending all to everybody. */
const MAX_AT_ONCE = 100
/** Events kept for readers that were briefly disconnected. */
const KEPT = 500

type Needs = Pick<Ctx, 'store' | 'now'>

/** The live events for all anonymous callers: selected and written once for all readers. */
export type Feed = {
  /** Adds what has happened since the last call. False: the feed has ended, because what its readers may see changed. */
  renew(ctx: Needs): Promise<boolean>
  hasEnded(): boolean
  end(): void
  /** The number of the latest event. Only events in this feed count. */
  last(): number
  /** The `id` line of an event, after which a reader can resume. */
  idOf(seq: number): string
  /** The number in such an ID; null if the event is no longer kept, or the ID is from another feed. */
  placeOf(id: string): number | null
  /** The bytes of all events after this number; null: some of them are no longer kept. */
  after(seq: number): Uint8Array | null
}

const utf8 = new TextEncoder()

/** A feed that begins with the next event; null while public access is off. */
export async function beginFeed(ctx: Needs, events: Events): Promise<Feed | null> {
  const shown = await readPublicView(ctx)
  if (shown === null) return null
  // Random: the number of another process or feed means nothing here.
  const epoch = crypto.randomUUID().slice(0, 8)
  const { hidden, unheard } = await readViewOf(ctx, shown)
  return createFeed({ epoch, shown, hidden, unheard, events })
}

function createFeed(given: {
  readonly epoch: string
  readonly shown: PublicView
  readonly hidden: ReadonlySet<number>
  readonly unheard: ReadonlySet<number>
  readonly events: Events
}): Feed {
  const { epoch, shown, events } = given
  let { hidden, unheard } = given
  const lastHeard = new Map<number, number>()
  let place = events.last()
  let last = 0
  let hasEnded = false
  const kept: { readonly seq: number; readonly text: string }[] = []
  /** The key is the number after which the bytes begin. */
  const bytes = new Map<number, Uint8Array>()
  const idOf = (seq: number) => `id: ${epoch}-${seq}\n`
  const tell = (lines: string) => {
    last += 1
    kept.push({ seq: last, text: `${idOf(last)}${lines}\n` })
    kept.splice(0, kept.length - KEPT)
    bytes.clear()
  }
  return {
    last: () => last,
    hasEnded: () => hasEnded,
    idOf,
    end() {
      hasEnded = true
    },
    async renew(ctx) {
      const now = events.isClosed() || hasEnded ? null : await readPublicView(ctx)
      const view = now?.key === shown.key ? await readViewOf(ctx, now) : null
      // A new node that the public has not heard yet was never shown.
      const isLess = view !== null && [...view.hidden].some((num) => !hidden.has(num) && !view.unheard.has(num))
      if (view === null || isLess) hasEnded = true
      if (view === null || hasEnded) return false
      const found = events.since(place, Number.MAX_SAFE_INTEGER)
      place = events.last()
      // A deleted node is not named: it may have been one that nobody could see.
      const isGone = found?.some(({ contents }) => contents?.['isDeleted'] === true) === true
      const isMore = [...hidden].some((num) => !view.hidden.has(num) && !unheard.has(num))
      ;({ hidden, unheard } = view)
      const nodes = await readNodesShown(ctx, shown, { view, nums: listWholeNodes(found ?? []) })
      const shownEvents =
        found?.flatMap((event) => eventForAnonymous(event, shown, view, { nodes, lastHeard }) ?? []) ?? []
      if (found === null || isGone || isMore || shownEvents.length > MAX_AT_ONCE) tell(RESET)
      else for (const { kind, data } of shownEvents) tell(`event: ${kind}\ndata: ${JSON.stringify(data)}\n`)
      return true
    },
    placeOf(id) {
      const [named, digits = ''] = id.split('-')
      const seq = named === epoch && /^\d{1,15}$/.test(digits) ? Number(digits) : null
      return seq !== null && seq <= last && seq >= last - kept.length ? seq : null
    },
    after(seq) {
      if (seq < last - kept.length) return null
      const known = bytes.get(seq)
      if (known !== undefined) return known
      const written = utf8.encode(kept.flatMap((each) => (each.seq > seq ? [each.text] : [])).join(''))
      bytes.set(seq, written)
      return written
    },
  }
}
