import type { ComponentChildren } from 'preact'
import type { Steady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { Icon } from '../icon.tsx'

type Props = {
  steady: Pick<Steady<unknown>, 'box' | 'newer' | 'isMoved' | 'update'>
  /** Takes the remaining height of the page. */
  fill?: boolean
  children: ComponentChildren
}

/** A list that keeps its order while it is in use, and the button that updates the order. */
export function SteadyList({ steady, fill = false, children }: Props) {
  const { box, newer, isMoved, update } = steady
  return (
    <div class={fill ? 'steady steady-fill' : 'steady'} ref={box}>
      {children}
      {(newer > 0 || isMoved) && (
        <div class="steady-news">
          <button
            type="button"
            class="button small"
            onClick={({ detail }) => {
              update()
              // The button disappears, so keyboard users continue in the list.
              const next = box.current?.querySelector<HTMLElement>('[tabindex="0"], a, button')
              if (detail === 0) next?.focus()
            }}
          >
            <Icon name="down" />
            {newer > 0 ? t.common.newer(newer) : t.common.moved}
          </button>
        </div>
      )}
    </div>
  )
}
