import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

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
    const draw = async () => {
      const create = await load()
      if (isGone || box.current === null) return
      drawn = create(box.current)
      drawing.value = drawn
    }
    draw().catch((cause: unknown) => {
      console.error(cause)
      hasFailed.value = true
    })
    return () => {
      isGone = true
      drawn?.destroy()
    }
  }, [])
  return { drawing, hasFailed }
}
