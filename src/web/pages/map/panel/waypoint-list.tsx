import { At } from '../../../parts/age.tsx'
import { t } from '../../../strings.ts'
import { DEFAULT_ICON, type Waypoint } from '../waypoint.ts'

type Props = {
  waypoints: readonly Waypoint[]
  onPlace(place: { readonly latitude: number; readonly longitude: number }): void
}

/** The waypoints of the map, in words. */
export function Waypoints({ waypoints, onPlace }: Props) {
  return (
    <details class="map-part">
      <summary>{t.map.waypoints(waypoints.length)}</summary>
      <ul class="rows tight">
        {waypoints.map((waypoint) => (
          <li key={waypoint.id}>
            <div class="grow">
              <button type="button" class="link-button" onClick={() => onPlace(waypoint)}>
                <span aria-hidden="true">{waypoint.icon ?? DEFAULT_ICON} </span>
                {waypoint.name === '' ? t.map.unnamedPlace : waypoint.name}
              </button>
              {waypoint.description !== '' && <div>{waypoint.description}</div>}
              <div class="faint">
                {waypoint.expiresAt === null ? (
                  t.map.noEnd
                ) : (
                  <>
                    {t.map.until} <At at={waypoint.expiresAt} />
                  </>
                )}
              </div>
            </div>
          </li>
        ))}
      </ul>
    </details>
  )
}
