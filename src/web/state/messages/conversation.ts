import { useSignal, useSignalEffect } from '@preact/signals'
import { api, type ApiError, askAs } from '../../api.ts'
import { conversationOf } from './inbox.ts'
import { useKept } from '../kept.ts'
import type { LiveEvent } from '../live.ts'
import { useAction, useLoad } from '../load.ts'
import type { Message, MessagePage } from '../mesh.ts'
import { withNews } from './news.ts'

const POLL_MS = 4000
const PAGE_SIZE = 60
/** While a linked message is searched, larger steps, and this many of them before the reader is asked again. */
const SEEK_SIZE = 250
const SEEK_STEPS = 4
/** One whose id is known is certain to come, or certain to be gone. */
const LINK_STEPS = 40

/** Which messages are looked at: those of a channel, with one node, or of all. */
export type Wanted = {
  readonly channel: string | null
  readonly partner: string | null
  /** Of these only what is searched for: empty texts and null are no limit. */
  readonly q: string
  /** Node ID of the sender. */
  readonly from: string | null
  /** Days as `2026-11-23`, in the time zone of this device; both are included. */
  readonly since: string
  readonly until: string
}

export function isSearch({ q, from, since, until }: Wanted): boolean {
  return q !== '' || from !== null || since !== '' || until !== ''
}

/** The start of a day, or of one some days later, in milliseconds; null: no day. */
function startOfDay(day: string, later = 0): number | null {
  const [year, month, date] = day.split('-').map(Number)
  if (year === undefined || month === undefined || date === undefined) return null
  const start = new Date(year, month - 1, date + later).getTime()
  return Number.isNaN(start) ? null : Math.max(0, start)
}

export type Conversation = {
  /** Oldest first; null until they came. */
  readonly messages: readonly Message[] | null
  /** They are what was seen last: the latest are on their way, or the service cannot be reached. */
  readonly isKept: boolean
  readonly error: ApiError | null
  readonly hasOlder: boolean
  readonly isBusy: boolean
  older(): void
  /**
   * Loads earlier messages until the wanted one is among them, and answers it; null: not found yet. `id`: that of the
   * wanted one, where it is known.
   */
  seek(isWanted: (message: Message) => boolean, id?: number): Promise<Message | null>
  reload(): void
  /** Shows a message that was just sent. */
  add(message: Message): void
}

/** The messages of one conversation, kept fresh; earlier ones stay once they were loaded. `wanted` never changes. */
export function useConversation(wanted: Wanted): Conversation {
  const { channel, partner, q, from } = wanted
  const since = startOfDay(wanted.since)
  const until = startOfDay(wanted.until, 1)
  const messages = useSignal<readonly Message[] | null>(null)
  const next = useSignal<number | null>(null)
  const isKept = useSignal(false)
  const action = useAction()
  const load = (before: number | null, limit = PAGE_SIZE) =>
    askAs<MessagePage>(
      api.messages.$get({
        query: {
          limit: String(limit),
          ...(channel !== null && { channel }),
          ...(partner !== null && { with: partner }),
          ...(q !== '' && { q }),
          ...(from !== null && { from }),
          ...(since !== null && { since: String(since) }),
          ...(until !== null && { until: String(until) }),
          ...(before !== null && { before: String(before) }),
        },
      }),
    )
  const isWanted = (message: Message) => {
    const address = conversationOf(message)
    return channel !== null ? address === `channel=${channel}` : partner === null || address === `with=${partner}`
  }
  const take = (event: LiveEvent) => {
    const known = messages.peek()
    // Only the service knows what a search finds.
    // Between what was kept and the news there may be messages that are not here.
    if (event === null || known === null || isKept.peek() || isSearch(wanted)) return false
    const next = withNews(known, event, isWanted)
    if (next === null) return false
    if (next !== known) messages.value = merge(known, next)
    return true
  }
  const newest = useLoad(() => load(null), [], POLL_MS, ['message', 'delivery'], take)
  const kept = useKept(`messages ${JSON.stringify(wanted)}`, newest)
  useSignalEffect(() => {
    const page = newest.data.value
    if (page === null) return
    const before = messages.peek()
    const isOver = isKept.peek()
    isKept.value = page === kept.current
    if (before === null || isOver || hasGap(before, page)) {
      messages.value = merge([], page.messages)
      next.value = page.nextBefore
    } else messages.value = merge(before, page.messages)
  })
  const loadOlder = async (limit: number) => {
    const before = next.peek()
    const page = await load(before, limit)
    // The conversation started over meanwhile: this page no longer comes before it.
    if (next.peek() !== before) return
    messages.value = merge(messages.peek() ?? [], page.messages)
    next.value = page.nextBefore
  }
  const find = (isWanted: (message: Message) => boolean) => messages.peek()?.findLast(isWanted) ?? null
  return {
    messages: messages.value,
    isKept: isKept.value,
    error: newest.error.value ?? action.error.value,
    hasOlder: next.value !== null,
    isBusy: action.busy.value,
    older: () => void action.run(() => loadOlder(PAGE_SIZE)),
    seek: async (isWanted, id) => {
      const steps = id === undefined ? SEEK_STEPS : LINK_STEPS
      const mayBeOlder = (before: number | null) => before !== null && before > (id ?? 0)
      await action.run(async () => {
        for (let step = 0; step < steps && mayBeOlder(next.peek()) && find(isWanted) === null; step++) {
          await loadOlder(SEEK_SIZE)
        }
      })
      return find(isWanted)
    },
    reload: () => void newest.reload(),
    add: (message) => {
      if (messages.peek() !== null) messages.value = merge(messages.peek() ?? [], [message])
    },
  }
}

/** More arrived than one page holds: the messages in between are unknown. */
function hasGap(known: readonly Message[], { messages, nextBefore }: MessagePage): boolean {
  const oldest = messages.at(-1)
  const newest = known.at(-1)
  return nextBefore !== null && oldest !== undefined && newest !== undefined && oldest.id > newest.id
}

/** Oldest first, each once. One that says the same stays the same object, so that it is not drawn again. */
function merge(known: readonly Message[], fresh: readonly Message[]): Message[] {
  const byId = new Map(known.map((message) => [message.id, message]))
  for (const message of fresh) {
    const before = byId.get(message.id)
    if (before === undefined || JSON.stringify(before) !== JSON.stringify(message)) byId.set(message.id, message)
  }
  return [...byId.values()].toSorted((a, b) => a.id - b.id)
}
