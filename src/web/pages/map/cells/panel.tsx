import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, askAs } from '../../../api.ts'
import { decimal } from '../../../format.ts'
import { distance } from '../../../measure.ts'
import { Age, now } from '../../../parts/age.tsx'
import { Select } from '../../../parts/form/field.tsx'
import { decibels } from '../../../parts/mesh/snr.ts'
import { Failure } from '../../../parts/notice.tsx'
import { useLoad } from '../../../state/load.ts'
import { coverageTexts } from '../../../strings/mesh/coverage.ts'
import { t } from '../../../strings.ts'
import { theme } from '../../../theme.ts'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import type { MeshMap } from '../view.ts'
import '../colouring/scales.css'
import './panel.css'
import { type Cell, edgesOf, scaleOf } from './cells.ts'
import { coverageChoice, type Measure, MEASURES } from './choice.ts'
import { type Asked, coverageOn, type CoverageLayer } from './layer.ts'

const POLL_MS = 60_000
const NONE: readonly Cell[] = []

/** How well is heard what is sent from where: cells on the map, their legend, and the numbers of one of them. */
export function Coverage({ map, by }: { map: MeshMap; by: Measure }) {
  const layer = useRef<CoverageLayer | null>(null)
  const asked = useSignal<Asked | null>(null)
  const picked = useSignal<Cell | 'nothing' | null>(null)
  useEffect(() => {
    const made = map.use(coverageOn)
    layer.current = made
    made.start(
      (next) => (asked.value = next),
      (cell) => (picked.value = cell ?? 'nothing'),
    )
    return made.stop
  }, [map])
  const { value } = asked
  const { data, error, reload } = useLoad(
    async () => {
      if (value === null) return NONE
      const query = { bounds: value.bounds, bits: String(value.bits) }
      const found = await askAs<{ features: readonly Cell[] }>(api.coverage.$get({ query }))
      return found.features
    },
    [value?.bounds, value?.bits],
    POLL_MS,
  )
  const cells = data.value ?? NONE
  const scale = scaleOf(by)
  const chosen = picked.value
  const shown = chosen === null || chosen === 'nothing' ? null : (cells.find((cell) => isSame(cell, chosen)) ?? null)
  useEffect(() => layer.current?.show(cells, scale, shown, now.peek()), [map, cells, scale, shown, theme.value])
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    // After the map has read its colours again.
    const redraw = () => requestAnimationFrame(() => layer.current?.show(cells, scale, shown, now.peek()))
    scheme.addEventListener('change', redraw)
    return () => scheme.removeEventListener('change', redraw)
  })
  return (
    <section class="map-coverage" aria-label={coverageTexts.title}>
      <Select
        label={coverageTexts.colour}
        value={by}
        options={MEASURES.map((name) => [name, coverageTexts.by[name]] as const)}
        onChange={coverageChoice.keep}
      />
      <ul class="coverage-legend">
        {scale.names.map((name, index) => (
          <li key={name}>
            <i class={scale.tokens[index]?.slice(2)} aria-hidden="true" />
            {name}
          </li>
        ))}
      </ul>
      <Failure error={error.value} retry={reload} />
      <div role="status">
        {shown !== null ? (
          <Numbers cell={shown} />
        ) : (
          <p>
            {data.value !== null && cells.length === 0
              ? coverageTexts.none
              : chosen === null
                ? coverageTexts.first
                : coverageTexts.nothing}
          </p>
        )}
      </div>
      <div class="actions">
        <button
          type="button"
          class="button small"
          onClick={() => (picked.value = layer.current?.middle() ?? 'nothing')}
        >
          {coverageTexts.middle}
        </button>
        <button type="button" class="button small" onClick={() => coverageChoice.keep('')}>
          {coverageTexts.close}
        </button>
      </div>
    </section>
  )
}

const isSame = (a: Cell, b: Cell) => {
  const [one, other] = [edgesOf(a), edgesOf(b)]
  return a.properties.bits === b.properties.bits && one.west === other.west && one.south === other.south
}

function Numbers({ cell }: { cell: Cell }) {
  const { packets, direct, bestSnr, medianSnr, bestRssi, medianRssi, minHops, maxHops, lastAt } = cell.properties
  const { west, south, north } = edgesOf(cell)
  const height = distanceMetres({ latitude: south, longitude: west }, { latitude: north, longitude: west })
  const dbm = (strength: number | null) => (strength === null ? '?' : `${decimal(strength, 0)} dBm`)
  return (
    <ul>
      {bestSnr === null ? (
        <li>{coverageTexts.notDirect}</li>
      ) : (
        <li>{coverageTexts.signal('SNR', decibels(bestSnr), decibels(medianSnr))}</li>
      )}
      {bestRssi !== null && <li>{coverageTexts.signal('RSSI', dbm(bestRssi), dbm(medianRssi))}</li>}
      {minHops !== null && maxHops !== null && (
        <li>
          {t.map.colourBy.hops}: {coverageTexts.hops(decimal(minHops, 0), decimal(maxHops, 0))}
        </li>
      )}
      <li>{coverageTexts.packets(packets, decimal(direct, 0))}</li>
      <li>
        {coverageTexts.by.age}: <Age at={lastAt} />
      </li>
      <li class="faint">{coverageTexts.size(distance(height))}</li>
    </ul>
  )
}
