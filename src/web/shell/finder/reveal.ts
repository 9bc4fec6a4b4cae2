/** A page that takes longer to load stays at its beginning. */
const WAIT_MS = 8000
/** Within this time, the closed dialog gives the focus back, and a new page focuses its heading. */
const SETTLE_MS = 1000
const SHINE_MS = 2500

/** What names a part of a page: controls, groups of them, cards and values. */
const NAMES = '#content :is(label, legend, h2, h3, dt, strong)'

/**
 * Goes to a page by `go`, and there to the part with one of these names, the first that is shown: it is focused, unless
 * the user does something before. Without names, it only goes there.
 */
export function reveal(names: readonly string[], go: () => void): void {
  go()
  if (names.length === 0) return
  let until = Date.now() + WAIT_MS
  let shown: HTMLElement | null = null
  const listening = new AbortController()
  const step = () => {
    if (listening.signal.aborted) return
    const found = find(names)
    if (found !== undefined && found !== shown) {
      show(found)
      if (shown === null) until = Date.now() + SETTLE_MS
      shown = found
    } else if (found !== undefined) focus(found)
    if (Date.now() < until) requestAnimationFrame(step)
    else listening.abort()
  }
  // The key that chose this has not been handled completely yet.
  requestAnimationFrame(() => {
    for (const kind of ['keydown', 'pointerdown', 'wheel'] as const) {
      addEventListener(kind, () => listening.abort(), { signal: listening.signal, passive: true })
    }
    step()
  })
}

function find(names: readonly string[]): HTMLElement | undefined {
  const all = [...document.querySelectorAll<HTMLElement>(NAMES)]
  return names.map((name) => all.find(({ textContent }) => textContent.trim() === name)).find((each) => each)
}

function show(mark: HTMLElement): void {
  const details = mark.closest('details')
  if (details !== null) details.open = true
  focus(mark)
  const box = mark.closest<HTMLElement>('.setting, .field, .switch-row, .segments, .facts > div') ?? mark
  box.scrollIntoView({ block: 'center' })
  const shine = { background: 'var(--accent-soft)', boxShadow: '0 0 0 6px var(--accent-soft)', borderRadius: '1px' }
  box.animate([shine, { ...shine, offset: 0.8 }, {}], SHINE_MS)
}

function focus(mark: HTMLElement): void {
  const control = controlOf(mark)
  if (control === null) mark.tabIndex = -1
  const focused = control ?? mark
  focused.focus({ preventScroll: true })
}

/** What can be changed under this name; null: nothing can, or it is a name of more than one control. */
function controlOf(mark: HTMLElement): HTMLElement | null {
  const control =
    mark instanceof HTMLLabelElement
      ? mark.control
      : mark.closest('legend')?.parentElement?.querySelector<HTMLElement>('input')
  return control?.matches(':enabled') ? control : null
}
