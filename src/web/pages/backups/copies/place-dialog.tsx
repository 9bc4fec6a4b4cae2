import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useRef } from 'preact/hooks'
import { PLACE_KINDS } from '../../../../shared/copies.ts'
import { MAX_CONNECTION_NAME } from '../../../../shared/limits.ts'
import { api, ask } from '../../../api.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions, Field, formText, handleForm, Select, Submit } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { t } from '../../../strings.ts'
import { copyTexts } from '../../../strings/system/copies.ts'
import { PlaceFields, placeSettings } from './fields.tsx'
import type { Kind, Place } from './place.ts'

type Tested = InferResponseType<typeof api.system.copies.test.$post>

/** Adds a place, or changes how the service gets there; `place` null: a new one. */
export function PlaceDialog(props: { place: Place | null; onClose(): void; onSaved(): void }) {
  const { place, onClose } = props
  const kind = useSignal<Kind>(place?.kind ?? 's3')
  const result = useSignal<Tested | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const testing = useAction()
  const saving = useAction()
  const test = async () => {
    const entered = form.current
    if (entered === null || !entered.reportValidity()) return
    result.value = null
    await testing.run(async () => {
      const settings = placeSettings(kind.value, formText(entered))
      const json = { kind: kind.value, settings, ...(place !== null && { place: place.id }) }
      result.value = await ask(api.system.copies.test.$post({ json }))
    })
  }
  const save = handleForm(async (text) => {
    const isDone = await saving.run(async () => {
      const settings = placeSettings(kind.value, text)
      if (place === null) {
        await ask(api.system.copies.$post({ json: { kind: kind.value, name: text('name').trim(), settings } }))
      } else {
        await ask(api.system.copies[':id'].$put({ param: { id: String(place.id) }, json: { settings } }))
      }
    })
    if (!isDone) return
    say(place === null ? copyTexts.added : copyTexts.saved)
    props.onSaved()
  })
  return (
    <Dialog title={place === null ? copyTexts.addPlace : copyTexts.editOf(place.name)} onClose={onClose}>
      <form ref={form} onSubmit={save} class="stack">
        {place === null ? (
          <>
            <Select
              label={copyTexts.kind}
              value={kind.value}
              options={PLACE_KINDS.map((each) => [each, copyTexts.kinds[each]] as const)}
              onChange={(next) => {
                kind.value = next
                result.value = null
              }}
            />
            <Field
              label={copyTexts.name}
              hint={copyTexts.nameHint}
              name="name"
              maxLength={MAX_CONNECTION_NAME}
              autocomplete="off"
              required
            />
          </>
        ) : (
          <p class="faint measure">{copyTexts.fixed}</p>
        )}
        <PlaceFields key={kind.value} kind={kind.value} settings={place === null ? null : (place.settings ?? {})} />
        <div role="status" class="measure">
          {result.value !== null && <TestResult {...result.value} />}
        </div>
        <Failure error={saving.error.value ?? testing.error.value} />
        <Actions>
          <button type="button" class="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <button type="button" class="button" disabled={testing.busy.value} onClick={() => void test()}>
            {testing.busy.value ? copyTexts.testing : copyTexts.test}
          </button>
          <Submit busy={saving.busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      </form>
    </Dialog>
  )
}

function TestResult({ problem, canDelete, isSameDisk }: Tested) {
  if (problem !== null) return <p class="bad">{problem}</p>
  return (
    <>
      <p class="good">{canDelete ? copyTexts.works : copyTexts.worksWithoutDelete}</p>
      {isSameDisk && <p class="bad">{copyTexts.sameDisk}</p>}
    </>
  )
}
