import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { api, ask, askAs } from '../api.ts'
import { day } from '../format.ts'
import { useAction, useLoad } from '../load.ts'
import { BROADCAST, type Message, type MessagePage, nodeByNum, nodeName, useNodes } from '../mesh.ts'
import { SearchBox } from '../parts/field.tsx'
import { Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { href, place, setQuery } from '../router.ts'
import { can } from '../session.ts'
import { t } from '../strings.ts'
import { Composer } from './composer.tsx'
import { MessageItem } from './message-item.tsx'

const POLL_MS = 3000
const PAUSE_MS = 250
const PAGE = '100'

export function MessagesPage() {
  useNodes()
  const { query } = place.value
  const channel = query.get('channel')
  const partner = query.get('with')
  const q = query.get('q') ?? ''
  const by = {
    limit: PAGE,
    ...(channel !== null && { channel }),
    ...(partner !== null && { with: partner }),
    ...(q !== '' && { q }),
  }
  const key = JSON.stringify(by)
  const load = (before: number | null) =>
    askAs<MessagePage>(api.messages.$get({ query: { ...by, ...(before !== null && { before: String(before) }) } }))
  const newest = useLoad(() => load(null), [key], POLL_MS)
  const older = useOlder(key, load)
  const replyTo = useSignal<Message | null>(null)
  const page = newest.data.value
  const shown = page === null ? [] : merge(page.messages, older.messages)
  const next = older.isLoaded ? older.next : (page?.nextBefore ?? null)
  const write = can('messages', 'write')
  return (
    <Page title={t.messages.title} fill>
      <div class="toolbar">
        <Conversations messages={shown} channel={channel} partner={partner} />
        <Search q={q} />
      </div>
      <Failure error={newest.error.value ?? older.error} retry={newest.reload} />
      <Log
        messages={shown}
        isEmpty={page?.messages.length === 0}
        onOlder={next === null ? null : () => older.more(next)}
        onReply={write ? (message) => (replyTo.value = message) : null}
      />
      {write ? (
        <Composer
          key={`${channel}-${partner}`}
          channel={channel === null ? 0 : Number(channel)}
          partner={partner}
          replyTo={replyTo}
          onSent={newest.reload}
        />
      ) : (
        <p class="faint about">{t.messages.readOnly}</p>
      )}
    </Page>
  )
}

/** Pages before the newest one, kept while the conversation stays the same. */
function useOlder(key: string, load: (before: number) => Promise<MessagePage>) {
  const messages = useSignal<readonly Message[]>([])
  const next = useSignal<number | null>(null)
  const isLoaded = useSignal(false)
  const { error, run } = useAction()
  useEffect(() => {
    messages.value = []
    isLoaded.value = false
  }, [key])
  const more = (before: number) =>
    void run(async () => {
      const page = await load(before)
      messages.value = [...messages.value, ...page.messages]
      next.value = page.nextBefore
      isLoaded.value = true
    })
  return { messages: messages.value, next: next.value, isLoaded: isLoaded.value, error: error.value, more }
}

/** Oldest first, each once. */
function merge(newer: readonly Message[], older: readonly Message[]): Message[] {
  const byId = new Map([...older, ...newer].map((message) => [message.id, message]))
  return [...byId.values()].toSorted((a, b) => a.id - b.id)
}

function Search({ q }: { q: string }) {
  const typed = useSignal(q)
  useEffect(() => {
    const timer = setTimeout(() => {
      if (typed.value.trim() !== q) setQuery({ q: typed.value.trim() })
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [typed.value])
  return (
    <SearchBox
      label={t.messages.searchLabel}
      hint={t.messages.searchHint}
      value={typed.value}
      onInput={(text) => (typed.value = text)}
    />
  )
}

type Conversation = { readonly path: string; readonly name: string; readonly isOpen: boolean }

/** Channels and partners that the messages at hand tell of. */
function Conversations(props: { messages: readonly Message[]; channel: string | null; partner: string | null }) {
  const known = useSignal({ channels: new Set([0]), partners: new Map<string, number>() })
  useEffect(() => {
    const { channels, partners } = known.peek()
    const before = channels.size + partners.size
    for (const message of props.messages) {
      if (message.toNodeNum === BROADCAST) channels.add(message.channel)
      else if (message.direction === 'out') partners.set(message.toNodeId, message.toNodeNum)
      else partners.set(message.fromNodeId, message.fromNodeNum)
    }
    if (channels.size + partners.size !== before) known.value = { channels, partners }
  }, [props.messages])
  const { channel, partner } = props
  const named = useLoad(() => ask(api.channels.$get()), [])
  const channelName = (index: number) =>
    named.data.value?.channels.find((one) => one.index === index && one.name !== '')?.name ?? t.messages.channel(index)
  const { channels, partners } = known.value
  const all: Conversation[] = [
    { path: '/messages', name: t.messages.all, isOpen: channel === null && partner === null },
    ...[...new Set([...channels, ...usedSlots(named.data.value?.channels ?? [])])]
      .toSorted((a, b) => a - b)
      .map((index) => ({
        path: `/messages?channel=${index}`,
        name: channelName(index),
        isOpen: channel === String(index),
      })),
    ...[...new Set([...partners.keys(), ...(partner === null ? [] : [partner])])].map((id) => ({
      path: `/messages?with=${id}`,
      name: partnerName(id),
      isOpen: partner === id,
    })),
  ]
  return (
    <nav class="chips" aria-label={t.messages.conversations}>
      {all.map(({ path, name, isOpen }) => (
        <a key={path} class="chip" href={href(path)} aria-current={isOpen ? 'true' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  )
}

function usedSlots(channels: readonly { readonly index: number; readonly role: string }[]): number[] {
  return channels.flatMap(({ index, role }) => (role === 'DISABLED' ? [] : [index]))
}

function partnerName(nodeId: string): string {
  const node = nodeByNum(Number.parseInt(nodeId.slice(1), 16))
  return node === undefined ? nodeId : nodeName(node)
}

function Log(props: {
  messages: readonly Message[]
  isEmpty: boolean
  onOlder: (() => void) | null
  onReply: ((message: Message) => void) | null
}) {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const lastId = props.messages.at(-1)?.id
  useLayoutEffect(() => {
    // Who reads further up must not be dragged down by what arrives.
    if (box.current !== null && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight
  }, [lastId])
  const reactions = reactionsOf(props.messages)
  const texts = props.messages.filter(({ emoji }) => !emoji)
  return (
    <div
      class="log"
      ref={box}
      role="region"
      tabIndex={0}
      aria-label={t.messages.log}
      onScroll={({ currentTarget: at }) => (isAtEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40)}
    >
      {props.onOlder !== null && (
        <button type="button" class="button small" onClick={props.onOlder}>
          {t.messages.older}
        </button>
      )}
      {props.isEmpty && <p class="faint">{t.messages.none}</p>}
      <ol>
        {texts.map((message, index) => (
          <li key={message.id}>
            {dayOf(message) !== dayOf(texts[index - 1]) && <div class="day">{day(message.timestamp)}</div>}
            <MessageItem
              message={message}
              repliedTo={props.messages.find(({ packetId }) => packetId !== 0 && packetId === message.replyId)}
              reactions={reactions.get(message.packetId) ?? []}
              onReply={props.onReply}
            />
          </li>
        ))}
      </ol>
    </div>
  )
}

function dayOf(message: Message | undefined): string {
  return message === undefined ? '' : new Date(message.timestamp).toDateString()
}

function reactionsOf(messages: readonly Message[]): ReadonlyMap<number, Message[]> {
  const found = new Map<number, Message[]>()
  for (const message of messages) {
    if (!message.emoji || message.replyId === null) continue
    found.set(message.replyId, [...(found.get(message.replyId) ?? []), message])
  }
  return found
}
