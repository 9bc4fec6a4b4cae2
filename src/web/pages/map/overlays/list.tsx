import { useSignal } from '@preact/signals'
import { Icon } from '../../../parts/icon.tsx'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import { can } from '../../../state/session.ts'
import { overlayTexts } from '../../../strings/mesh/overlays.ts'
import { overlays, shownOverlays, switchOverlay, wantedOverlay } from './known.ts'
import './overlays.css'

const OverlaysDialog = lazyPage(async () => (await import('./dialog.tsx')).OverlaysDialog)

/** Switches for the overlays, among the layers of the map. */
export function Overlays() {
  const isManaging = useSignal(false)
  const known = overlays.value ?? []
  const isEditor = can('settings', 'write')
  if (known.length === 0 && !isEditor) return null
  return (
    <>
      {known.map(({ id, name }) => (
        <div class="overlay-row" key={id}>
          <label class="check">
            <input
              type="checkbox"
              checked={shownOverlays.value.some((each) => each.id === id)}
              onChange={(event) => switchOverlay(id, event.currentTarget.checked)}
            />
            <bdi>{name}</bdi>
          </label>
          <button
            type="button"
            class="icon-button"
            aria-label={overlayTexts.fit(name)}
            onClick={() => {
              switchOverlay(id, true)
              wantedOverlay.value = id
            }}
          >
            <Icon name="map" />
          </button>
        </div>
      ))}
      {isEditor && (
        <button type="button" class="button small" onClick={() => (isManaging.value = true)}>
          {overlayTexts.manage}
        </button>
      )}
      {isManaging.value && <OverlaysDialog onClose={() => (isManaging.value = false)} />}
    </>
  )
}
