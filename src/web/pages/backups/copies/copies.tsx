import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../../api.ts'
import { bytes } from '../../../format.ts'
import { Age, At } from '../../../parts/age.tsx'
import { askFirst } from '../../../parts/dialog.tsx'
import { Switch } from '../../../parts/form/switch.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Empty, Failure, say } from '../../../parts/notice.tsx'
import { Card, Page } from '../../../parts/page.tsx'
import { useAction, useLoad } from '../../../state/load.ts'
import { has } from '../../../state/session.ts'
import { t } from '../../../strings.ts'
import { backupTexts } from '../../../strings/system/backups.ts'
import { copyTexts } from '../../../strings/system/copies.ts'
import { Drill } from './drill.tsx'
import { Keys } from './keys.tsx'
import type { CopiesState, Copy, Place } from './place.ts'
import { PlaceDialog } from './place-dialog.tsx'

const POLL_MS = 15_000
const PROGRESS_MS = 1000

const UP = { path: '/backups', name: backupTexts.title }

export function CopiesPage() {
  // On the edge there may be backups, but no copies.
  if (!has('radio')) {
    return (
      <Page title={copyTexts.title} up={UP}>
        <Empty icon="backups" title={copyTexts.unsupported}>
          <p>{copyTexts.unsupportedHelp}</p>
        </Empty>
      </Page>
    )
  }
  return <KnownCopies />
}

function KnownCopies() {
  const { data, error, reload } = useLoad(() => ask(api.system.copies.$get()), [], POLL_MS)
  const edited = useSignal<Place | 'new' | null>(null)
  const state = data.value
  const isRunning = state?.running != null
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => void reload(), PROGRESS_MS)
    return () => clearInterval(timer)
  }, [isRunning])
  const close = () => (edited.value = null)
  return (
    <Page
      title={copyTexts.title}
      up={UP}
      actions={
        <button type="button" class="button primary" onClick={() => (edited.value = 'new')}>
          <Icon name="plus" />
          {copyTexts.addPlace}
        </button>
      }
    >
      <Failure error={error.value} retry={reload} />
      <p class="measure faint">{copyTexts.intro}</p>
      {state !== null && (
        <>
          {state.recipients.length === 0 && state.places.length > 0 && (
            <div class="notice notice-bad" role="status">
              <Icon name="warning" />
              {copyTexts.noKey}
            </div>
          )}
          <Card title={copyTexts.places}>
            {state.places.length === 0 && <p class="faint">{copyTexts.noPlaces}</p>}
            <ul class="rows">
              {state.places.map((place) => (
                <PlaceRow
                  key={place.id}
                  place={place}
                  state={state}
                  reload={reload}
                  onEdit={() => (edited.value = place)}
                />
              ))}
            </ul>
          </Card>
          <Keys recipients={state.recipients} reload={reload} />
          <Drill state={state} reload={reload} />
          <CopyTable state={state} />
        </>
      )}
      {edited.value !== null && (
        <PlaceDialog
          place={edited.value === 'new' ? null : edited.value}
          onClose={close}
          onSaved={() => {
            close()
            void reload()
          }}
        />
      )}
    </Page>
  )
}

type RowProps = { place: Place; state: CopiesState; reload(): Promise<void>; onEdit(): void }

