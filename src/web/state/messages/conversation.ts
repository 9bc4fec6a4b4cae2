import './senders.ts'
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, ApiError, askAs } from '../../api.ts'
import { conversationOf } from './inbox.ts'
import { useOfflineCache } from '../offline-cache.ts'
import type { LiveEvent } from '../live.ts'
import { useAction, useLoad } from '../load.ts'
import type { Message, MessagePage } from '../mesh/nodes.ts'
import { type Range, timesOf } from '../range.ts'
import { withNews } from './news.ts'
import { readTerms, resolveTerms, SearchProblem, type TermQuery } from './terms.ts'

const POLL_MS = 4000
const PAGE_SIZE = 60
/**
 * The page size and the number of pages while a linked message is searched, before the user is asked whether to
 * continue.
 */
const SEEK_SIZE = 250
const SEEK_STEPS = 4
/** A linked message is shown with those around it, whose ids differ by less than this. */
const AROUND = 200
/** A search goes on by itself until it has found so many. */
const ENOUGH = 30
/** For somebody who reads the newest: when there are more messages, only the latest of them stay. */
const MAX_FOLLOWED = 500
const KEPT = 200
/** For somebody who reads further up: when there are more, new ones wait. */
const MAX_KEPT = 10_000 + MAX_FOLLOWED
/** Given to a search whose answer nobody waits for any more. */
const STOPPED = new ApiError(0, 'stopped', '', {}, null)

/** Which messages are shown: those of a channel, with one node, or all. */
export type Wanted = {
  readonly channel: string | null
  readonly partner: string | null
  /** The search; empty texts and null are no limits. */
  readonly q: string
  /** Node ID of the sender. */
  readonly from: string | null
  /** Null: all of time. */
  readonly range: Range | null
}

export function isSearch({ q, from, range }: Wanted): boolean {
  return q !== '' || from !== null || range !== null
}

export type Conversation = {
  /** Oldest first; null until they were loaded. */
  readonly messages: readonly Message[] | null
  /** They are the stored ones from the last visit: the latest are loading, or the service is unreachable. */
  readonly isKept: boolean
  readonly error: ApiError | null
  readonly hasOlder: boolean
  /** Newer ones than these are not loaded, because there would be too many: `restart` shows them. */
  readonly hasNewer: boolean
  readonly isBusy: boolean
  /** Why this search cannot be made, in words; null: it can. */
  readonly problem: string | null
  /** How far back a search has looked, in milliseconds; null: it has not said so yet, or it came to its end. */
  readonly lookedBack: number | null
  /** A search looks for more by itself. */
  readonly isLooking: boolean
  stopLooking(): void
  older(): void
  /** Loads many earlier messages; returns whether there are more. Throws an ApiError. */
  loadNext(): Promise<boolean>
  /**
   * Loads earlier messages until the wanted one is among them, and returns it; null: not found yet. `id`: its id, if
   * known.
   */
  seek(isWanted: (message: Message) => boolean, id?: number): Promise<Message | null>
  /** Drops the earliest of many messages, unless all were wanted: `older` loads them again. */
  forgetOlder(): void
  /** Shows the newest again. */
  restart(): Promise<void>
  reload(): void
  /** Shows a message that was just sent. */
  add(message: Message): void
}

/**
 * The messages of one conversation, kept up to date. Earlier ones stay once they were loaded. `wanted` never changes.
 */
