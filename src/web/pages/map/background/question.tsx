import { useSignal } from '@preact/signals'
import { api, ask } from '../../../api.ts'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { has } from '../../../state/session.ts'
import { backgroundTexts } from '../../../strings/mesh/background.ts'
import { settingsTexts } from '../../../strings/system/settings.ts'
import './background.css'
import { RegionDialog } from './region-dialog.tsx'

const HOST = 'tile.openstreetmap.org'
const OPEN_STREET_MAP = {
  kind: 'url',
  url: `https://${HOST}/{z}/{x}/{y}.png`,
  darkUrl: null,
  maxZoom: 19,
  attribution: '© OpenStreetMap contributors',
} as const

/** Asks whoever may change settings, once for the installation, what the map shows under the nodes. */
export function Question({ onAnswer }: { onAnswer(): void }) {
  const { busy, error, run } = useAction()
  const isRegion = useSignal(false)
  const texts = backgroundTexts.question
  const choose = (mapTiles: typeof OPEN_STREET_MAP | { kind: 'none' }) =>
    run(async () => {
      await ask(api.settings.$put({ json: { mapTiles } }))
      // Only a reloaded page may show images of another host.
      if (mapTiles.kind === 'url') return location.reload()
      say(settingsTexts.saved)
      onAnswer()
    })
  const canRegion = has('radio')
  return (
    <>
      <section class="map-question" aria-label={texts.title}>
        <h2>{texts.title}</h2>
        <ul>
          <li>
            <button type="button" class="button" disabled={busy.value} onClick={() => void choose(OPEN_STREET_MAP)}>
              {texts.tiles}
            </button>
            <p>{texts.tilesHelp(HOST)}</p>
          </li>
          <li>
            <button
              type="button"
              class="button"
              disabled={busy.value || !canRegion}
              onClick={() => (isRegion.value = true)}
            >
              {texts.region}
            </button>
            <p>{canRegion ? texts.regionHelp : texts.regionEdge}</p>
          </li>
          <li>
            <button type="button" class="button" disabled={busy.value} onClick={() => void choose({ kind: 'none' })}>
              {texts.keep}
            </button>
            <p>{texts.keepHelp}</p>
          </li>
        </ul>
        <p class="faint">{texts.later}</p>
        <Failure error={error.value} />
      </section>
      {isRegion.value && (
        <RegionDialog
          onClose={() => {
            isRegion.value = false
            onAnswer()
          }}
        />
      )}
    </>
  )
}
