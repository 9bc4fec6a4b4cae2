import type { Signal } from '@preact/signals'
import { t } from '../../strings.ts'

/** Shows or hides the toolbar `controls`; `used` is the number of filters that are set in it. */
export function FiltersButton({ isOpen, controls, used }: { isOpen: Signal<boolean>; controls: string; used: number }) {
  return (
    <button
      type="button"
      class="button"
      aria-expanded={isOpen.value}
      aria-controls={controls}
      onClick={() => (isOpen.value = !isOpen.value)}
    >
      {t.nodes.filters(used)}
    </button>
  )
}
