import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type Conversation, isSearch, type Wanted } from '../../state/messages/conversation.ts'
import { online } from '../../api.ts'
import { dayName } from '../../format.ts'
import { conversationOf, inbox, markRead, readNow } from '../../state/messages/inbox.ts'
import { BROADCAST, type Message, nameOf } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Kept } from '../../parts/list/kept.tsx'
import { say } from '../../parts/notice.tsx'
import { place, rowOnReturn } from '../../router.ts'
import { isWall } from '../../state/wall.ts'
import { t } from '../../strings.ts'
import type { Channels } from '../../state/messages/channels.ts'
import { readTerms } from '../../state/messages/terms.ts'
import { MessageItem } from './item.tsx'
import { idOfRow, rowId, type Scroll, useScroll } from './scroll.ts'
import { MINUTE_MS } from '../../../shared/time.ts'

type Props = {
  wanted: Wanted
  conversation: Conversation
  channels: Channels
  onReply: ((message: Message) => void) | null
  /** Takes a message that was sent again; null: the user may not send here. */
  onSent: ((message: Message) => void) | null
  /** The message that was last written here; 0: none. */
  sentId: number
}

/** The texts of a conversation, the latest last. */
export function MessageLog(props: Props) {
  const { wanted, conversation } = props
  const texts = (conversation.messages ?? []).filter((message) => !message.emoji && belongs(message, wanted))
  const scroll = useScroll(texts, conversation, props.sentId)
  const firstUnread = useReading(wanted, texts, scroll.isAtEnd)
  useLinked(conversation, scroll)
  return (
    <div class="log-box">
      <div
        class="log"
        ref={scroll.box}
        role="region"
        tabIndex={0}
        aria-label={t.messages.log}
        onScroll={scroll.onScroll}
        onKeyDown={scroll.onKeyDown}
      >
        <Before {...props} isEmpty={texts.length === 0} scroll={scroll} />
        <Texts {...props} texts={texts} scroll={scroll} firstUnread={firstUnread} />
        <After {...props} texts={texts} scroll={scroll} />
      </div>
      <ToEnd texts={texts} scroll={scroll} />
      <Announcer texts={texts} isOn={!isSearch(wanted)} />
    </div>
  )
}

/** Brings the message into sight that the page's address names, or in which a link was followed before returning. */
function useLinked(conversation: Conversation, scroll: Scroll): void {
  const before = useRef<string | null | undefined>(undefined)
  if (before.current === undefined) before.current = idOfRow(rowOnReturn())
  const linked = before.current ?? place.value.query.get('message')
  // Stored messages are replaced by the latest ones, if these arrive.
  const isKnown = conversation.messages !== null && (!conversation.isKept || !online.value)
  useEffect(() => {
    if (!isKnown || linked === null) return
    const jump = async () => {
      const found = await conversation.seek(({ id }) => String(id) === linked, Number(linked))
      if (found === null) say(t.messages.linkGone)
      // The found message must be rendered first.
      else requestAnimationFrame(() => scroll.jumpTo(found.id))
    }
    void jump()
  }, [isKnown, linked])
}

type BeforeProps = Props & { isEmpty: boolean; scroll: Scroll }

/** Above the first text: a button for earlier ones, or a note that there are none. */
function Before({ wanted, conversation, isEmpty, scroll }: BeforeProps) {
  const { messages, hasOlder, isBusy, lookedBack, isLooking, stopLooking, problem } = conversation
  if (problem !== null) return null
  if (lookedBack !== null && scroll.drawn.first === 0) {
    const when = dayName(lookedBack, new Date(now.value).toDateString())
    return (
      <div class="more">
        <span class="faint" role="status">
          {isLooking ? t.messages.lookingBack(when) : t.messages.lookedBack(when)}
        </span>{' '}
        <button type="button" class="button small" onClick={isLooking ? stopLooking : conversation.older}>
          {isLooking ? t.messages.stopLooking : t.messages.goOnLooking}
        </button>
      </div>
    )
  }
  if (hasOlder || scroll.drawn.first > 0) {
    return (
      <div class="more">
        <button type="button" class="button small" disabled={isBusy} onClick={scroll.earlier}>
          {isBusy ? t.common.loading : t.messages.older}
        </button>
      </div>
    )
  }
  if (messages === null || !isEmpty) return null
  return (
    <div class="faint">
      <p>{isSearch(wanted) ? t.messages.noMatch : t.messages.none}</p>
      {!isSearch(wanted) && <ConnectHelp />}
    </div>
  )
}

