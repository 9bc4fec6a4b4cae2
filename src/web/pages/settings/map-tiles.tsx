import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask, BASE } from '../../api.ts'
import { recallView } from '../map/last-view.ts'
import { Actions, Field, formText, handleForm, Select, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction } from '../../state/load.ts'
import { can } from '../../state/session.ts'
import { settingsTexts } from '../../strings/system/settings.ts'
import { t } from '../../strings.ts'
import { MAX_ATTRIBUTION, MAX_TILE_URL } from '../../../shared/limits.ts'

type Settings = InferResponseType<typeof api.settings.$get>
type MapTiles = Settings['mapTiles']

const KINDS = ['configured', 'none', 'url', 'file'] as const satisfies readonly MapTiles['kind'][]
const DEFAULT_MAX_ZOOM = 19
const URL_HINT = 'https://tiles.example.org/{z}/{x}/{y}.png'

/** Chooses where the map gets its tiles, and shows some of them before they are saved. */
export function MapTilesCard({ settings, onSaved }: { settings: Settings; onSaved(settings: Settings): void }) {
  const { mapTiles: tiles } = settings
  const texts = settingsTexts.tiles
  const { busy, error, run } = useAction()
  const kind = useSignal<MapTiles['kind']>(tiles.kind)
  const preview = useSignal<string | null>(null)
  const isFixed = !can('settings', 'write')
  const own = tiles.kind === 'url' ? tiles : null
  const submit = handleForm(async (text) => {
    const next = readForm(kind.value, text)
    await run(async () => {
      const saved = await ask(api.settings.$put({ json: { mapTiles: next } }))
      // Only a reloaded page may show images of another host.
      if (hostsOf(next) === hostsOf(tiles)) onSaved(saved)
      else location.reload()
      say(settingsTexts.saved)
    })
  })
  const show = (form: HTMLFormElement | null) => {
    const url = form === null ? '' : formText(form)('url')
    preview.value = url === '' ? null : previewAddress(url)
  }
  return (
    <Card title={texts.title} help={texts.help}>
      <form onSubmit={submit} class="stack">
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
        <Failure error={error.value} />
        {!isFixed && (
          <Actions>
            {kind.value === 'url' && (
              <button type="button" class="button" onClick={(event) => show(event.currentTarget.form)}>
                {texts.preview}
              </button>
            )}
            <Submit busy={busy.value} idle={texts.save} working={t.common.saving} />
          </Actions>
        )}
      </form>
    </Card>
  )
}

function readForm(kind: MapTiles['kind'], text: (name: string) => string): MapTiles {
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
