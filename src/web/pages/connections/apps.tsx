import { useSignal } from '@preact/signals'
import { MAX_HOST, MAX_NETWORK_LIST } from '../../../shared/limits.ts'
import { forEachName, namesOf } from '../../../shared/names.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions, Field, handleForm, Select, Submit } from '../../parts/form/field.tsx'
import { Labelled } from '../../parts/form/labelled.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { isAdmin, user } from '../../state/session.ts'
import { appTexts } from '../../strings/system/apps.ts'
import { t } from '../../strings.ts'
import type { Connection, PortOptions } from './connection.ts'

const PUBLIC = 'public'
/** More are not offered in a list: the API takes any user. */
const MAX_USERS = 100

/** What apps may do, if the user of the port may. */
const POWERS = namesOf(appTexts.powers)
type Power = (typeof POWERS)[number]

/** The port where Meshtastic apps connect as to the radio of a connection. */
export function AppsDialog({
  connection,
  onClose,
  onSaved,
}: {
  connection: Connection
  onClose(): void
  onSaved(): void
}) {
  const before = connection.virtualNode?.options ?? null
  const own = user.value
  const users = useLoad(
    async () => (isAdmin.value ? (await ask(api.users.$get({ query: { limit: String(MAX_USERS) } }))).users : []),
    [],
  )
  const viewer = useSignal(before === null ? String(own?.id ?? PUBLIC) : String(before.userId ?? PUBLIC))
  const powers = useSignal<ReadonlySet<Power>>(new Set(POWERS.filter((name) => before?.[name] === true)))
  const saving = useAction()
  const put = (virtualNode: PortOptions | null) =>
    saving.run(async () => {
      await ask(api.connections[':id'].$put({ param: { id: String(connection.id) }, json: { virtualNode } }))
      say(virtualNode === null ? appTexts.closed : appTexts.opened)
      onSaved()
    })
  const save = handleForm(async (text) => {
    const lines = text('allowedNetworks').split(/[\s,]+/)
    await put({
      port: Number(text('port')),
      host: text('host').trim(),
      allowedNetworks: lines.filter((line) => line !== ''),
      userId: viewer.value === PUBLIC ? null : Number(viewer.value),
      ...forEachName(appTexts.powers, (name) => powers.value.has(name)),
    })
  })
  const others = (users.data.value ?? []).filter(({ id }) => id !== own?.id)
  const viewers: (readonly [string, string])[] = [
    ...(own === null ? [] : [[String(own.id), appTexts.asMe(own.username)] as const]),
    [PUBLIC, appTexts.asPublic],
    ...others.map(({ id, username }) => [String(id), username] as const),
  ]
  return (
    <Dialog title={appTexts.title(connection.name)} onClose={onClose}>
      <form class="stack" onSubmit={save}>
        <p class="faint">{appTexts.help}</p>
        <Field
          label={appTexts.port}
          name="port"
          type="number"
          min={1}
          max={65535}
          defaultValue={before?.port ?? 4403}
          required
        />
        <Field
          label={appTexts.host}
          name="host"
          hint={appTexts.hostHelp}
          defaultValue={before?.host ?? '127.0.0.1'}
          maxLength={MAX_HOST}
          autocomplete="off"
          required
        />
        <Labelled label={appTexts.networks} hint={appTexts.networksHelp}>
          {(aria) => (
            <textarea
              {...aria}
              name="allowedNetworks"
              rows={2}
              maxLength={MAX_NETWORK_LIST}
              defaultValue={before?.allowedNetworks.join('\n') ?? ''}
              autocomplete="off"
              spellcheck={false}
            />
          )}
        </Labelled>
        <Select
          label={appTexts.viewer}
          value={viewer.value}
          options={viewers}
          onChange={(next) => (viewer.value = next)}
        />
        <p class="warn">{appTexts.viewerHelp}</p>
        {POWERS.map((name) => (
          <Switch
            key={name}
            checked={powers.value.has(name)}
            hint={appTexts.powersHelp[name]}
            onChange={(isOn) => {
              const next = new Set(powers.value)
              if (isOn) next.add(name)
              else next.delete(name)
              powers.value = next
            }}
          >
            {appTexts.powers[name]}
          </Switch>
        ))}
        <Failure error={saving.error.value ?? users.error.value} />
        <Actions>
          {before !== null && (
            <button
              type="button"
              class="button danger-quiet"
              disabled={saving.busy.value}
              onClick={() => void put(null)}
            >
              {appTexts.close}
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <Submit
            busy={saving.busy.value}
            idle={before === null ? appTexts.open : t.common.save}
            working={t.common.saving}
          />
        </Actions>
      </form>
    </Dialog>
  )
}
