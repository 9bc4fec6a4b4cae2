import { useSignal, useSignalEffect } from '@preact/signals'
import { api, type ApiError, askAs } from '../api.ts'
import { conversationOf } from './inbox.ts'
import { useKept } from './kept.ts'
import type { LiveEvent } from './live.ts'
import { useAction, useLoad } from './load.ts'
import type { Message, MessagePage } from './mesh.ts'
import { withNews } from './message-news.ts'

const POLL_MS = 4000
const PAGE_SIZE = 60
/** While a linked message is searched, larger steps, and this many of them before the reader is asked again. */
const SEEK_SIZE = 250
const SEEK_STEPS = 4

/** Which messages are shown: those of a channel, with one node, or all; all of them or those with a text. */
export type Wanted = { readonly channel: string | null; readonly partner: string | null; readonly q: string }

export type Conversation = {
  /** Oldest first; null until they came. */
  readonly messages: readonly Message[] | null
  readonly error: ApiError | null
  readonly hasOlder: boolean
  readonly isBusy: boolean
  older(): void
  /** Loads earlier messages until the wanted one is among them, and answers it; null: not found yet. */
  seek(isWanted: (message: Message) => boolean): Promise<Message | null>
  reload(): void
  /** Shows a message that was just sent. */
  add(message: Message): void
}

/** The messages of one conversation, kept fresh; earlier ones stay once they were loaded. `wanted` never changes. */
export function useConversation({ channel, partner, q }: Wanted): Conversation {
  const messages = useSignal<readonly Message[] | null>(null)
  const next = useSignal<number | null>(null)
  const action = useAction()
  const load = (before: number | null, limit = PAGE_SIZE) =>
    askAs<MessagePage>(
      api.messages.$get({
        query: {
          limit: String(limit),
          ...(channel !== null && { channel }),
          ...(partner !== null && { with: partner }),
          ...(q !== '' && { q }),
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
    if (event === null || known === null || q !== '') return false
    const next = withNews(known, event, isWanted)
    if (next === null) return false
    if (next !== known) messages.value = merge(known, next)
    return true
  }
  const newest = useLoad(() => load(null), [], POLL_MS, ['message', 'delivery'], take)
  useKept(`messages ${channel ?? ''} ${partner ?? ''} ${q}`, newest)
  useSignalEffect(() => {
    const page = newest.data.value
    if (page === null) return
    const before = messages.peek()
    if (before === null || hasGap(before, page)) {
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
    error: newest.error.value ?? action.error.value,
    hasOlder: next.value !== null,
    isBusy: action.busy.value,
    older: () => void action.run(() => loadOlder(PAGE_SIZE)),
    seek: async (isWanted) => {
      await action.run(async () => {
        for (let step = 0; step < SEEK_STEPS && next.peek() !== null && find(isWanted) === null; step++) {
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