function PlaceRow({ place, state, reload, onEdit }: RowProps) {
  const acting = useAction()
  const param = { id: String(place.id) }
  const change = (json: { enabled?: boolean; held?: false; retry?: true }, done?: string) =>
    acting.run(async () => {
      await ask(api.system.copies[':id'].$put({ param, json }))
      if (done !== undefined) say(done)
      await reload()
    })
  const remove = () =>
    askFirst({
      text: copyTexts.removeSure(place.name),
      confirm: copyTexts.remove,
      isDangerous: true,
      act: async () => {
        await send(api.system.copies[':id'].$delete({ param }))
        say(copyTexts.removed)
        await reload()
      },
    })
  return (
    <li>
      <div class="grow stack">
        <div>
          <strong>{place.name}</strong> <span class="tag">{copyTexts.kinds[place.kind]}</span>
          <div class="faint mono break">{place.where}</div>
        </div>
        <PlaceState place={place} state={state} />
        <Failure error={acting.error.value} />
      </div>
      <div class="row-actions">
        {place.heldAt !== null && (
          <button type="button" class="button small primary" onClick={() => void change({ held: false })}>
            {copyTexts.release}
          </button>
        )}
        {place.failures > 0 && place.heldAt === null && (
          <button
            type="button"
            class="button small"
            disabled={acting.busy.value}
            onClick={() => void change({ retry: true }, copyTexts.retrying)}
          >
            {copyTexts.retry}
          </button>
        )}
        <button type="button" class="button small" aria-label={copyTexts.editOf(place.name)} onClick={onEdit}>
          {copyTexts.edit}
        </button>
        <button
          type="button"
          class="button small danger-quiet"
          aria-label={`${copyTexts.remove} ${place.name}`}
          onClick={remove}
        >
          {copyTexts.remove}
        </button>
      </div>
      <Switch
        label={copyTexts.enabledOf(place.name)}
        checked={place.enabled}
        disabled={acting.busy.value}
        onChange={(enabled) => void change({ enabled })}
      />
    </li>
  )
}

function PlaceState({ place, state }: { place: Place; state: CopiesState }) {
  const { running } = state
  const newest = state.copies.find((copy) => copy.placeId === place.id && copy.state === 'made')
  if (place.heldAt !== null) return <div class="warn measure">{copyTexts.held}</div>
  return (
    <div class="measure">
      <div>
        {newest === undefined ? (
          copyTexts.never
        ) : (
          <>
            {copyTexts.newest}: <span class="mono nowrap">{newest.name}</span> (<Age at={newest.createdAt} />)
          </>
        )}
      </div>
      {place.settings === null && <div class="bad">{copyTexts.unreadable}</div>}
      {place.problem !== null && (
        <div class="bad">
          {place.failures > 0 && copyTexts.failed(place.failures)} {place.problem}.{' '}
          {place.nextTryAt !== null && place.enabled && (
            <span class="faint">
              {copyTexts.next}: <At at={place.nextTryAt} />
            </span>
          )}
        </div>
      )}
      {running?.placeId === place.id && (
        <div role="status">
          {running.totalBytes === 0
            ? copyTexts.encrypting(running.name)
            : copyTexts.sending(running.name, Math.floor((100 * running.sentBytes) / running.totalBytes))}
        </div>
      )}
      {!place.enabled && <div class="faint">{copyTexts.off}</div>}
    </div>
  )
}

function CopyTable({ state }: { state: CopiesState }) {
  const nameOf = new Map(state.places.map(({ id, name }) => [id, name]))
  if (state.copies.length === 0) return <p class="faint">{copyTexts.noCopies}</p>
  return (
    <section aria-labelledby="copies-heading" class="stack">
      <h2 id="copies-heading">{copyTexts.copies}</h2>
      <div class="table-box">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{copyTexts.backup}</th>
              <th scope="col">{copyTexts.place}</th>
              <th scope="col" class="phone-hidden">
                {copyTexts.size}
              </th>
            </tr>
          </thead>
          <tbody>
            {state.copies.map((copy) => (
              <CopyRow key={copy.id} copy={copy} place={nameOf.get(copy.placeId) ?? ''} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function CopyRow({ copy, place }: { copy: Copy; place: string }) {
  return (
    <tr>
      <th scope="row">
        <span class="mono nowrap">{copy.name}</span>
        <div class="faint">
          <Age at={copy.createdAt} />
        </div>
      </th>
      <td>
        {place}
        <div class={copy.state === 'made' ? 'good' : copy.state === 'missing' ? 'bad' : 'faint'}>
          {copyTexts.states[copy.state]}
        </div>
      </td>
      <td class="nowrap phone-hidden">{copy.sizeBytes === null ? t.common.none : bytes(copy.sizeBytes)}</td>
    </tr>
  )
}
