import { type Signal, signal, useSignal } from '@preact/signals'
import { type RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { entryOf, isReturning } from '../router.ts'
import { arrange, type Arranged, type Key } from './order.ts'

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

/** Whether a mouse is about to press something in the box. New content at its end must not scroll it meanwhile. */
export function useAim(box: RefObject<HTMLElement | null>): Signal<boolean> {
  const isAiming = useSignal(false)
  useEffect(() => {
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

/**
 * Keeps the order of a list while somebody points at it, focuses, selects or has scrolled it; the values of its rows
 * still change. Another `order`, chosen by sorting and filtering, applies at once. On return to a page, the list of
 * this name is as it was left.
 */
export function useSteady<T>(name: string, fresh: readonly T[], keyOf: (row: T) => Key, order = ''): Steady<T> {
  const box = useRef<HTMLDivElement>(null)
  const isHeld = useHeld(box)
  const entry = useRef(entryOf())
  const last = useRef<Shown<T> | null>(null)
  last.current ??= recall<T>(entry.current, name) ?? { rows: [], order }
  const updates = useSignal(0)
  const drawn = useRef(0)
  const isFree = !(isHeld || isReturning.value) || last.current.rows.length === 0 || last.current.order !== order
  const found =
    isFree || drawn.current !== updates.value
      ? { rows: fresh, newer: 0, isMoved: false }
      : arrange(last.current.rows, fresh, keyOf)
  drawn.current = updates.value
  last.current = { rows: found.rows, order }
  lists.set(`${entry.current} ${name}`, last.current)
  return { ...found, box, update: () => updates.value++ }
}
