import { useEffect, useRef } from 'preact/hooks'
import '../map/map.css'
import { useLazyDrawing } from '../../parts/lazy-drawing.ts'
import { nodes, useNodes } from '../../state/mesh/nodes.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { useTiles } from '../map/data.ts'
import type { Shape } from './rule.ts'

/** The map on which an area is drawn. Its fields contain the same numbers, for users who cannot point. */
export function AreaMap({ shape, set }: { shape: Shape; set(shape: Shape): void }) {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef(set)
  latest.current = set
  const tiles = useTiles()
  const { drawing, hasFailed } = useLazyDrawing(box, async () => {
    const { createAreaDrawing } = await import('./area-drawing.ts')
    return (element) => createAreaDrawing(element, (drawn) => latest.current(drawn), tiles.reports)
  })
  const { wanted, turn, hasWorld } = tiles
  useEffect(
    () => drawing.value?.showTiles(wanted.value, hasWorld.value),
    [drawing.value, wanted.value, turn.value, hasWorld.value],
  )
  useEffect(() => {
    const placed = (nodes.peek() ?? []).flatMap(({ position }) =>
      position === null ? [] : [[position.latitude, position.longitude] as const],
    )
    drawing.value?.show(shape, placed)
  }, [drawing.value, JSON.stringify(shape), nodes.value === null])
  return (
    <>
      <p class="about">{shape.kind === 'polygon' ? alertTexts.drawPolygon : alertTexts.drawCircle}</p>
      <div class="map-box area-map">
        <div class="map" ref={box} role="region" aria-label={alertTexts.areaMap} />
        {tiles.attribution.value !== null && <p class="map-attribution">{tiles.attribution.value}</p>}
      </div>
      {hasFailed.value && <p class="bad">{t.map.failed}</p>}
      {shape.kind === 'polygon' && shape.points.length > 0 && (
        <button type="button" class="button small" onClick={() => set({ kind: 'polygon', points: [] })}>
          {alertTexts.clearCorners}
        </button>
      )}
    </>
  )
}
