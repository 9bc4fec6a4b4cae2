import { useSignal } from '@preact/signals'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'
import { api, ask, send } from '../../api.ts'
import { age, dateMinutes } from '../../format.ts'
import { Age, now } from '../../parts/age.tsx'
import { askFirst } from '../../parts/dialog.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LinkRow } from '../../parts/mesh/link-row.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { can, has, isAdmin, user } from '../../state/session.ts'
import { connectionKind, connectionTexts } from '../../strings/system/connections.ts'
import { appTexts } from '../../strings/system/apps.ts'
import { t } from '../../strings.ts'
import { AppsDialog } from './apps.tsx'
import { addressOf, ConnectDialog } from './connect.tsx'
import type { Connection, Connections } from './connection.ts'

const POLL_MS = 15_000

/** The radios and brokers of this service: added, changed, switched on and off. */
export function ConnectionsPage() {
  const { data, error, reload } = useLoad(() => ask(api.connections.$get()), [], POLL_MS, ['link'])
  const mayWrite = can('configuration', 'write') && has('radio')
  // The address of the page can open the dialog, for links that say "connect a radio".
  const isAdding = mayWrite && place.value.query.has('add')
  const setAdding = (isOpen: boolean) => setQuery({ add: isOpen ? 'radio' : '' })
  const known = data.value
  const add = mayWrite && (
    <button type="button" class="button primary" onClick={() => setAdding(true)}>
      <Icon name="plus" />
      {connectionTexts.add}
    </button>
  )
  return (
    <Page title={connectionTexts.title} actions={known !== null && known.connections.length > 0 && add}>
      <Failure error={error.value} retry={reload} />
      {known !== null && known.isDemo && (
        <Empty icon="radio">
          <p>{connectionTexts.demo}</p>
        </Empty>
      )}
      {known !== null && known.connections.length === 0 && has('radio') && !known.isDemo && (
        <Empty icon="radio" title={connectionTexts.none}>
          <p>{connectionTexts.noneHelp}</p>
          {add}
        </Empty>
      )}
      {known !== null && known.collectors.length === 0 && !has('radio') && (
        <Empty icon="radio" title={connectionTexts.none}>
          <p>{t.dashboard.noRadioHere}</p>
        </Empty>
      )}
      {known !== null && known.connections.length > 0 && <List connections={known.connections} reload={reload} />}
      {known !== null && known.collectors.length > 0 && <Collectors collectors={known.collectors} />}
      {isAdding && (
        <ConnectDialog
          connection={null}
          known={known?.connections ?? []}
          onClose={() => setAdding(false)}
          onSaved={() => {
            setAdding(false)
            void reload()
          }}
        />
      )}
    </Page>
  )
}

function List({ connections, reload }: Pick<Connections, 'connections'> & { reload(): Promise<void> }) {
  const edited = useSignal<Connection | null>(null)
  const opening = useSignal<Connection | null>(null)
  return (
    <Card title={connectionTexts.title} help={connectionTexts.help}>
      <ul class="rows">
        {connections.map((connection, at) => (
          <Row
            key={connection.id}
            connection={connection}
            above={connections[at - 1] ?? null}
            onEdit={() => (edited.value = connection)}
            onApps={() => (opening.value = connection)}
            reload={reload}
          />
        ))}
      </ul>
      {opening.value !== null && (
        <AppsDialog
          connection={opening.value}
          onClose={() => (opening.value = null)}
          onSaved={() => {
            opening.value = null
            void reload()
          }}
        />
      )}
      {edited.value !== null && (
        <ConnectDialog
          connection={edited.value}
          known={connections}
          onClose={() => (edited.value = null)}
          onSaved={() => {
            edited.value = null
            void reload()
          }}
        />
      )}
    </Card>
  )
}

type RowProps = {
  connection: Connection
  above: Connection | null
  onEdit(): void
  /** Opens the window about its port for apps. */
  onApps(): void
  reload(): Promise<void>
}

