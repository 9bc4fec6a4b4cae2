import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import {
  DEFAULT_EMBED_LAYERS,
  EMBED_LAYERS,
  type EmbedLayer,
  MAX_EMBED_ZOOM,
  MAX_FRAME,
  MIN_FRAME,
} from '../../../shared/access/embed-profile.ts'
import { MAX_FRAME_NAME } from '../../../shared/limits.ts'
import { api, ask, BASE, send } from '../../api.ts'
import { CopyText } from '../../parts/copy.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { Field, handleForm, SaveOrCancel } from '../../parts/form/field.tsx'
import { Group, Labelled } from '../../parts/form/labelled.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { t } from '../../strings.ts'
import { embedTexts } from '../../strings/people/embed.ts'
import { publicTexts } from '../../strings/people/public-access.ts'
import { recallView } from '../map/last-view.ts'

type Frames = InferResponseType<(typeof api)['public-access']['frames']['$get']>
type Frame = Frames['profiles'][number]
type Draft = Omit<Frame, 'id'> & { readonly id: string | null }

const NEW: Draft = {
  id: null,
  name: '',
  origins: [],
  center: null,
  zoom: null,
  layers: [...DEFAULT_EMBED_LAYERS],
  width: 800,
  height: 500,
}

/** The frames that other sites may show. */
export function EmbedProfiles({ isOn }: { isOn: boolean }) {
  const { data, error, reload } = useLoad(() => ask(api['public-access'].frames.$get()), [])
  const edited = useSignal<Draft | null>(null)
  const found = data.value
  return (
    <Card
      title={embedTexts.title}
      help={embedTexts.help}
      actions={
        <button type="button" class="button" onClick={() => (edited.value = NEW)}>
          {embedTexts.make}
        </button>
      }
    >
      <Failure error={error.value} retry={reload} />
      {found !== null && (
        <div class="stack">
          {!isOn && <p>{embedTexts.off}</p>}
          {found.limit !== null && <p class="faint">{embedTexts.limit(found.limit.join(', '))}</p>}
          {found.profiles.length === 0 && <p class="faint">{embedTexts.none}</p>}
          {found.profiles.map((frame) => (
            <Known
              frame={frame}
              key={JSON.stringify(frame)}
              isOn={isOn}
              onEdit={() => (edited.value = frame)}
              onDeleted={reload}
            />
          ))}
        </div>
      )}
      {edited.value !== null && (
        <Editor
          draft={edited.value}
          onClose={() => (edited.value = null)}
          onSaved={async () => {
            await reload()
            edited.value = null
          }}
        />
      )}
    </Card>
  )
}

const addressOf = (id: string) => new URL(`${BASE}embed/map?profile=${id}`, location.origin).href

function Known(props: { frame: Frame; isOn: boolean; onEdit(): void; onDeleted(): Promise<void> }) {
  const { id, name, origins, width, height } = props.frame
  const isShown = useSignal(false)
  const code = `<iframe src="${addressOf(id)}" width="${width}" height="${height}" title="${publicTexts.embedTitle}"></iframe>`
  const remove = () =>
    askFirst({
      text: embedTexts.deleteSure(name),
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api['public-access'].frames[':id'].$delete({ param: { id } }))
        say(embedTexts.deleted)
        await props.onDeleted()
      },
    })
  return (
    <section class="embed-profile" aria-label={name}>
      <div class="embed-profile-head">
        <div>
          <h3>{name}</h3>
          <p class="faint">{origins.join(', ')}</p>
        </div>
        <div class="row-actions">
          {props.isOn && (
            <button
              type="button"
              class="button small"
              aria-label={isShown.value ? undefined : embedTexts.previewOf(name)}
              aria-expanded={isShown.value}
              onClick={() => (isShown.value = !isShown.value)}
            >
              {isShown.value ? embedTexts.hide : embedTexts.preview}
            </button>
          )}
          <button type="button" class="button small" aria-label={embedTexts.editOf(name)} onClick={props.onEdit}>
            {t.common.edit}
          </button>
          <button
            type="button"
            class="button small danger-quiet"
            aria-label={embedTexts.deleteOf(name)}
            onClick={remove}
          >
            {t.common.delete}
          </button>
        </div>
      </div>
      <CopyText text={code} label={embedTexts.code} />
      {isShown.value && <iframe src={addressOf(id)} width={width} height={height} title={embedTexts.previewOf(name)} />}
    </section>
  )
}

