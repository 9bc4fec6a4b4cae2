import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { decimal } from '../../../format.ts'
import { distance } from '../../../measure.ts'
import { rulerTexts } from '../../../strings/mesh/map-ruler.ts'
import type { Leg } from '../layers/legs.ts'
import type { Ruler } from '../layers/ruler.ts'
import type { MeshMap } from '../view.ts'
import './ruler-panel.css'

/** Measures along places that the user presses, or that he brings into the middle of the map by keyboard. */
export function RulerPanel({ map, onClose }: { map: MeshMap; onClose(): void }) {
  const ruler = useRef<Ruler | null>(null)
  const add = useRef<HTMLButtonElement>(null)
  const places = useSignal(0)
  const legs = useSignal<readonly Leg[]>([])
  useEffect(() => {
    let isGone = false
    const begin = async () => {
      const made = await map.ruler()
      if (isGone) return
      ruler.current = made
      made.start((count, next) => {
        places.value = count
        legs.value = next
      })
    }
    begin().catch(console.error)
    add.current?.focus()
    const press = (event: KeyboardEvent) => {
      if (event.key === 'Escape') onClose()
      else if (event.key === 'Backspace' && !(event.target instanceof HTMLInputElement)) ruler.current?.undo()
    }
    document.addEventListener('keydown', press)
    return () => {
      isGone = true
      document.removeEventListener('keydown', press)
      ruler.current?.stop()
    }
  }, [map])
  return (
    <section class="map-ruler" aria-label={rulerTexts.title}>
      <p role="status">{describe(places.value, legs.value)}</p>
      <div class="actions">
        <button ref={add} type="button" class="button small" onClick={() => ruler.current?.add(null)}>
          {rulerTexts.add}
        </button>
        <button
          type="button"
          class="button small"
          disabled={places.value === 0}
          onClick={() => {
            ruler.current?.undo()
            // A disabled button loses the focus.
            if (places.peek() === 0) add.current?.focus()
          }}
        >
          {rulerTexts.undo}
        </button>
        <button type="button" class="button small" onClick={onClose}>
          {rulerTexts.done}
        </button>
      </div>
    </section>
  )
}

function describe(places: number, legs: readonly Leg[]): string {
  const last = legs.at(-1)
  if (last === undefined) return places === 0 ? rulerTexts.first : rulerTexts.next
  const part = rulerTexts.leg(distance(last.meters), decimal(Math.round(last.degrees) % 360, 0))
  const total = legs.reduce((sum, { meters }) => sum + meters, 0)
  return legs.length === 1 ? part : rulerTexts.total(distance(total), part)
}
