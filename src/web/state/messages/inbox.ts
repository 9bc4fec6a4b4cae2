import { computed, effect, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, askAs, ownName } from '../../api.ts'
import { useCachedList } from '../offline-cache.ts'
import type { LiveEvent } from '../live.ts'
import { asApiError, useFresh } from '../load.ts'
import { withNews } from './news.ts'
import { BROADCAST, type Message, type MessagePage } from '../mesh/nodes.ts'
import { can, user } from '../session.ts'

const POLL_MS = 10_000
/** The number of messages among which unread ones are counted. */
const INBOX_SIZE = 200

/** The newest messages of all conversations, newest first; null until they were loaded once. */
export const inbox = signal<readonly Message[] | null>(null)

/** `channel=0` or `with=!a0cb0001`, as in the address of the conversation. */
export function conversationOf({ toNodeNum, channel, direction, toNodeId, fromNodeId }: Message): string {
  if (toNodeNum === BROADCAST) return `channel=${channel}`
  return `with=${direction === 'out' ? toNodeId : fromNodeId}`
}

async function refreshInbox(): Promise<void> {
  if (!can('messages', 'read')) return
  try {
    const { messages } = await askAs<MessagePage>(api.messages.$get({ query: { limit: String(INBOX_SIZE) } }))
    inbox.value = messages
    // A new user should not have a thousand unread messages.
    if (marks.peek().from === null) keepMarks({ ...marks.peek(), from: messages[0]?.id ?? 0 })
  } catch (error) {
    // Old data stays; a page of messages shows its own errors.
    asApiError(error)
  }
}

/** Whether an event contains the message itself, or its state: it is then added to the inbox without a request. */
function takeEvent(event: LiveEvent): boolean {
  const known = inbox.peek()
  if (event === null || known === null) return false
  const next = withNews(known, event)
  if (next === null) return false
  inbox.value = next.slice(0, INBOX_SIZE)
  return true
}

/** Drops data that was loaded for another user. */
export function forgetInbox(): void {
  inbox.value = null
}

/** Keeps the inbox up to date: once per page. */
export function InboxKeeper(): null {
  useCachedList('inbox', inbox)
  useEffect(() => void refreshInbox(), [])
  useFresh(refreshInbox, POLL_MS, ['message', 'delivery'], takeEvent)
  return null
}

/** How far somebody has read: ids of messages. And what is never counted: conversations. */
type Marks = {
  /** The highest id read everywhere; null: unknown yet. */
  readonly from: number | null
  readonly read: Readonly<Record<string, number>>
  readonly muted?: readonly string[]
}
const NO_MARKS: Marks = { from: null, read: {} }
const marks = signal<Marks>(NO_MARKS)
const storageKey = computed(() => (user.value === null ? null : ownName(`read:${user.value.id}`)))

/**
 * Reads the marks of the signed-in user, and follows what other tabs of this browser read.
 * Decision: docs/decisions/short-decisions.md#read-marks-are-kept-in-the-browser
 */
export function keepReadMarks(): void {
  effect(() => {
    marks.value = storageKey.value === null ? NO_MARKS : loadMarks(storageKey.value)
  })
  addEventListener('storage', ({ key }) => {
    if (key !== null && key === storageKey.peek()) marks.value = loadMarks(key)
  })
}

function loadMarks(key: string): Marks {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? 'null')
    return isMarks(found) ? found : NO_MARKS
  } catch {
    // Storage is blocked, or contains something else: counting begins now.
    return NO_MARKS
  }
}

function isMarks(value: unknown): value is Marks {
  if (typeof value !== 'object' || value === null || !('from' in value) || !('read' in value)) return false
  const { from, read } = value
  const muted = 'muted' in value ? value.muted : []
  if (!Array.isArray(muted) || !muted.every((each) => typeof each === 'string')) return false
  if (typeof from !== 'number' || typeof read !== 'object' || read === null) return false
  return Object.values(read).every((id) => typeof id === 'number')
}

function keepMarks(next: Marks): void {
  marks.value = next
  try {
    if (storageKey.peek() !== null) localStorage.setItem(storageKey.peek() ?? '', JSON.stringify(next))
  } catch {
    // Storage is blocked: the marks last as long as the page.
  }
}

/** The id up to which a conversation was read; `null` stands for all conversations. */
export function readUpTo(conversation: string | null, { from, read }: Marks = marks.value): number {
  return Math.max(from ?? Number.MAX_SAFE_INTEGER, conversation === null ? 0 : (read[conversation] ?? 0))
}

/** Up to which id each conversation is read at this moment, as from `readUpTo`. */
export function readNow(): (conversation: string) => number {
  const known = marks.peek()
  return (conversation) => readUpTo(conversation, known)
}

/** Marks a conversation as read up to this message. The view of all messages marks all conversations. */
export function markRead(conversation: string | null, id: number): void {
  const { from, read } = marks.peek()
  if (from === null || id <= readUpTo(conversation)) return
  const changes = conversation === null ? { from: id } : { read: { ...read, [conversation]: id } }
  keepMarks({ ...marks.peek(), ...changes })
}

/** Conversations whose messages are not counted as unread. */
export const muted = computed((): ReadonlySet<string> => new Set(marks.value.muted))

/** Mutes a conversation, or ends that. Kept with the read marks. */
export function setMuted(conversation: string, is: boolean): void {
  const others = [...muted.peek()].filter((each) => each !== conversation)
  keepMarks({ ...marks.peek(), muted: is ? [...others, conversation] : others })
}

/** Unread texts by conversation. */
export const unread = computed((): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const message of inbox.value ?? []) {
    const conversation = conversationOf(message)
    if (message.direction === 'out' || message.emoji || muted.value.has(conversation)) continue
    if (message.id <= readUpTo(conversation)) continue
    counts.set(conversation, (counts.get(conversation) ?? 0) + 1)
  }
  return counts
})

export const unreadTotal = computed(() => [...unread.value.values()].reduce((sum, n) => sum + n, 0))
