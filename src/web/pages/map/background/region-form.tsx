import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import '../map.css'
import { api, ask } from '../../../api.ts'
import { bytes } from '../../../format.ts'
import { Actions, Field, Submit } from '../../../parts/form/field.tsx'
import { useLazyDrawing } from '../../../parts/lazy-drawing.ts'
import { Failure, Problem } from '../../../parts/notice.tsx'
import { useLoad } from '../../../state/load.ts'
import { nodes, useNodes } from '../../../state/mesh/nodes.ts'
import { backgroundTexts } from '../../../strings/mesh/background.ts'
import type { Area, Bounds, Region } from './region.ts'

const MIN_ZOOM = 8
const MAX_ZOOM = 15
/** Web Mercator ends there. */
const MAX_LATITUDE = 85
/** Several changes in a row are measured once. */
const PAUSE_MS = 600
const SIDES = ['west', 'south', 'east', 'north'] as const
const SOMEWHERE: Area = { bounds: [10, 49, 11, 50], maxZoom: 13 }

type Props = { region: Region; isBusy: boolean; start(area: Area): void }

/** The area to download and its detail, with the size that this means. */
export function RegionForm({ region, isBusy, start }: Props) {
  const texts = backgroundTexts.region
  const first = region.wanted ?? region.suggestion ?? inUse(region) ?? SOMEWHERE
  const bounds = useSignal<Bounds>(first.bounds)
  const maxZoom = useSignal(Math.max(MIN_ZOOM, first.maxZoom))
  const area = { bounds: bounds.value, maxZoom: maxZoom.value }
  const measured = useMeasured(area)
  const size = measured.data.value
  const isTooLarge = size !== null && size.bytes > size.free
  const id = useId()
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        // The page Settings has a form around this one.
        event.stopPropagation()
        start(area)
      }}
    >
      <h3>{texts.choose}</h3>
      <p class="about">{texts.help}</p>
      <AreaMap bounds={bounds.value} set={(next) => (bounds.value = next)} />
      <details>
        <summary>{texts.exact}</summary>
        <div class="number-fields">
          {SIDES.map((side, index) => (
            <Field
              key={side}
              label={texts[side]}
              type="number"
              step="any"
              min={index % 2 === 0 ? -180 : -MAX_LATITUDE}
              max={index % 2 === 0 ? 180 : MAX_LATITUDE}
              value={String(bounds.value[index])}
              required
              onChange={({ currentTarget: { valueAsNumber: value } }) => {
                const [west, south, east, north] = bounds.value.with(index, value)
                if (Number.isFinite(value)) bounds.value = [west ?? 0, south ?? 0, east ?? 0, north ?? 0]
              }}
            />
          ))}
        </div>
      </details>
      <div class="field">
        <label for={id}>{texts.detail}</label>
        <input
          id={id}
          type="range"
          min={MIN_ZOOM}
          max={MAX_ZOOM}
          value={maxZoom.value}
          aria-valuetext={texts.shows(maxZoom.value)}
          onInput={({ currentTarget: { valueAsNumber: value } }) => (maxZoom.value = value)}
        />
        <div class="about">
          {texts.shows(maxZoom.value)}, {texts.zoomLevel(maxZoom.value)}
        </div>
      </div>
      <div role="status">
        {size === null && measured.error.value === null && <p class="faint">{texts.measuring}</p>}
        {size !== null && (
          <p>
            <strong>{texts.measured(bytes(size.bytes))}</strong>. {texts.free(bytes(size.free))}
          </p>
        )}
      </div>
      {isTooLarge && <Problem>{texts.tooLarge}</Problem>}
      <Failure error={measured.error.value} />
      <Actions>
        <Submit busy={isBusy || size === null || isTooLarge} idle={texts.start} working={texts.start} />
      </Actions>
    </form>
  )
}

function inUse({ bounds, maxZoom }: Region): Area | null {
  return bounds === null ? null : { bounds, maxZoom }
}

/** The size of the area once it has not changed for a moment; none while another one is asked for. */
function useMeasured({ bounds, maxZoom }: Area) {
  const key = JSON.stringify([bounds, maxZoom])
  const settled = useSignal(key)
  useEffect(() => {
    if (settled.peek() === key) return
    const timer = setTimeout(() => (settled.value = key), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [key])
  const loaded = useLoad(async () => {
    const json = { bounds, maxZoom }
    return { ...(await ask(api.map.region.preview.$post({ json }))), key: settled.value }
  }, [settled.value])
  if (loaded.data.value !== null && loaded.data.value.key !== key) return { ...loaded, data: { value: null } }
  return loaded
}

/** The area among the nodes. Its fields contain the same numbers, for users who cannot point. */
function AreaMap({ bounds, set }: { bounds: Bounds; set(bounds: Bounds): void }) {
  useNodes()
  const texts = backgroundTexts.region
  const box = useRef<HTMLDivElement>(null)
  const { drawing } = useLazyDrawing(box, async () => {
    const { createRegionDrawing } = await import('./region-drawing.ts')
    return createRegionDrawing
  })
  const placed = (nodes.value ?? []).flatMap(({ position }) => position ?? [])
  useEffect(() => drawing.value?.show(bounds, placed), [drawing.value, bounds, placed.length])
  return (
    <>
      <div class="map-box area-map">
        <div class="map" ref={box} role="region" aria-label={texts.map} />
      </div>
      <div>
        <button
          type="button"
          class="button small"
          onClick={() => {
            const seen = drawing.value?.seen()
            if (seen !== undefined) set(seen)
          }}
        >
          {texts.take}
        </button>
      </div>
    </>
  )
}
