/** The link by which a page was left: its address, and the element with an id around it, if it is in one. */
export type Followed = { readonly address: string; readonly row: string | null }

export function followedBy(link: Element): Followed {
  return { address: link.getAttribute('href') ?? '', row: link.closest('li[id], tr[id]')?.id ?? null }
}

/** A list that takes longer to load leaves the focus where it is. */
const WAIT_MS = 8000

/** On return to a page, focuses the link by which it was left, once it is rendered, unless the user was faster. */
export function focusAgain({ address, row }: Followed): void {
  const until = Date.now() + WAIT_MS
  const listening = new AbortController()
  for (const kind of ['keydown', 'pointerdown'] as const) {
    addEventListener(kind, () => listening.abort(), { signal: listening.signal, passive: true })
  }
  const place = row === null ? '#content' : `#${CSS.escape(row)}`
  const step = () => {
    if (listening.signal.aborted) return
    const link = document.querySelector<HTMLElement>(`${place} a[href="${CSS.escape(address)}"]`)
    // A page begins by focusing its heading.
    const hasBegun = document.activeElement?.tagName === 'H1'
    if (link !== null && hasBegun) link.focus({ preventScroll: true })
    if ((link === null || !hasBegun) && Date.now() < until) requestAnimationFrame(step)
    else listening.abort()
  }
  // The page must be rendered first.
  requestAnimationFrame(step)
}
