import { useSignal } from '@preact/signals'
import type { Action } from '../../state/load.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Failure } from '../../parts/notice.tsx'
import { c } from '../../strings/system/configuration.ts'
import { t } from '../../strings.ts'
import type { Difference } from './model.ts'
import { describe, fullName, sectionName } from './words.ts'

type Props = {
  section: string
  differences: readonly Difference[]
  sending: Action
  onSend(confirmed: readonly string[]): void
  onClose(): void
}

/** Lists the changes before they are sent; risky ones need a confirmation. */
export function Review({ section, differences, sending, onSend, onClose }: Props) {
  const confirmed = useSignal<readonly string[]>([])
  const risky = differences.filter(({ leaf }) => leaf.field.risk !== null)
  const isConfirmed = risky.every(({ leaf }) => confirmed.value.includes(leaf.path))
  return (
    <Dialog title={c.reviewTitle(sectionName(section))} onClose={onClose}>
      <DifferenceTable section={section} differences={differences} />
      <p class="faint">{c.restart}</p>
      {risky.length > 0 && (
        <fieldset class="confirms">
          <legend>{c.confirmTitle}</legend>
          {risky.map(({ leaf }) => (
            <label class="confirm" key={leaf.path}>
              <input
                type="checkbox"
                checked={confirmed.value.includes(leaf.path)}
                onChange={(event) => {
                  const others = confirmed.value.filter((path) => path !== leaf.path)
                  confirmed.value = event.currentTarget.checked ? [...others, leaf.path] : others
                }}
              />
              <span>{leaf.field.risk !== null && c.confirms[leaf.field.risk](fullName(section, leaf))}</span>
            </label>
          ))}
        </fieldset>
      )}
      <Failure error={sending.error.value} />
      <div class="form-actions">
        <button type="button" class="button" onClick={onClose}>
          {t.common.cancel}
        </button>
        <button
          type="button"
          class={risky.length > 0 ? 'button danger' : 'button primary'}
          disabled={sending.busy.value || !isConfirmed}
          onClick={() => onSend(confirmed.value)}
        >
          {sending.busy.value ? c.sending : c.send}
        </button>
      </div>
    </Dialog>
  )
}

function DifferenceTable({ section, differences }: Pick<Props, 'section' | 'differences'>) {
  return (
    <table class="changes differences">
      <thead>
        <tr>
          <th scope="col">{c.setting}</th>
          <th scope="col">{c.before}</th>
          <th scope="col">{c.after}</th>
        </tr>
      </thead>
      <tbody>
        {differences.map((each) => (
          <tr key={each.leaf.path}>
            <th scope="row">{fullName(section, each.leaf)}</th>
            {each.kind === 'value' ? (
              <>
                <td>
                  <del>{describe(section, each.leaf, each.before)}</del>
                </td>
                <td>
                  <ins>{describe(section, each.leaf, each.after)}</ins>
                </td>
              </>
            ) : (
              <td colSpan={2}>
                <ins>{each.after === null ? c.secretWillClear : c.secretWillReplace}</ins>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
