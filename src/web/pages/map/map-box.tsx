import type { ComponentChildren, RefObject } from 'preact'
import { t } from '../../strings.ts'
import type { UsedTiles } from './data.ts'

type Props = { box: RefObject<HTMLDivElement | null>; tiles: UsedTiles; children: ComponentChildren }

/** The map itself with what lies above it, and where its background comes from. */
export function MapBox({ box, tiles, children }: Props) {
  return (
    <div class="map-box">
      <div class="map" ref={box} role="region" aria-label={t.map.label} />
      {children}
      {tiles.notice.value !== null && (
        <div class="map-notice" role="status">
          {tiles.notice.value}
          <button type="button" class="button small" onClick={tiles.retry}>
            {t.common.retry}
          </button>
        </div>
      )}
      {tiles.attribution.value !== null && <p class="map-attribution">{tiles.attribution.value}</p>}
    </div>
  )
}