type AfterProps = Props & { texts: readonly Message[]; scroll: Scroll }

/** Below the last text that is drawn: a button for later ones, which come by scrolling, too. */
function After({ conversation: { hasNewer }, texts, scroll }: AfterProps) {
  if (scroll.drawn.end >= texts.length && !hasNewer) return null
  return (
    <div class="more">
      <button type="button" class="button small" onClick={scroll.later}>
        {t.messages.newer}
      </button>
    </div>
  )
}

type TextsProps = Props & { texts: readonly Message[]; scroll: Scroll; firstUnread: number }

function Texts({ wanted, conversation, channels, onReply, onSent, texts, scroll, firstUnread }: TextsProps) {
  const all = conversation.messages ?? []
  const reactions = reactionsOf(all)
  const byPacket = new Map(all.map((message) => [message.packetId, message]))
  const seek = async (packetId: number) => {
    const found = await conversation.seek((message) => message.packetId === packetId)
    // The found message must be rendered first.
    if (found !== null) requestAnimationFrame(() => scroll.jumpTo(found.id))
  }
  const { first, end } = scroll.drawn
  const rows = texts
    .slice(first, end)
    .map((message, index) => (
      <Row
        key={message.id}
        message={message}
        previous={texts[first + index - 1]}
        isFirstUnread={message.id === firstUnread}
        repliedTo={message.replyId === null ? undefined : byPacket.get(message.replyId)}
        reactions={reactions.get(message.packetId) ?? []}
        where={whereOf(message, wanted, channels)}
        onReply={message.toNodeNum !== BROADCAST || channels.isOn(message.channel) ? onReply : null}
        onSent={onSent}
        hit={isSearch(wanted) ? hitOf(wanted.q) : null}
        onJump={scroll.jumpTo}
        onSeek={!isSearch(wanted) && conversation.hasOlder ? (packetId) => void seek(packetId) : null}
      />
    ))
  // On a wall display, where nobody scrolls, the latest texts that fit completely are shown.
  return <ol>{isWall.value ? rows.toReversed() : rows}</ol>
}

/** The texts that are looked for, one a line. */
function hitOf(q: string): string {
  try {
    return readTerms(q).parts.join('\n')
  } catch {
    return ''
  }
}

/** A button to the latest text, for users who read further up. */
function ToEnd({ texts, scroll }: { texts: readonly Message[]; scroll: Scroll }) {
  if (scroll.isAtEnd.value) return null
  const missed = texts.filter(({ id }) => id > scroll.seenId.value).length
  return (
    <button type="button" class="button small to-end" onClick={scroll.toEnd}>
      <Icon name="down" />
      {missed > 0 ? t.messages.missed(missed) : t.messages.toEnd}
    </button>
  )
}

/** Direct messages use channel 0 too, and are in their own conversations. */
function belongs({ toNodeNum }: Message, { channel }: Wanted): boolean {
  return channel === null || toNodeNum === BROADCAST
}

/** The recipient of a message; null within one conversation. */
function whereOf({ toNodeNum, toNodeId, channel }: Message, wanted: Wanted, channels: Channels): string | null {
  if (wanted.partner !== null || wanted.channel !== null) return null
  return t.messages.to(toNodeNum === BROADCAST ? channels.name(channel) : nameOf(toNodeNum, toNodeId))
}

