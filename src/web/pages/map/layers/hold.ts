/** Until a press is a long one, and how far the finger may move meanwhile. */
const HOLD_MS = 600
const REACH_PX = 15

/** Tells of long presses as other browsers do, where the browser is Safari on a phone: it has no event for them. */
export function hold(box: HTMLElement): void {
  if (/chrome|crios|android|firefox/i.test(navigator.userAgent) || !/safari/i.test(navigator.userAgent)) return
  let end = () => {}
  box.addEventListener('touchstart', ({ touches, target }) => {
    end()
    const [first] = touches
    if (first === undefined || touches.length > 1) return
    const { clientX, clientY } = first
    const isOver = new AbortController()
    const timer = setTimeout(() => {
      end()
      // Otherwise the end of the press is a click.
      addEventListener('touchend', (event) => event.preventDefault(), { once: true, passive: false })
      target?.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX, clientY }))
    }, HOLD_MS)
    end = () => {
      clearTimeout(timer)
      isOver.abort()
    }
    const { signal } = isOver
    addEventListener('touchend', end, { signal })
    addEventListener('touchcancel', end, { signal })
    addEventListener(
      'touchmove',
      ({ touches: [moved] }) => {
        const far = moved === undefined ? Infinity : Math.hypot(moved.clientX - clientX, moved.clientY - clientY)
        if (far > REACH_PX) end()
      },
      { signal, passive: true },
    )
  })
}
