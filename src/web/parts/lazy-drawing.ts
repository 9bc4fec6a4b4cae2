import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** The pause before a failed load of code is repeated. */
export const AGAIN_MS = 3000

type Lazy<T> = { readonly drawing: Signal<T | null>; readonly hasFailed: Signal<boolean> }

/** Draws into a box once it exists, with code that is loaded on first use; removed with its component. */
export function useLazyDrawing<T extends { destroy(): void }>(
  box: { readonly current: HTMLDivElement | null },
  load: () => Promise<(box: HTMLDivElement) => T>,
): Lazy<T> {
  const drawing = useSignal<T | null>(null)
  const hasFailed = useSignal(false)
  useEffect(() => {
    let isGone = false
    let drawn: T | null = null
    let timer: ReturnType<typeof setTimeout> | undefined
    const fail = (cause: unknown) => {
      if (!hasFailed.peek()) console.error(cause)
      hasFailed.value = true
    }
    const draw = async () => {
      const create = await load().catch((cause: unknown) => {
        fail(cause)
        if (!isGone) timer = setTimeout(begin, AGAIN_MS)
        return null
      })
      if (isGone || create === null || box.current === null) return
      drawn = create(box.current)
      drawing.value = drawn
      hasFailed.value = false
    }
    const begin = () => void draw().catch(fail)
    begin()
    return () => {
      isGone = true
      clearTimeout(timer)
      drawn?.destroy()
    }
  }, [])
  return { drawing, hasFailed }
}