function Editor({ draft, onClose, onSaved }: { draft: Draft; onClose(): void; onSaved(): Promise<void> }) {
  const { error, busy, run } = useAction()
  const layers = useSignal<readonly EmbedLayer[]>(draft.layers)
  const view = useSignal({
    latitude: draft.center === null ? '' : String(draft.center.latitude),
    longitude: draft.center === null ? '' : String(draft.center.longitude),
    zoom: draft.zoom === null ? '' : String(draft.zoom),
  })
  const last = recallView()
  const submit = handleForm(async (text) => {
    await run(async () => {
      const { latitude, longitude, zoom } = view.value
      const json = {
        name: text('name'),
        origins: text('origins')
          .split(/\s+/)
          .filter((origin) => origin !== ''),
        center:
          latitude === '' || longitude === '' ? null : { latitude: Number(latitude), longitude: Number(longitude) },
        zoom: zoom === '' ? null : Number(zoom),
        layers: EMBED_LAYERS.filter((layer) => layers.value.includes(layer)),
        width: Number(text('width')),
        height: Number(text('height')),
      }
      const { frames } = api['public-access']
      await (draft.id === null
        ? ask(frames.$post({ json }))
        : ask(frames[':id'].$put({ param: { id: draft.id }, json })))
      say(embedTexts.saved)
      await onSaved()
    })
  })
  const number = (name: 'latitude' | 'longitude' | 'zoom', min: number, max: number) => (
    <Field
      label={embedTexts[name]}
      type="number"
      min={min}
      max={max}
      step="any"
      value={view.value[name]}
      onInput={(event) => (view.value = { ...view.value, [name]: event.currentTarget.value })}
    />
  )
  return (
    <Dialog title={draft.id === null ? embedTexts.newTitle : embedTexts.editTitle(draft.name)} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field
          label={embedTexts.name}
          name="name"
          maxLength={MAX_FRAME_NAME}
          defaultValue={draft.name}
          required
          autofocus
        />
        <Labelled label={embedTexts.origins} hint={embedTexts.originsHelp}>
          {(aria) => (
            <textarea
              {...aria}
              name="origins"
              rows={3}
              required
              spellcheck={false}
              defaultValue={draft.origins.join('\n')}
            />
          )}
        </Labelled>
        <Group legend={t.map.title} hint={embedTexts.viewHelp}>
          <div class="four">
            {number('latitude', -90, 90)}
            {number('longitude', -180, 180)}
            {number('zoom', 0, MAX_EMBED_ZOOM)}
          </div>
          {last !== null && (
            <button
              type="button"
              class="button small"
              onClick={() =>
                (view.value = {
                  latitude: last.lat.toFixed(5),
                  longitude: last.lng.toFixed(5),
                  zoom: String(Math.min(last.zoom, MAX_EMBED_ZOOM)),
                })
              }
            >
              {embedTexts.takeView}
            </button>
          )}
        </Group>
        <Group legend={embedTexts.layers}>
          {EMBED_LAYERS.map((layer) => (
            <label class="check" key={layer}>
              <input
                type="checkbox"
                checked={layers.value.includes(layer)}
                onChange={({ currentTarget: { checked } }) =>
                  (layers.value = checked ? [...layers.value, layer] : layers.value.filter((one) => one !== layer))
                }
              />
              <span>{t.map.layerNames[layer]}</span>
            </label>
          ))}
        </Group>
        <div class="two">
          <Field
            label={embedTexts.width}
            name="width"
            type="number"
            min={MIN_FRAME}
            max={MAX_FRAME}
            defaultValue={draft.width}
            required
          />
          <Field
            label={embedTexts.height}
            name="height"
            type="number"
            min={MIN_FRAME}
            max={MAX_FRAME}
            defaultValue={draft.height}
            required
          />
        </div>
        <Failure error={error.value} />
        <SaveOrCancel busy={busy.value} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
