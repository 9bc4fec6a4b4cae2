import { type Signal, useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { type api, BASE } from '../../api.ts'
import { recallView } from '../map/last-view.ts'
import { Field, formText, Select } from '../../parts/form/field.tsx'
import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { Card } from '../../parts/page.tsx'
import { has } from '../../state/session.ts'
import { backgroundTexts } from '../../strings/mesh/background.ts'
import { settingsTexts } from '../../strings/system/settings.ts'
import { MAX_ATTRIBUTION, MAX_TILE_URL } from '../../../shared/limits.ts'

export type MapTiles = InferResponseType<typeof api.settings.$get>['mapTiles']
export type TilesKind = MapTiles['kind']

const KINDS = ['configured', 'none', 'url', 'file'] as const satisfies readonly TilesKind[]
const DEFAULT_MAX_ZOOM = 19
const URL_HINT = 'https://tiles.example.org/{z}/{x}/{y}.png'

const RegionDialog = lazyPage(async () => (await import('../map/background/region-dialog.tsx')).RegionDialog)

type Props = { readonly tiles: MapTiles; readonly kind: Signal<TilesKind>; readonly isFixed: boolean }

/** Fields for where the map gets its tiles, which can be looked at before they are saved. */
export function MapTilesCard({ tiles, kind, isFixed }: Props) {
  const texts = settingsTexts.tiles
  const preview = useSignal<string | null>(null)
  const isRegion = useSignal(false)
  const own = tiles.kind === 'url' ? tiles : null
  const show = (form: HTMLFormElement | null) => {
    const url = form === null ? '' : formText(form)('url')
    preview.value = url === '' ? null : previewAddress(url)
  }
  return (
    <Card title={texts.title} help={texts.help}>
      <div class="stack">
        {isFixed ? (
          <p>{texts.kinds[tiles.kind]}</p>
        ) : (
          <Select
            label={texts.source}
            value={kind.value}
            options={KINDS.map((name) => [name, texts.kinds[name]] as const)}
            onChange={(chosen) => {
              kind.value = chosen
              preview.value = null
            }}
          />
        )}
        <p class="faint">{texts.privacy[kind.value]}</p>
        {!isFixed && has('radio') && (
          <div>
            <button type="button" class="button named" onClick={() => (isRegion.value = true)}>
              {backgroundTexts.region.open}
            </button>
          </div>
        )}
        {isRegion.value && (
          <RegionDialog isHidden={own !== null || tiles.kind === 'file'} onClose={() => (isRegion.value = false)} />
        )}
        {kind.value === 'url' && (
          <>
            <Field
              label={texts.url}
              name="url"
              hint={URL_HINT}
              defaultValue={own?.url ?? ''}
              readOnly={isFixed}
              required
              maxLength={MAX_TILE_URL}
              spellcheck={false}
            />
            <Field
              label={texts.darkUrl}
              name="darkUrl"
              hint={texts.darkHint}
              defaultValue={own?.darkUrl ?? ''}
              readOnly={isFixed}
              maxLength={MAX_TILE_URL}
              spellcheck={false}
            />
            <Field
              label={texts.maxZoom}
              name="maxZoom"
              type="number"
              min={1}
              max={24}
              defaultValue={own?.maxZoom ?? DEFAULT_MAX_ZOOM}
              readOnly={isFixed}
              required
            />
          </>
        )}
        {(kind.value === 'url' || kind.value === 'file') && (
          <Field
            label={texts.attribution}
            name="attribution"
            hint={texts.attributionHint}
            defaultValue={'attribution' in tiles ? (tiles.attribution ?? '') : ''}
            readOnly={isFixed}
            maxLength={MAX_ATTRIBUTION}
          />
        )}
        {preview.value !== null && (
          <iframe class="tiles-preview" src={preview.value} title={texts.preview} sandbox="allow-same-origin" />
        )}
        {!isFixed && kind.value === 'url' && (
          <div>
            <button type="button" class="button" onClick={(event) => show(event.currentTarget.form)}>
              {texts.preview}
            </button>
          </div>
        )}
      </div>
    </Card>
  )
}

/** The tiles that a form with these fields describes. */
export function readTiles(kind: TilesKind, text: (name: string) => string): MapTiles {
  const orNull = (name: string) => (text(name).trim() === '' ? null : text(name).trim())
  if (kind === 'file') return { kind, attribution: orNull('attribution') }
  if (kind !== 'url') return { kind }
  return {
    kind,
    url: text('url').trim(),
    darkUrl: orNull('darkUrl'),
    maxZoom: Number(text('maxZoom')),
    attribution: orNull('attribution'),
  }
}

/** Whether a page needs other hosts for its images: only a reloaded page may show them. */
export function areOtherHosts(before: MapTiles, after: MapTiles): boolean {
  return hostsOf(before) !== hostsOf(after)
}

/** The hosts on which the page's content security policy depends. */
function hostsOf(tiles: MapTiles): string {
  if (tiles.kind !== 'url') return tiles.kind
  return JSON.stringify([tiles.url, tiles.darkUrl].map((url) => /^https?:\/\/[^/]+/.exec(url ?? '')?.[0] ?? null))
}

/** Tiles around the middle of the last view of the map. */
function previewAddress(url: string): string {
  const { lat, lng, zoom } = recallView() ?? { lat: 50, lng: 10, zoom: 5 }
  const query = new URLSearchParams({
    url: url.trim(),
    latitude: lat.toFixed(4),
    longitude: (((((lng + 180) % 360) + 360) % 360) - 180).toFixed(4),
    zoom: String(Math.max(0, Math.min(18, Math.floor(zoom)))),
  })
  return `${BASE}api/map/preview?${query.toString()}`
}
