import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { online } from '../../api.ts'
import { useAim } from '../../state/steady.ts'
import type { Conversation } from '../../state/messages/conversation.ts'
import type { Message } from '../../state/mesh/nodes.ts'
import { isPrinting } from '../../parts/list/printing.ts'
import { isWall } from '../../state/wall.ts'
import { extend, find, firstSpan, hold, type HeldSpan, latestSpan, type Span, spanAround, widen } from './span.ts'

/** At most this many pixels from an edge count as at the edge. */
const NEAR_PX = 48
const OLDER_PX = 240

export type Scroll = {
  readonly box: RefObject<HTMLDivElement | null>
  readonly isAtEnd: Signal<boolean>
  /** The latest message when the reader was at the end. */
  readonly seenId: Signal<number>
  /** The texts to draw. */
  readonly drawn: Span
  onScroll(): void
  onKeyDown(event: KeyboardEvent): void
  /** Draws texts before and after those that are drawn. */
  earlier(): void
  later(): void
  toEnd(): void
  jumpTo(id: number): void
}

/** Where to go once it is drawn: to one of the edges, or to a message. */
type Target = 'start' | 'end' | number

/**
 * Keeps the reading position: at the end, new messages scroll into view, unless something there may be pressed at this
 * moment; further up, the line being read stays in place
 * when messages are added before or after it. Only texts near the view are drawn: where they run out, others are added,
 * and those far from it are removed. Near the top, older messages are loaded. `sentId`: the message that was last sent
 * here, or 0.
 */
