import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { MAX_OVERLAY_NAME, MAX_OVERLAYS } from '../../../../shared/limits.ts'
import { api, ask, send } from '../../../api.ts'
import { bytes, stamp } from '../../../format.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Field, handleForm } from '../../../parts/form/field.tsx'
import { Failure, Problem, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { overlayTexts } from '../../../strings/mesh/overlays.ts'
import { t } from '../../../strings.ts'
import { type Overlay, overlays, refreshOverlays } from './known.ts'
import './overlays.css'
import { FILE_TYPES, readFile } from './read-file.ts'
import { sendOverlay } from './send.ts'

/** Adds shapes from files to the map, names them, and says who sees them. */
export function OverlaysDialog({ onClose }: { onClose(): void }) {
  const known = overlays.value ?? []
  useEffect(() => void refreshOverlays(), [])
  return (
    <Dialog title={overlayTexts.title} onClose={onClose}>
      <div class="stack overlays">
        <p class="measure">{overlayTexts.about}</p>
        {known.length === 0 && <p class="faint">{overlayTexts.none}</p>}
        {known.map((overlay) => (
          <One overlay={overlay} key={overlay.id} />
        ))}
        {known.length < MAX_OVERLAYS && <Add />}
      </div>
    </Dialog>
  )
}

function Add() {
  const input = useRef<HTMLInputElement>(null)
  const fault = useSignal<string | null>(null)
  const progress = useSignal<string | null>(null)
  const { busy, error, run } = useAction()
  const add = (file: File) =>
    run(async () => {
      fault.value = null
      try {
        const found = await readFile(file)
        if ('fault' in found) return void (fault.value = found.fault)
        const name = file.name.replace(/\.[^.]+$/, '').trim() || file.name
        await sendOverlay(name.slice(0, MAX_OVERLAY_NAME), found.shapes, (part, of) => {
          progress.value = of === 1 ? null : overlayTexts.adding(part, of)
        })
        await refreshOverlays()
        say(overlayTexts.added)
      } finally {
        progress.value = null
      }
    })
  return (
    <>
      {fault.value !== null && <Problem>{fault.value}</Problem>}
      <Failure error={error.value} />
      {progress.value !== null && <p role="status">{progress.value}</p>}
      <div>
        <button type="button" class="button primary" disabled={busy.value} onClick={() => input.current?.click()}>
          {overlayTexts.add}
        </button>
        <input
          ref={input}
          type="file"
          hidden
          accept={FILE_TYPES}
          onChange={({ currentTarget }) => {
            const file = currentTarget.files?.[0]
            // The same file can be chosen again after it was changed.
            currentTarget.value = ''
            if (file !== undefined) void add(file)
          }}
        />
      </div>
    </>
  )
}

function One({ overlay }: { overlay: Overlay }) {
  const { id, name, isPublic, shapes, createdAt, createdBy } = overlay
  const { busy, error, run } = useAction()
  const isAsked = useSignal(false)
  const param = { id: String(id) }
  const remove = () =>
    run(async () => {
      await send(api.map.overlays[':id'].$delete({ param }))
      await refreshOverlays()
      say(overlayTexts.removed)
    })
  const save = handleForm(async (text) => {
    await run(async () => {
      const json = { name: text('name'), isPublic: text('isPublic') !== '' }
      await ask(api.map.overlays[':id'].$put({ param, json }))
      await refreshOverlays()
      say(overlayTexts.saved)
    })
  })
  return (
    <form class="stack overlay" aria-label={name} onSubmit={save}>
      <Field label={overlayTexts.name} name="name" defaultValue={name} maxLength={MAX_OVERLAY_NAME} required />
      <label class="check">
        <input type="checkbox" name="isPublic" defaultChecked={isPublic} />
        {overlayTexts.isPublic}
      </label>
      <p class="faint">{overlayTexts.isPublicHelp}</p>
      <p class="faint">
        {overlayTexts.shapes(shapes)}, {bytes(overlay.bytes)} ·{' '}
        {createdBy === null ? stamp(createdAt) : <bdi>{overlayTexts.by(createdBy, stamp(createdAt))}</bdi>}
      </p>
      <Failure error={error.value} />
      {isAsked.value && <p class="measure">{overlayTexts.removeAsk(name)}</p>}
      <div class="form-actions">
        {isAsked.value ? (
          <>
            <button type="button" class="button" onClick={() => (isAsked.value = false)}>
              {t.common.cancel}
            </button>
            <button type="button" class="button danger" disabled={busy.value} onClick={() => void remove()}>
              {overlayTexts.remove}
            </button>
          </>
        ) : (
          <>
            <button type="button" class="button" disabled={busy.value} onClick={() => (isAsked.value = true)}>
              {overlayTexts.askRemove}
            </button>
            <button type="submit" class="button" disabled={busy.value}>
              {overlayTexts.save}
            </button>
          </>
        )}
      </div>
    </form>
  )
}