export function useConversation(wanted: Wanted): Conversation {
  const { channel, partner, q, from, range } = wanted
  const messages = useSignal<readonly Message[] | null>(null)
  const next = useSignal<number | null>(null)
  const isKept = useSignal(false)
  const hasNewer = useSignal(false)
  const isAllWanted = useRef(false)
  const startsOver = useRef(false)
  const action = useAction()
  const problem = useSignal<string | null>(null)
  const lookedBack = useSignal<number | null>(null)
  const isStopped = useSignal(false)
  const enough = useSignal(ENOUGH)
  const isLooking = useRef(false)
  const stopping = useRef(new AbortController())
  useEffect(() => () => stopping.current.abort(STOPPED), [])
  const terms = useRef<Promise<TermQuery> | null>(null)
  const load = async (before: number | null, limit = PAGE_SIZE) => {
    try {
      // Names and days such as `7d` stay what they were at first.
      const asked = await (terms.current ??= readQuery(q))
      const chosen = timesOf(range)
      const times = { since: latest(chosen.since, asked.since), until: earliest(chosen.until, asked.until) }
      const isElsewhere = asked.channel !== undefined || asked.direct !== undefined
      const query = {
        limit: String(limit),
        ...(channel !== null && !isElsewhere && { channel }),
        ...(partner !== null && !isElsewhere && { with: partner }),
        ...(from !== null && { from }),
        ...asked,
        ...times,
        ...(before !== null && { before: String(before) }),
      }
      const init = isSearch(wanted) ? { init: { signal: stopping.current.signal } } : {}
      const page = await askAs<MessagePage>(api.messages.$get({ query }, init))
      problem.value = null
      return page
    } catch (error) {
      terms.current = null
      if (!(error instanceof SearchProblem)) throw error
      problem.value = error.message
      return { messages: [], nextBefore: null }
    }
  }
  const isWanted = (message: Message) => {
    const address = conversationOf(message)
    return channel !== null ? address === `channel=${channel}` : partner === null || address === `with=${partner}`
  }
  const addNews = (known: readonly Message[], fresh: readonly Message[]) => {
    const lastId = known.at(-1)?.id ?? 0
    const isFull = known.length >= MAX_KEPT && fresh.some(({ id }) => id > lastId)
    hasNewer.value ||= isFull
    messages.value = merge(known, hasNewer.peek() ? fresh.filter(({ id }) => id <= lastId) : fresh)
  }
  const take = (event: LiveEvent) => {
    const known = messages.peek()
    // Only the service can tell which messages match a search. Between the stored messages and the new ones, some may
    // be missing here.
    if (event === null || known === null || isKept.peek() || isSearch(wanted)) return false
    const next = withNews(known, event, isWanted)
    if (next === null) return false
    if (next !== known) addNews(known, next)
    return true
  }
  const newest = useLoad(() => load(null), [], POLL_MS, ['message', 'delivery'], take)
  const kept = useOfflineCache(`messages ${JSON.stringify(wanted)}`, newest)
  useSignalEffect(() => {
    const page = newest.data.value
    if (page === null) return
    const before = messages.peek()
    const isOver = isKept.peek()
    isKept.value = page === kept.current
    if (before === null || isOver || startsOver.current || (hasGap(before, page) && !hasNewer.peek())) {
      startsOver.current = false
      hasNewer.value = false
      messages.value = merge([], page.messages)
      next.value = page.nextBefore
    } else addNews(before, page.messages)
  })
  const loadOlder = async (limit: number) => {
    const before = next.peek()
    const page = await load(before, limit)
    // The conversation was reloaded meanwhile, so this page no longer precedes it.
    if (next.peek() !== before) return
    messages.value = merge(messages.peek() ?? [], page.messages)
    next.value = page.nextBefore
  }
  /** Looks back until there are enough, because a page ends after a bounded amount of work. */
  const goOn = async () => {
    if (isLooking.current) return
    isLooking.current = true
    try {
      for (let at = next.peek(); at !== null && mayGoOn(); at = next.peek()) {
        const [first] = (await askAs<MessagePage>(api.messages.$get({ query: { limit: '1', before: String(at) } })))
          .messages
        lookedBack.value = first?.timestamp ?? lookedBack.peek()
        if (mayGoOn()) await loadOlder(PAGE_SIZE)
        // The page was replaced by a reload.
        if (next.peek() === at) break
      }
    } finally {
      isLooking.current = false
    }
  }
  const mayGoOn = () =>
    !stopping.current.signal.aborted && !isStopped.peek() && (messages.peek()?.length ?? enough.peek()) < enough.peek()
  useSignalEffect(() => {
    if (!isSearch(wanted) || isKept.value || isStopped.value) return
    if (next.value !== null && (messages.value?.length ?? enough.value) < enough.value) void action.run(goOn)
  })
  const find = (isWanted: (message: Message) => boolean) => messages.peek()?.findLast(isWanted) ?? null
  return {
    messages: messages.value,
    isKept: isKept.value,
    // The page says itself that the service is unreachable, and what it shows was loaded.
    error: newest.error.value ?? (action.error.value?.code === 'offline' ? null : action.error.value),
    hasOlder: next.value !== null,
    hasNewer: hasNewer.value,
    isBusy: action.busy.value,
    problem: problem.value,
    lookedBack: next.value === null ? null : lookedBack.value,
    isLooking: action.busy.value && isSearch(wanted) && !isStopped.value,
    stopLooking: () => {
      isStopped.value = true
    },
    older: () => {
      if (!isSearch(wanted)) return void action.run(() => loadOlder(PAGE_SIZE))
      isStopped.value = false
      enough.value = (messages.peek()?.length ?? 0) + ENOUGH
    },
    loadNext: async () => {
      isAllWanted.current = true
      await loadOlder(SEEK_SIZE)
      return next.peek() !== null
    },
    seek: async (isWanted, id) => {
      if (find(isWanted) !== null) return find(isWanted)
      await action.run(async () => {
        if (id !== undefined) {
          const before = next.peek()
          if (before !== null && before > id) await loadOlder(SEEK_SIZE)
          if (find(isWanted) !== null) return
          const page = await load(id + AROUND, AROUND + PAGE_SIZE)
          if (!page.messages.some(isWanted)) return
          hasNewer.value = true
          messages.value = merge([], page.messages)
          next.value = page.nextBefore
          return
        }
        for (let step = 0; step < SEEK_STEPS && next.peek() !== null && find(isWanted) === null; step++) {
          await loadOlder(SEEK_SIZE)
        }
      })
      return find(isWanted)
    },
    forgetOlder: () => {
      const known = messages.peek() ?? []
      const isMuch = known.length > (isAllWanted.current ? MAX_KEPT : MAX_FOLLOWED)
      if (!isMuch || isKept.peek() || action.busy.peek()) return
      isAllWanted.current = false
      messages.value = known.slice(-KEPT)
      next.value = messages.value[0]?.id ?? null
    },
    restart: async () => {
      startsOver.current = true
      await newest.reload()
    },
    reload: () => void newest.reload(),
    add: (message) => {
      if (messages.peek() !== null) addNews(messages.peek() ?? [], [message])
    },
  }
}