function Row({ connection, above, onEdit, onApps, reload }: RowProps) {
  const { name, kind, enabled, fromEnvironment, settings, link, waiting, heldAt } = connection
  const changing = useAction()
  const param = { id: String(connection.id) }
  const put = async (json: { enabled?: boolean; order?: number; held?: false }) => {
    await ask(api.connections[':id'].$put({ param, json }))
    await reload()
  }
  const lost = waiting > 0 ? connectionTexts.waiting(waiting) : ''
  const toggle = (isOn: boolean) => {
    if (isOn || waiting === 0) void changing.run(() => put({ enabled: isOn }))
    else
      askFirst({
        text: lost + connectionTexts.offQuestion(name),
        confirm: connectionTexts.turnOff,
        isDangerous: true,
        act: () => put({ enabled: false }),
      })
  }
  const remove = () =>
    askFirst({
      text: lost + connectionTexts.deleteQuestion(name),
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.connections[':id'].$delete({ param }))
        await reload()
      },
    })
  const mayWrite = can('configuration', 'write')
  const mayChange = mayWrite && !fromEnvironment
  const port = connection.virtualNode
  const isHeld = heldAt !== null && !fromEnvironment
  // Only administrators change a port with the view of another user.
  const mayOpen =
    mayWrite &&
    isOwnKind(kind) &&
    (port === null || isAdmin.value || [null, user.value?.id].includes(port.options.userId))
  const moveUp = () =>
    void changing.run(async () => {
      if (above === null) return
      await ask(api.connections[':id'].$put({ param: { id: String(above.id) }, json: { order: connection.order } }))
      await put({ order: above.order })
    })
  return (
    <LinkRow
      state={link?.state ?? 'off'}
      name={name}
      word={
        !enabled
          ? connectionTexts.off
          : isHeld
            ? connectionTexts.held
            : link === null
              ? connectionTexts.notRun
              : `${link.state === 'connected' ? connectionTexts.connected : t.shell.link[link.state]} ${t.dashboard.since(age(link.since, now.value))}`
      }
      reason={link?.reason ?? null}
      actions={
        <>
          {mayOpen && (
            <button type="button" class="button small" aria-label={appTexts.buttonOf(name)} onClick={onApps}>
              {appTexts.button}
            </button>
          )}
          {heldAt !== null && mayWrite && isAdmin.value && (
            <button
              type="button"
              class="button small"
              aria-label={connectionTexts.releaseOf(name)}
              disabled={changing.busy.value}
              onClick={() => void changing.run(() => put({ held: false }))}
            >
              {connectionTexts.release}
            </button>
          )}
          {mayChange && (
            <>
              {!isHeld && (
                <Switch
                  label={connectionTexts.turnOn(name)}
                  checked={enabled}
                  disabled={changing.busy.value}
                  onChange={toggle}
                />
              )}
              {above !== null && !above.fromEnvironment && (
                <button
                  type="button"
                  class="icon-button"
                  aria-label={connectionTexts.up(name)}
                  disabled={changing.busy.value}
                  onClick={moveUp}
                >
                  <Icon name="up" />
                </button>
              )}
              <button type="button" class="button small" aria-label={connectionTexts.editOf(name)} onClick={onEdit}>
                {connectionTexts.edit}
              </button>
              <button type="button" class="button small danger-quiet" onClick={remove}>
                {t.common.delete}
              </button>
            </>
          )}
        </>
      }
    >
      <span class="tag">{connectionKind(kind)}</span>{' '}
      {fromEnvironment && (
        <span class="tag" title={connectionTexts.environmentHelp}>
          {connectionTexts.environment}
        </span>
      )}{' '}
      <span class="break">{settings === null ? '' : addressOf({ kind, settings })}</span>
      {port !== null && (
        <div>
          {port.state === 'open'
            ? appTexts.state(port.options.port, port.clients)
            : appTexts.waiting(port.options.port)}
          {port.reason !== null && <span class="warn"> {port.reason}</span>}
        </div>
      )}
      {heldAt !== null && (settings !== null || fromEnvironment) && (
        <div class="warn">{connectionTexts[isHeld ? 'heldSince' : 'heldPort'](dateMinutes(heldAt))}</div>
      )}
      {settings === null && !fromEnvironment && <div class="warn">{connectionTexts.unreadable}</div>}
      <Failure error={changing.error.value} />
    </LinkRow>
  )
}

function Collectors({ collectors }: Pick<Connections, 'collectors'>) {
  return (
    <Card title={connectionTexts.collectors} help={connectionTexts.collectorsHelp}>
      <ul class="rows tight">
        {collectors.map(({ name, lastReceivedAt }) => (
          <li key={name}>
            <strong class="grow break">{name}</strong>
            {lastReceivedAt !== null && (
              <span class="faint">
                {connectionTexts.lastPacket} <Age at={lastReceivedAt} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}
