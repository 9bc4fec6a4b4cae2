import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { waypointTexts } from '../../../strings/mesh/waypoints.ts'
import type { Mark } from '../layers/pointing.ts'
import type { MeshMap } from '../view.ts'
import { WaypointForm } from './waypoint-form.tsx'

/** Room for the button, in pixels. */
const WIDTH = 200
const HEIGHT = 60

/** Shares a waypoint in the middle of the map, or, once that is sure, where it was pressed. */
export function Marking({ mark, map }: { mark: Signal<Mark | 'middle' | null>; map: MeshMap }) {
  const isSure = useSignal(false)
  const { value } = mark
  const close = () => (mark.value = null)
  if (value === null) return null
  if (value === 'middle') return <WaypointForm at={map.middle()} onClose={close} />
  if (isSure.value) return <WaypointForm at={value.at} onClose={close} />
  return <Here mark={value} key={value} onChoose={() => (isSure.value = true)} onClose={close} />
}

type Props = { mark: Mark; onChoose(): void; onClose(): void }

function Here({ mark: { x, y }, onChoose, onClose }: Props) {
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    const before = document.activeElement
    button.current?.focus({ preventScroll: true })
    const press = ({ target }: Event) => target !== button.current && onClose()
    addEventListener('pointerdown', press, { capture: true })
    return () => {
      removeEventListener('pointerdown', press, { capture: true })
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus()
    }
  }, [])
  // Within the map, and beside the finger.
  const translate = `${x > WIDTH ? '-100%' : '0'} ${y > HEIGHT ? '-120%' : '20%'}`
  return (
    <button
      ref={button}
      type="button"
      class="button"
      style={{ position: 'absolute', zIndex: 1100, left: `${x}px`, top: `${y}px`, translate }}
      onClick={onChoose}
      // Some browsers take the focus away from a button that is pressed.
      onMouseDown={(event) => event.preventDefault()}
      onKeyDown={({ key }) => key === 'Escape' && onClose()}
    >
      {waypointTexts.here}
    </button>
  )
}
