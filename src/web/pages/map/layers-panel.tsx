import { useEffect } from 'preact/hooks'
import type { Signal } from '@preact/signals'
import { Select } from '../../parts/form/field.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { place, setQuery } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { coverageTexts } from '../../strings/mesh/coverage.ts'
import { t } from '../../strings.ts'
import { FAIR_DB, GOOD_DB } from '../../parts/mesh/snr.ts'
import { coverageChoice, mayCover, MEASURES } from './cells/choice.ts'
import {
  backgroundChoice,
  BACKGROUNDS,
  type LayerName,
  layerChoice,
  LAYERS,
  LINE_COUNTS,
  LINE_SIGNALS,
  lineLimits,
  shownLayers,
  usualOfLines,
} from './switches.ts'
import './layers-panel.css'

const Overlays = lazyPage(async () => (await import('./overlays/list.tsx')).Overlays)

/** Layers for users who may see the mesh's topology. */
const TOPOLOGY: ReadonlySet<LayerName> = new Set(['links', 'routes', 'heard', 'broker'])

function switchLayer(name: LayerName, isOn: boolean): void {
  layerChoice.keep({ ...layerChoice.value.peek(), [name]: isOn })
  const isAsked = place.peek().query.get(name) !== null
  if (isAsked || name === 'routes') setQuery({ [name]: '', ...(name === 'routes' && { trace: '' }) })
}

/** Switches for what the map shows, and limits for its lines. */
export function LayersPanel({ isOpen, hasTiles }: { isOpen: Signal<boolean>; hasTiles: boolean }) {
  useEffect(() => {
    const close = ({ key }: KeyboardEvent) => {
      // In a dialog the key is for the dialog.
      if (key === 'Escape' && document.querySelector('dialog[open]') === null) isOpen.value = false
    }
    document.addEventListener('keydown', close)
    return () => document.removeEventListener('keydown', close)
  }, [])
  const layers = shownLayers()
  const limits = lineLimits.value.value
  const mayHear = can('info', 'read') && !isAnonymous.value
  const names = LAYERS.filter((name) => {
    if (name === 'heard') return mayHear
    if (name === 'live') return has('events')
    return name === 'broker' ? layers.heard : !TOPOLOGY.has(name) || can('info', 'read')
  })
  // The built-in map is always light or dark like the pages.
  const backgrounds = BACKGROUNDS.filter((name) => hasTiles || name === 'auto' || name === 'none')
  return (
    <fieldset class="map-layers">
      <legend class="sr-only">{t.map.layers}</legend>
      {names.map((name) => (
        <label class="check" key={name}>
          <input
            type="checkbox"
            checked={layers[name]}
            onChange={(event) => switchLayer(name, event.currentTarget.checked)}
          />
          {t.map.layerNames[name]}
        </label>
      ))}
      <Overlays />
      <Select
        label={t.map.background}
        value={backgroundChoice.value.value}
        options={backgrounds.map((name) => [name, t.map.backgrounds[name]] as const)}
        onChange={backgroundChoice.keep}
      />
      {mayCover() && (
        <Select
          label={coverageTexts.title}
          value={coverageChoice.value.value}
          options={[
            ['', coverageTexts.off] as const,
            ...MEASURES.map((name) => [name, coverageTexts.by[name]] as const),
          ]}
          onChange={coverageChoice.keep}
        />
      )}
      {can('info', 'read') && (
        <>
          <RangeControl
            label={t.map.lineAge}
            fallback={usualOfLines(place.value.query)}
            onName={(range) => lineLimits.keep({ ...limits, range })}
          />
          <Select
            label={t.map.lineSignal}
            value={limits.signal}
            options={LINE_SIGNALS.map((signal) => [signal, signalName(signal)] as const)}
            onChange={(signal) => lineLimits.keep({ ...limits, signal })}
          />
          {layers.heard && (
            <Select
              label={t.map.least}
              value={limits.least}
              options={LINE_COUNTS.map((count) => [count, t.map.packets(Number(count))] as const)}
              onChange={(least) => lineLimits.keep({ ...limits, least })}
            />
          )}
        </>
      )}
    </fieldset>
  )
}

function signalName(signal: (typeof LINE_SIGNALS)[number]): string {
  return signal === '' ? t.map.anySignal : t.map.atLeast(signal === 'good' ? GOOD_DB : FAIR_DB)
}
