import { signal } from '@preact/signals'
import { options } from 'preact'

/** When printing, all rows of a list are rendered. */
export const isPrinting = signal(false)
const print = matchMedia('print')
print.addEventListener('change', () => setPrinting(print.matches))
addEventListener('beforeprint', () => setPrinting(true))
addEventListener('afterprint', () => setPrinting(false))

function setPrinting(is: boolean): void {
  // The browser prints what is rendered when this returns.
  const before = options.debounceRendering
  options.debounceRendering = (draw) => draw()
  isPrinting.value = is
  if (before === undefined) delete options.debounceRendering
  else options.debounceRendering = before
}
