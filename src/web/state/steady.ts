import { type Signal, signal, useSignal } from '@preact/signals'
import { type RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

import { entryOf, isReturning } from '../router.ts'
import { awaited } from './load.ts'
import { arrange, type Arranged, isSameOrder, type Key } from './order.ts'
import { isWall } from './wall.ts'

/** A mouse that moved within this many milliseconds is about to press something. */
const MOUSE_MS = 3000
/** A finger is invisible before it touches, so a user who touched within this many milliseconds may touch again. */
const TOUCH_MS = 60_000

/** Whether the user is pointing at something on this page, or about to. */
export const isPointing = signal(false)

/** Follows mouse and fingers anywhere on the page. */
export function watchPointer(): void {
  let until = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    const left = until - Date.now()
    isPointing.value = left > 0
    timer = left > 0 ? setTimeout(look, left) : undefined
  }
  const note = ({ pointerType }: PointerEvent) => {
    until = Math.max(until, Date.now() + (pointerType === 'mouse' ? MOUSE_MS : TOUCH_MS))
    if (timer === undefined) look()
  }
  for (const kind of ['pointermove', 'pointerdown'] as const) {
    document.addEventListener(kind, note, { capture: true, passive: true })
  }
}

/** A mouse that rests for longer belongs to somebody who reads and is not about to press. */
const REST_MS = 10_000

/** A finger gives no warning before it touches, so lists for fingers never change their order by themselves. */
const fingers = matchMedia('(pointer: coarse)')

/**
 * Whether a mouse is about to press something in the box, or a finger may be. New content at its end must not scroll it
 * meanwhile.
 */
export function useAim(box: RefObject<HTMLElement | null>): Signal<boolean> {
  const isAiming = useSignal(fingers.matches)
  useEffect(() => {
    if (fingers.matches) return aimWhileVisible(isAiming)
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = (isOver: boolean) => {
      clearTimeout(timer)
      isAiming.value = isOver
      if (isOver) timer = setTimeout(() => (isAiming.value = false), REST_MS)
    }
    const move = ({ pointerType, target }: PointerEvent) =>
      look(pointerType === 'mouse' && target instanceof Node && box.current?.contains(target) === true)
    document.addEventListener('pointermove', move, { passive: true })
    return () => {
      clearTimeout(timer)
      document.removeEventListener('pointermove', move)
    }
  }, [])
  return isAiming
}

/** In a tab that was hidden, what has happened meanwhile may still move everything. */
function aimWhileVisible(isAiming: Signal<boolean>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.visibilityState !== 'visible') isAiming.value = false
    else timer = setTimeout(() => (isAiming.value = true), CATCH_UP_MS)
  }
  document.addEventListener('visibilitychange', look)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}

/** Whether the user points at, focuses, selects or has scrolled the content of the box. */
function useHeld(box: RefObject<HTMLElement | null>): boolean {
  const isHeld = useSignal(false)
  const isOver = useRef(false)
  useEffect(() => {
    const look = () => {
      const element = box.current
      isHeld.value =
        element !== null && (isOver.current || isFocused(element) || isSelected(element) || isScrolled(element))
    }
    // A mouse that already rested where the list was rendered does not point at it.
    const move = (event: PointerEvent) => {
      if (event.pointerType !== 'mouse') return
      isOver.current = event.target instanceof Node && box.current?.contains(event.target) === true
      look()
    }
    const leave = () => {
      isOver.current = false
      look()
    }
    // The next element gets the focus only after this one has lost it.
    const blur = () => queueMicrotask(look)
    document.addEventListener('pointermove', move, { passive: true })
    document.documentElement.addEventListener('pointerleave', leave)
    document.addEventListener('focusin', look)
    document.addEventListener('focusout', blur)
    document.addEventListener('selectionchange', look)
    document.addEventListener('scroll', look, { capture: true, passive: true })
    return () => {
      document.removeEventListener('pointermove', move)
      document.documentElement.removeEventListener('pointerleave', leave)
      document.removeEventListener('focusin', look)
      document.removeEventListener('focusout', blur)
      document.removeEventListener('selectionchange', look)
      document.removeEventListener('scroll', look, { capture: true })
    }
  }, [])
  return isHeld.value || isPointing.value
}

function isFocused(element: HTMLElement): boolean {
  return element.contains(document.activeElement)
}

function isSelected(element: HTMLElement): boolean {
  const selection = getSelection()
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true)
}

/** The beginning of the list is out of sight, because the list or the page was scrolled. */
function isScrolled(element: HTMLElement): boolean {
  const inner = element.querySelector('.virtual')
  return (inner?.scrollTop ?? 0) > 0 || element.getBoundingClientRect().top < 0
}

export type Steady<T> = Arranged<T> & {
  /** Wraps the list. */
  readonly box: RefObject<HTMLDivElement | null>
  /** Updates the order. */
  update(): void
}

type Shown<T> = { readonly rows: readonly T[]; readonly order: string }
/** By the entry of the history and the name of the list: what it showed last. */
const lists = new Map<string, Shown<unknown>>()
const MAX_LISTS = 20

/** Drops the lists of another user. */
export function forgetLists(): void {
  lists.clear()
}

