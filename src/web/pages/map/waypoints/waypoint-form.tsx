import { useSignal } from '@preact/signals'
import { MAX_REACTION, MAX_WAYPOINT_DESCRIPTION, MAX_WAYPOINT_NAME } from '../../../../shared/limits.ts'
import { api, ask } from '../../../api.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions, Field, handleForm, Select, Submit } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { useChannels } from '../../../state/messages/channels.ts'
import { waypointTexts } from '../../../strings/mesh/waypoints.ts'
import { t } from '../../../strings.ts'
import type { Waypoint } from './waypoint.ts'

type Ending = keyof typeof waypointTexts.endings
const ENDINGS = ['', '3600000', '28800000', '86400000', '604800000'] as const satisfies readonly Ending[]
const ICONS = ['📍', '⛺', '🏠', '🚗', '⛰', '💧', '🍽', '⚠', '🆘', '🏁']

/** Digits after the point, as radios store them. */
const DIGITS = 7

/** A place for a new waypoint, or the waypoint to change. */
type Props = {
  at?: { readonly lat: number; readonly lng: number }
  waypoint?: Waypoint
  onClose(): void
}

/** Shares a waypoint in the middle of the map, or changes one. */
export function WaypointForm({ at, waypoint, onClose }: Props) {
  const channels = useChannels()
  const { busy, error, run } = useAction()
  const ends = useSignal<Ending>((waypoint?.expiresAt ?? null) === null ? '' : 'keep')
  const channel = useSignal('0')
  const isLocked = useSignal((waypoint?.lockedTo ?? null) !== null)
  const latitude = waypoint?.latitude ?? at?.lat
  const longitude = waypoint?.longitude ?? at?.lng
  const open = channels.used.filter(channels.isOn)
  const save = handleForm(async (text) => {
    const isShared = await run(async () => {
      const json = {
        name: text('name').trim(),
        description: text('description').trim(),
        icon: text('icon').trim() === '' ? null : text('icon').trim(),
        latitude: Number(text('latitude')),
        longitude: Number(text('longitude')),
        expiresAt: endOf(ends.value, waypoint),
        locked: isLocked.value,
      }
      if (waypoint === undefined) await ask(api.waypoints.$post({ json: { ...json, channel: Number(channel.value) } }))
      else await ask(api.waypoints[':id'].$put({ param: { id: String(waypoint.id) }, json }))
    })
    if (!isShared) return
    say(waypointTexts.shared)
    onClose()
  })
  return (
    <Dialog title={waypoint === undefined ? t.map.newWaypoint : waypointTexts.change} onClose={onClose}>
      {waypoint === undefined && <p class="faint measure">{waypointTexts.help}</p>}
      <Failure error={error.value} />
      <form class="stack" onSubmit={save}>
        <Field
          label={waypointTexts.name}
          hint={waypointTexts.nameHint}
          name="name"
          defaultValue={waypoint?.name ?? ''}
          maxLength={MAX_WAYPOINT_NAME}
          autocomplete="off"
          required
          autofocus
        />
        <Field
          label={waypointTexts.description}
          hint={waypointTexts.descriptionHint}
          name="description"
          defaultValue={waypoint?.description ?? ''}
          maxLength={MAX_WAYPOINT_DESCRIPTION}
          autocomplete="off"
        />
        <Field
          label={waypointTexts.icon}
          hint={waypointTexts.iconHint}
          name="icon"
          defaultValue={waypoint?.icon ?? ''}
          list="waypoint-icons"
          maxLength={MAX_REACTION}
          autocomplete="off"
        />
        <datalist id="waypoint-icons">
          {ICONS.map((icon) => (
            <option value={icon} key={icon} />
          ))}
        </datalist>
        <Field
          label={waypointTexts.latitude}
          type="number"
          name="latitude"
          defaultValue={latitude?.toFixed(DIGITS) ?? ''}
          min={-90}
          max={90}
          step="any"
          required
        />
        <Field
          label={waypointTexts.longitude}
          type="number"
          name="longitude"
          defaultValue={longitude?.toFixed(DIGITS) ?? ''}
          min={-180}
          max={180}
          step="any"
          required
        />
        {waypoint === undefined && open.length > 1 && (
          <Select
            label={waypointTexts.channel}
            value={channel.value}
            options={open.map((index) => [String(index), channels.name(index)] as const)}
            onChange={(index) => (channel.value = index)}
          />
        )}
        <Select
          label={waypointTexts.ends}
          value={ends.value}
          options={endingsFor(waypoint).map((name) => [name, waypointTexts.endings[name]] as const)}
          onChange={(name) => (ends.value = name)}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={isLocked.value}
            onChange={(event) => (isLocked.value = event.currentTarget.checked)}
          />
          {waypointTexts.locked}
        </label>
        <Actions>
          <button type="button" class="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <Submit busy={busy.value} idle={waypointTexts.share} working={waypointTexts.sharing} />
        </Actions>
      </form>
    </Dialog>
  )
}

function endingsFor(waypoint: Waypoint | undefined): readonly Ending[] {
  return (waypoint?.expiresAt ?? null) === null ? ENDINGS : ['keep', ...ENDINGS]
}

function endOf(ending: Ending, waypoint: Waypoint | undefined): number | null {
  if (ending === 'keep') return waypoint?.expiresAt ?? null
  return ending === '' ? null : Date.now() + Number(ending)
}