async function readQuery(q: string): Promise<TermQuery> {
  return resolveTerms(readTerms(q))
}

/** Of two moments in milliseconds, as texts, the later one. */
function latest(one: string | undefined, other: string | undefined) {
  return one === undefined || other === undefined ? (one ?? other) : String(Math.max(Number(one), Number(other)))
}

function earliest(one: string | undefined, other: string | undefined) {
  return one === undefined || other === undefined ? (one ?? other) : String(Math.min(Number(one), Number(other)))
}

/** More arrived than one page holds, so the messages in between are unknown. */
function hasGap(known: readonly Message[], { messages, nextBefore }: MessagePage): boolean {
  const oldest = messages.at(-1)
  const newest = known.at(-1)
  return nextBefore !== null && oldest !== undefined && newest !== undefined && oldest.id > newest.id
}

/** Oldest first, without duplicates. An unchanged message stays the same object, so that it is not rendered again. */
function merge(known: readonly Message[], fresh: readonly Message[]): Message[] {
  const byId = new Map(known.map((message) => [message.id, message]))
  for (const message of fresh) {
    const before = byId.get(message.id)
    if (before === undefined || JSON.stringify(before) !== JSON.stringify(message)) byId.set(message.id, message)
  }
  return [...byId.values()].toSorted((a, b) => a.id - b.id)
}