function recall<T>(entry: string, name: string): Shown<T> | null {
  const key = `${entry} ${name}`
  const found = lists.get(key)
  // The latest are at the end; older ones are removed one by one.
  if (found !== undefined) lists.delete(key)
  const [oldest] = lists.keys()
  if (lists.size >= MAX_LISTS && oldest !== undefined) lists.delete(oldest)
  // Lists of the same name have rows of the same type.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return isReturning.peek() && found !== undefined ? (found as Shown<T>) : null
}

/** The time between two updates of the order of a list that nobody uses. */
const BEAT_MS = 10_000
/** A tab that was hidden for longer shows the current order when it becomes visible. */
const AWAY_MS = 10_000
/** The time in which the events that a hidden tab has missed arrive. */
const CATCH_UP_MS = 1000
const MOVE_MS = 300

/** Whether the first answers are here. Until then, and when the tab was hidden for long, rows may still move. */
function useSettled(hasRows: boolean): boolean {
  const hasBegun = useSignal(false)
  const isSettled = useRef(false)
  useEffect(() => {
    // The requests of the page have begun by now.
    hasBegun.value = true
    let hiddenAt = Infinity
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      const isHidden = document.visibilityState !== 'visible'
      const wasAway = !isHidden && Date.now() - hiddenAt > AWAY_MS
      hiddenAt = isHidden ? Date.now() : Infinity
      if (!wasAway) return
      isSettled.current = false
      hasBegun.value = false
      clearTimeout(timer)
      timer = setTimeout(() => (hasBegun.value = true), CATCH_UP_MS)
    }
    document.addEventListener('visibilitychange', look)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [])
  // Later requests, for the details of a row, change nothing.
  isSettled.current ||= hasRows && hasBegun.value && awaited.value === 0
  return isSettled.current
}

/** Counts the moments at which a list may change its order by itself. */
function useBeats(): number {
  const beats = useSignal(0)
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && !fingers.matches) beats.value++
    }, BEAT_MS)
    return () => clearInterval(timer)
  }, [])
  return beats.value
}

type Tops = ReadonlyMap<Element, number>

const rowsIn = (box: HTMLElement) => box.querySelectorAll('tbody > tr:not(.gap), li')

/** Where the rows in the box are now. */
function topsIn(box: HTMLElement | null): Tops | null {
  if (box === null || matchMedia('(prefers-reduced-motion: reduce)').matches) return null
  return new Map([...rowsIn(box)].map((row) => [row, row.getBoundingClientRect().top]))
}

/** Moves the rows from where they were to where they are. */
function showMoves(box: HTMLElement, before: Tops): void {
  const { height } = box.getBoundingClientRect()
  const tops = [...rowsIn(box)].map((row) => [row, row.getBoundingClientRect().top] as const)
  for (const [row, top] of tops) {
    const from = before.get(row)
    const by = Math.max(-height, Math.min(height, (from ?? top) - top))
    if (from === undefined) row.animate({ opacity: [0, 1] }, MOVE_MS)
    else if (Math.abs(by) >= 1) row.animate({ translate: [`0 ${by}px`, '0 0'] }, { duration: MOVE_MS, easing: 'ease' })
  }
}

/**
 * Keeps the order of a list; the values of its rows still change. With a mouse, the order changes every `BEAT_MS`, and
 * only while nobody points at the list, focuses, selects or has scrolled it; with fingers, only on request. Another
 * `order`, chosen by sorting and filtering, applies at once. On return to a page, the list of this name is as it was
 * left.
 */
export function useSteady<T>(name: string, fresh: readonly T[], keyOf: (row: T) => Key, order = ''): Steady<T> {
  const box = useRef<HTMLDivElement>(null)
  const isHeld = useHeld(box) || isReturning.value
  const entry = useRef(entryOf())
  const last = useRef<Shown<T> | null>(null)
  last.current ??= recall<T>(entry.current, name) ?? { rows: [], order }
  const before = last.current
  const isSettled = useSettled(before.rows.length > 0)
  const updates = useSignal(0)
  const beats = useBeats()
  const drawn = useRef({ updates: 0, beats: 0, isHeld: false })
  const isAsked = drawn.current.updates !== updates.value
  // A list that was just left continues at once.
  const isDue = !fingers.matches && (drawn.current.beats !== beats || drawn.current.isHeld)
  // With fingers, only a list that comes in parts may still move.
  const isLoading = !isSettled && (!fingers.matches || fresh.length >= 2 * before.rows.length)
  const isAnother = before.rows.length === 0 || before.order !== order
  const isFree = isAnother || isAsked || (!isHeld && (isDue || isLoading || isWall.value))
  drawn.current = { updates: updates.value, beats, isHeld }
  const found = isFree ? { rows: fresh, newer: 0, isMoved: false } : arrange(before.rows, fresh, keyOf)
  const tops = useRef<Tops | null>(null)
  const isShown = isFree && isSettled && !isAnother && !isWall.value
  if (isShown && !isSameOrder(before.rows, fresh, keyOf)) tops.current = topsIn(box.current)
  useLayoutEffect(() => {
    if (tops.current !== null && box.current !== null) showMoves(box.current, tops.current)
    tops.current = null
  })
  last.current = { rows: found.rows, order }
  lists.set(`${entry.current} ${name}`, last.current)
  // What the next beat will show needs no button.
  const isWaiting = !isHeld && !fingers.matches
  const news = isWaiting ? { newer: 0, isMoved: false } : found
  return { ...news, rows: found.rows, box, update: () => updates.value++ }
}
