import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { useAim } from '../../state/steady.ts'
import type { Conversation } from '../../state/messages/conversation.ts'
import { isWall } from '../../state/wall.ts'

/** At most this many pixels from an edge count as at the edge. */
const NEAR_PX = 48
const OLDER_PX = 240

export type Scroll = {
  readonly box: RefObject<HTMLDivElement | null>
  readonly isAtEnd: Signal<boolean>
  /** The latest message when the reader was at the end. */
  readonly seenId: Signal<number>
  onScroll(): void
  toEnd(): void
  jumpTo(id: number): void
}

/**
 * Keeps the reading position: at the end, new messages scroll into view; further up, the line being read stays in place
 * when messages are added before or after it. Near the top, older messages are loaded.
 */
export function useScroll(lastId: number, conversation: Conversation): Scroll {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useSignal(true)
  const seenId = useSignal(0)
  const anchor = useRef<Anchor | null>(null)
  const drawnLast = useRef(0)
  const isAiming = useAim(box)
  const waits = useRef(false)
  const toEnd = () => box.current?.scrollTo(0, box.current.scrollHeight)
  const onScroll = () => {
    const at = box.current
    if (at === null) return
    isAtEnd.value = at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_PX
    anchor.current = isAtEnd.value ? null : findAnchor(at)
    askOlder(at, conversation)
  }
  useLayoutEffect(() => {
    const at = box.current
    if (at === null) return
    if (!isAtEnd.peek()) keepAnchor(at, anchor.current)
    else if (drawnLast.current !== lastId) {
      // The user is about to press something here, so the end is shown once the mouse has left.
      if (isAiming.peek() && drawnLast.current > 0) {
        waits.current = true
        onScroll()
      } else toEnd()
    }
    drawnLast.current = lastId
    // Too few to scroll, so the user could not load more.
    if (!isWall.peek() && at.scrollHeight <= at.clientHeight) askOlder(at, conversation)
  })
  useEffect(() => {
    if (isAiming.value || !waits.current) return
    waits.current = false
    toEnd()
  }, [isAiming.value])
  useEffect(() => {
    if (isAtEnd.value) seenId.value = lastId
  }, [lastId, isAtEnd.value])
  useEffect(() => {
    if (box.current === null) return
    const observer = new ResizeObserver(() => {
      if (isAtEnd.peek()) toEnd()
    })
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  return { box, isAtEnd, seenId, onScroll, toEnd, jumpTo }
}

type Anchor = { readonly id: string; readonly top: number }

/** The first line in sight, and where it is. */
function findAnchor(box: HTMLElement): Anchor | null {
  const edge = box.getBoundingClientRect().top
  for (const item of box.querySelectorAll('li[id]')) {
    const { top, bottom } = item.getBoundingClientRect()
    if (bottom > edge) return { id: item.id, top: top - edge }
  }
  return null
}

function keepAnchor(box: HTMLElement, anchor: Anchor | null): void {
  const item = anchor === null ? null : document.getElementById(anchor.id)
  if (item === null || anchor === null) return
  const moved = item.getBoundingClientRect().top - box.getBoundingClientRect().top - anchor.top
  if (Math.abs(moved) >= 1) box.scrollTop += moved
}

function askOlder(box: HTMLElement, { hasOlder, isBusy, error, older }: Conversation): void {
  if (box.scrollTop < OLDER_PX && hasOlder && !isBusy && error === null) older()
}

function jumpTo(id: number): void {
  const item = document.getElementById(`message-${id}`)
  if (item === null) return
  item.scrollIntoView({ block: 'center' })
  const message = item.querySelector('article')
  message?.focus({ preventScroll: true })
}