export function useScroll(texts: readonly Message[], conversation: Conversation, sentId: number): Scroll {
  const lastId = texts.at(-1)?.id ?? 0
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useSignal(true)
  const seenId = useSignal(0)
  const anchor = useRef<Anchor | null>(null)
  const drawnLast = useRef(0)
  const wasKept = useRef(false)
  const lastTop = useRef(0)
  const isAiming = useAim(box)
  const waits = useRef(false)
  const target = useRef<Target | null>(null)
  const { span, drawn, draw } = useSpan(texts, isWall.value || (isAtEnd.value && !isAiming.value), box)
  const latest = useRef(texts)
  latest.current = texts
  const go = (to: Target, next: HeldSpan) => {
    target.current = to
    isAtEnd.value = to === 'end'
    draw(next)
  }
  const toBottom = (at: HTMLElement) => {
    at.scrollTo(0, at.scrollHeight)
    // Known again after the event of this scrolling.
    anchor.current = null
  }
  const toEnd = () => go('end', hold(texts, latestSpan(texts)))
  const look = (at: HTMLElement) => {
    const isLast = span.end === texts.length && !conversation.hasNewer
    isAtEnd.value = isLast && at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_PX
    anchor.current = findAnchor(at)
    lastTop.current = at.scrollTop
  }
  const refill = (at: HTMLElement) => {
    if (isWall.peek()) return
    const isFilled = at.scrollHeight > at.clientHeight
    // Somebody who is at the end could not load more if there are too few to scroll.
    if (span.first === 0 && !(isAtEnd.peek() && isFilled)) askOlder(at, conversation)
    if (isAtEnd.peek() && !isAiming.peek()) return
    const next = extend(at, span, texts.length)
    if (next !== span) draw(hold(texts, next))
  }
  useLayoutEffect(() => {
    const at = box.current
    if (at === null || isPrinting.peek()) return
    const before = drawnLast.current
    drawnLast.current = lastId
    const isNew = before !== lastId
    const isFirst = before === 0 || wasKept.current
    wasKept.current = conversation.isKept
    if (target.current !== null) {
      if (target.current === 'end') toBottom(at)
      else {
        show(at, target.current)
        look(at)
      }
      target.current = null
    } else if (isAtEnd.peek() && (isNew ? isFirst || !isAiming.peek() : anchor.current === null)) toBottom(at)
    else {
      keepAnchor(at, anchor.current)
      lastTop.current = at.scrollTop
      // The user may be about to press something here, so the end is shown once the mouse has left, or on request.
      waits.current ||= isAtEnd.peek() && isNew
      if (waits.current) look(at)
    }
    refill(at)
  })
  useEffect(() => {
    if (isAiming.value || !waits.current) return
    waits.current = false
    toEnd()
  }, [isAiming.value])
  useEffect(() => {
    if (sentId > 0) toEnd()
  }, [sentId])
  useEffect(() => {
    if (!isAtEnd.value) return
    seenId.value = lastId
    conversation.forgetOlder()
  }, [lastId, isAtEnd.value])
  useEffect(() => {
    if (box.current === null) return
    const observer = new ResizeObserver(([entry]) => {
      if (isAtEnd.peek() && entry?.target instanceof HTMLElement) toBottom(entry.target)
    })
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  const actions: Omit<Scroll, 'box' | 'isAtEnd' | 'seenId' | 'drawn'> = {
    onScroll: () => {
      const at = box.current
      if (at === null || isPrinting.peek()) return
      // Somebody who scrolls up under the mouse wants to read there.
      if (at.scrollTop < lastTop.current) waits.current = false
      look(at)
      refill(at)
    },
    onKeyDown: (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
      if (event.key === 'Home') go('start', hold(texts, firstSpan(texts)))
      else if (event.key === 'End') actions.toEnd()
      else return
      event.preventDefault()
    },
    earlier: () => {
      if (span.first === 0) conversation.older()
      else {
        isAtEnd.value = false
        draw(hold(texts, widen(span, texts.length, -1)))
      }
    },
    later: () => {
      if (span.end === texts.length) actions.toEnd()
      else draw(hold(texts, widen(span, texts.length, 1)))
    },
    toEnd: () => {
      if (conversation.hasNewer) void conversation.restart().then(toEnd)
      else toEnd()
    },
    jumpTo: (id) => {
      const index = latest.current.findIndex((text) => text.id === id)
      if (index >= 0) go(id, hold(latest.current, spanAround(latest.current, index)))
    },
  }
  return { box, isAtEnd, seenId, drawn, ...actions }
}

type Spans = { readonly span: Span; readonly drawn: Span; draw(next: HeldSpan): void }

/** The texts near the view, or the latest ones while these are followed; on paper, all. */
function useSpan(texts: readonly Message[], isFollowing: boolean, box: RefObject<HTMLElement | null>): Spans {
  const [, setTurns] = useState(0)
  const held = useRef<HeldSpan>({ firstId: 0, lastId: 0 })
  const span = (isFollowing ? null : find(texts, held.current)) ?? latestSpan(texts)
  held.current = hold(texts, span)
  const drawn = isPrinting.value ? { first: 0, end: texts.length } : span
  keepFocus(box.current, texts, drawn)
  return {
    span,
    drawn,
    draw: (next) => {
      held.current = next
      setTurns((turns) => turns + 1)
    },
  }
}

/** When the row that has the focus is no longer drawn, the box gets it. */
function keepFocus(box: HTMLElement | null, texts: readonly Message[], { first, end }: Span): void {
  const row = document.activeElement?.closest('li[id]')
  if (box === null || row === null || row === undefined || !box.contains(row)) return
  if (!texts.slice(first, end).some(({ id }) => row.id === rowId(id))) box.focus({ preventScroll: true })
}

/** A line, and where its end is: a day or a name at its beginning goes when those before it are drawn. */
type Anchor = { readonly id: string; readonly bottom: number }

/** The first line in sight. */
function findAnchor(box: HTMLElement): Anchor | null {
  const edge = box.getBoundingClientRect().top
  for (const item of box.querySelectorAll('li[id]')) {
    const { bottom } = item.getBoundingClientRect()
    if (bottom > edge) return { id: item.id, bottom: bottom - edge }
  }
  return null
}

function keepAnchor(box: HTMLElement, anchor: Anchor | null): void {
  const item = anchor === null ? null : document.getElementById(anchor.id)
  if (item === null || anchor === null) return
  const moved = item.getBoundingClientRect().bottom - box.getBoundingClientRect().top - anchor.bottom
  if (Math.abs(moved) >= 1) box.scrollTop += moved
}

function askOlder(box: HTMLElement, { hasOlder, isBusy, error, older }: Conversation): void {
  if (box.scrollTop < OLDER_PX && hasOlder && !isBusy && error === null && online.peek()) older()
}

/** The element of a text. */
export function rowId(id: number | string): string {
  return `message-${id}`
}

/** The id of the text in an element; null: it is none. */
export function idOfRow(row: string | null): string | null {
  return row?.startsWith(rowId('')) ? row.slice(rowId('').length) : null
}

function show(box: HTMLElement, target: 'start' | number): void {
  if (target === 'start') {
    box.scrollTo(0, 0)
    return
  }
  const item = document.getElementById(rowId(target))
  item?.scrollIntoView({ block: 'center' })
  item?.querySelector('article')?.focus({ preventScroll: true })
}