/** Marks visible messages as read; returns the first unread message at the time of opening. */
function useReading(wanted: Wanted, texts: readonly Message[], isAtEnd: Signal<boolean>): number {
  const { channel, partner } = wanted
  const id = partner !== null ? `with=${partner}` : channel === null ? null : `channel=${channel}`
  const lastId = texts.at(-1)?.id ?? 0
  const isVisible = useSignal(document.visibilityState === 'visible')
  const begin = useSignal<{ readonly readUpTo: (conversation: string) => number } | null>(null)
  useEffect(() => {
    const note = () => {
      isVisible.value = document.visibilityState === 'visible'
      // Messages that arrive while nobody looks are unread.
      if (!isVisible.value) begin.value = null
    }
    document.addEventListener('visibilitychange', note)
    return () => document.removeEventListener('visibilitychange', note)
  }, [])
  const isKnown = inbox.value !== null && lastId > 0
  useEffect(() => {
    if (!isKnown || isSearch(wanted) || !isVisible.value) return
    if (begin.peek() === null) begin.value = { readUpTo: readNow() }
    if (isAtEnd.value) markRead(id, lastId)
  }, [isKnown, lastId, isAtEnd.value, isVisible.value])
  const isUnread = (message: Message) =>
    message.direction === 'in' && message.id > (begin.value?.readUpTo(conversationOf(message)) ?? message.id)
  return texts.find(isUnread)?.id ?? 0
}

type RowProps = {
  message: Message
  previous: Message | undefined
  isFirstUnread: boolean
  repliedTo: Message | undefined
  reactions: readonly Message[]
  where: string | null
  onReply: ((message: Message) => void) | null
  onSent: ((message: Message) => void) | null
  /** The texts that are looked for, one a line; null: no search. */
  hit: string | null
  onJump(id: number): void
  /** Searches for a packet further up; null: there are no earlier messages. */
  onSeek: ((packetId: number) => void) | null
}

function Row(props: RowProps) {
  const { message, previous, repliedTo, reactions, where, onReply } = props
  const today = new Date(now.value).toDateString()
  const latest = useRef(props)
  latest.current = props
  const isContinued = previous !== undefined && continues(previous, message) && !props.isFirstUnread
  return (
    <li id={rowId(message.id)}>
      {dayOf(message) !== dayOf(previous) && <div class="day">{dayName(message.timestamp, today)}</div>}
      {props.isFirstUnread && <div class="day new">{t.messages.newHere}</div>}
      <Kept
        by={[
          message,
          isContinued,
          repliedTo,
          reactions.map(({ id, deliveryState }) => `${id}${deliveryState}`).join(),
          where,
          onReply === null,
          props.onSent === null,
          props.hit,
          props.onSeek === null,
        ]}
        draw={() => (
          <MessageItem
            message={message}
            isContinued={isContinued}
            repliedTo={repliedTo}
            reactions={reactions}
            where={where}
            onReply={onReply === null ? null : () => latest.current.onReply?.(message)}
            onSent={props.onSent}
            hit={props.hit}
            onJump={() => {
              if (repliedTo !== undefined) latest.current.onJump(repliedTo.id)
              else if (message.replyId !== null) latest.current.onSeek?.(message.replyId)
            }}
            mayBeOlder={props.onSeek !== null}
          />
        )}
      />
    </li>
  )
}

const TOGETHER_MS = 5 * MINUTE_MS

/** Whether a message needs no name above it. */
function continues(previous: Message, message: Message): boolean {
  return (
    previous.fromNodeNum === message.fromNodeNum &&
    previous.toNodeNum === message.toNodeNum &&
    previous.channel === message.channel &&
    // The lock at the name holds for all messages below it.
    previous.pkiEncrypted === message.pkiEncrypted &&
    previous.keyDoubt === message.keyDoubt &&
    message.replyId === null &&
    message.timestamp - previous.timestamp < TOGETHER_MS &&
    dayOf(previous) === dayOf(message)
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

const MAX_ANNOUNCED = 3

/** Announces new messages only, neither earlier ones nor those loaded from further up. */
function Announcer({ texts, isOn }: { texts: readonly Message[]; isOn: boolean }) {
  const lastId = texts.at(-1)?.id ?? 0
  const heard = useRef(0)
  const said = useSignal('')
  useEffect(() => {
    const fresh = texts.filter(({ id, direction }) => direction === 'in' && id > heard.current)
    if (heard.current > 0 && isOn && fresh.length > 0) {
      said.value = fresh
        .slice(-MAX_ANNOUNCED)
        .map(({ fromNodeNum, fromNodeId, text }) => `${nameOf(fromNodeNum, fromNodeId)}: ${text}`)
        .join('. ')
    }
    heard.current = lastId
  }, [lastId])
  return (
    <div class="sr-only" role="status">
      {said.value}
    </div>
  )
}
