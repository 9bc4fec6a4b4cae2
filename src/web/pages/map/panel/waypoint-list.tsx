import { useSignal } from '@preact/signals'
import { api, send } from '../../../api.ts'
import { At } from '../../../parts/age.tsx'
import { askFirst } from '../../../parts/dialog.tsx'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import { say } from '../../../parts/notice.tsx'
import { nameOf, nodeByNum } from '../../../state/mesh/nodes.ts'
import { can, has, isAnonymous } from '../../../state/session.ts'
import { waypointTexts } from '../../../strings/mesh/waypoints.ts'
import { t } from '../../../strings.ts'
import { DEFAULT_ICON, type Waypoint } from '../waypoints/waypoint.ts'
import './waypoint-list.css'

const WaypointForm = lazyPage(async () => (await import('../waypoints/waypoint-form.tsx')).WaypointForm)

type Props = {
  waypoints: readonly Waypoint[]
  onPlace(place: { readonly latitude: number; readonly longitude: number }): void
}

/** The waypoints of the map, in words. */
export function Waypoints({ waypoints, onPlace }: Props) {
  const changed = useSignal<Waypoint | null>(null)
  return (
    <details class="map-part">
      <summary>{t.map.waypoints(waypoints.length)}</summary>
      <ul class="rows tight">
        {waypoints.map((waypoint) => (
          <li key={waypoint.id}>
            <div class="grow">
              <button type="button" class="link-button" onClick={() => onPlace(waypoint)}>
                <span aria-hidden="true">{waypoint.icon ?? DEFAULT_ICON} </span>
                {nameOfWaypoint(waypoint)}
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
                {waypoint.lockedTo !== null &&
                  ` · ${waypointTexts.lockedTo(nameOf(waypoint.lockedTo, idOf(waypoint.lockedTo)))}`}
              </div>
              {mayChange(waypoint) && <Changing waypoint={waypoint} onChange={() => (changed.value = waypoint)} />}
            </div>
          </li>
        ))}
      </ul>
      {changed.value !== null && <WaypointForm waypoint={changed.value} onClose={() => (changed.value = null)} />}
    </details>
  )
}

function Changing({ waypoint, onChange }: { waypoint: Waypoint; onChange(): void }) {
  const name = nameOfWaypoint(waypoint)
  const remove = () =>
    askFirst({
      text: waypointTexts.removeSure(name),
      confirm: waypointTexts.removeShort,
      isDangerous: true,
      act: async () => {
        await send(api.waypoints[':id'].$delete({ param: { id: String(waypoint.id) } }))
        say(waypointTexts.removed)
      },
    })
  return (
    <div class="waypoint-actions">
      <button type="button" class="button small" aria-label={waypointTexts.edit(name)} onClick={onChange}>
        {waypointTexts.editShort}
      </button>
      <button type="button" class="button small danger-quiet" aria-label={waypointTexts.remove(name)} onClick={remove}>
        {waypointTexts.removeShort}
      </button>
    </div>
  )
}

function nameOfWaypoint({ name }: Waypoint): string {
  return name === '' ? t.map.unnamedPlace : name
}

/** Only the node that locked a waypoint may change it. */
function mayChange({ lockedTo }: Waypoint): boolean {
  if (isAnonymous.value || !can('messages', 'write') || !has('radio')) return false
  return lockedTo === null || nodeByNum(lockedTo)?.isLocal === true
}

const idOf = (nodeNum: number) => `!${nodeNum.toString(16).padStart(8, '0')}`
