import { useSignal } from '@preact/signals'
import type { Action } from '../../state/load.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Failure } from '../../parts/notice.tsx'
import { c } from '../../strings/system/configuration.ts'
import { r } from '../../strings/system/remote.ts'
import { t } from '../../strings.ts'
import { type Difference, lossBy } from './model.ts'
import { Losses } from './losses.tsx'
import { describe, fullName, sectionName } from './words.ts'

type Props = {
  section: string
  differences: readonly Difference[]
  /** What the change costs on the air; null: the radio is connected. */
  airtime: string | null
  sending: Action
  onSend(confirmed: readonly string[], accepted: readonly string[]): void
  onClose(): void
}

/** Lists the changes before they are sent; risky ones need a confirmation. */
export function Review({ section, differences, airtime, sending, onSend, onClose }: Props) {
  const isAskedAgain = useSignal(false)
  const confirmed = useSignal<readonly string[]>([])
  const losing = differences.filter((each) => lossBy(section, each) !== null)
  const risky = differences.filter((each) => each.leaf.field.risk !== null || losing.includes(each))
  const isRemote = airtime !== null
  const accepted = isRemote ? losing.map(({ leaf }) => leaf.path) : []
  const sendAll = () => onSend(confirmed.value, accepted)
  if (isAskedAgain.value) return <Losses {...{ section, losing, sending, onClose }} onAccept={sendAll} />
  const isConfirmed = risky.every(({ leaf }) => confirmed.value.includes(leaf.path))
  return (
    <Dialog title={c.reviewTitle(sectionName(section))} onClose={onClose}>
      <DifferenceTable section={section} differences={differences} />
      <p class="faint">{airtime ?? c.restart}</p>
      {risky.length > 0 && (
        <fieldset class="confirms">
          <legend>{c.confirmTitle}</legend>
          {risky.map(({ leaf, ...each }) => (
            <label class="confirm" key={leaf.path}>
              <input
                type="checkbox"
                checked={confirmed.value.includes(leaf.path)}
                onChange={(event) => {
                  const others = confirmed.value.filter((path) => path !== leaf.path)
                  confirmed.value = event.currentTarget.checked ? [...others, leaf.path] : others
                }}
              />
              <span>{confirmText(section, { leaf, ...each })}</span>
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
          onClick={() => {
            if (accepted.length > 0) isAskedAgain.value = true
            else sendAll()
          }}
        >
          {sending.busy.value ? c.sending : isRemote ? r.send : c.send}
        </button>
      </div>
    </Dialog>
  )
}

function confirmText(section: string, difference: Difference): string {
  const { leaf } = difference
  const { risk } = leaf.field
  if (risk !== null) return c.confirms[risk](fullName(section, leaf))
  const loss = lossBy(section, difference)
  return loss === null ? '' : r.losses[loss](fullName(section, leaf))
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
