import { useEffect, useRef } from 'preact/hooks'
import type { Node } from '../../state/mesh/nodes.ts'
import { needPackets, watchLive } from '../../state/live.ts'
import { askedHeight } from './horizon/asked.ts'
import type { Circle } from './horizon/circle.ts'
import type { Pulses } from './live/pulses.ts'
import { heardIn } from './live/heard.ts'
import type { OverlayDrawing } from './overlays/drawing.ts'
import { refreshOverlays, shownOverlays } from './overlays/known.ts'
import type { Layers } from './switches.ts'
import type { MapParts } from './view.ts'

type Props = { parts: MapParts; layers: Layers; chosen: Node | null }

/** What the map stands without: each part is loaded once it has something to show. */
export function Extras({ parts, layers, chosen }: Props) {
  useOverlays(parts)
  usePulses(parts, layers.live)
  useHorizon(parts, chosen)
  return null
}

function useOverlays(parts: MapParts): void {
  const shown = shownOverlays.value
  const drawing = useLater(
    shown.length > 0,
    async () => (await import('./overlays/drawing.ts')).createOverlayDrawing(parts),
    (made: OverlayDrawing) => made.show(shownOverlays.peek()),
  )
  useEffect(() => {
    void refreshOverlays()
  }, [])
  useEffect(() => drawing.current?.show(shown), [shown])
}

function usePulses(parts: MapParts, isOn: boolean): void {
  const pulses = useLater(
    isOn,
    async () => (await import('./live/pulses.ts')).createPulses(parts),
    (_made: Pulses) => {},
  )
  useEffect(() => {
    if (!isOn) return pulses.current?.clear()
    const stopNeeding = needPackets()
    const stopWatching = watchLive(['node'], (event) => {
      const heard = heardIn(event)
      if (heard !== null) pulses.current?.add(heard)
    })
    return () => {
      stopWatching()
      stopNeeding()
    }
  }, [isOn])
}

function useHorizon(parts: MapParts, chosen: Node | null): void {
  const height = askedHeight()
  const { latitude, longitude } = chosen?.position ?? {}
  const wanted = height !== null && latitude !== undefined && longitude !== undefined
  const show = (made: Circle) => made.show(wanted ? { latitude, longitude, height } : null)
  const circle = useLater(
    wanted,
    async () => (await import('./horizon/circle.ts')).createCircle(parts),
    (made: Circle) => show(made),
  )
  useEffect(() => {
    if (circle.current !== null) show(circle.current)
  }, [wanted, latitude, longitude, height])
}

/** What `make` loads and makes once it is wanted for the first time. `begin` gets it then. */
function useLater<T extends { stop(): void }>(isWanted: boolean, make: () => Promise<T>, begin: (made: T) => void) {
  const made = useRef<T | null>(null)
  const latest = useRef(begin)
  latest.current = begin
  const state = useRef({ hasBegun: false, isGone: false })
  useEffect(() => {
    if (!isWanted || state.current.hasBegun) return
    state.current.hasBegun = true
    const load = async () => {
      const found = await make()
      if (state.current.isGone) return found.stop()
      made.current = found
      latest.current(found)
    }
    // Without its code the map stands all the same.
    load().catch((cause: unknown) => {
      state.current.hasBegun = false
      console.error(cause)
    })
  }, [isWanted])
  useEffect(
    () => () => {
      state.current.isGone = true
      made.current?.stop()
    },
    [],
  )
  return made
}
