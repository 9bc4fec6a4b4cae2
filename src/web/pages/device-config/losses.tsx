import { Dialog } from '../../parts/dialog.tsx'
import { Failure } from '../../parts/notice.tsx'
import type { Action } from '../../state/load.ts'
import { t } from '../../strings.ts'
import { c } from '../../strings/system/configuration.ts'
import { r } from '../../strings/system/remote.ts'
import { type Difference, lossBy } from './model.ts'
import { fullName } from './words.ts'

type Props = {
  section: string
  sending: Action
  onClose(): void
  losing: readonly Difference[]
  onAccept(): void
}

/** Asks again, because nobody is beside the node. */
export function Losses({ section, losing, sending, onClose, onAccept }: Props) {
  return (
    <Dialog title={r.loseTitle} onClose={onClose}>
      <ul>
        {losing.map((each) => {
          const loss = lossBy(section, each)
          return loss !== null && <li key={each.leaf.path}>{r.losses[loss](fullName(section, each.leaf))}</li>
        })}
      </ul>
      <p class="measure">{r.loseHelp}</p>
      <Failure error={sending.error.value} />
      <div class="form-actions">
        <button type="button" class="button" onClick={onClose}>
          {t.common.cancel}
        </button>
        <button type="button" class="button danger" disabled={sending.busy.value} onClick={onAccept}>
          {sending.busy.value ? c.sending : r.loseAnyway}
        </button>
      </div>
    </Dialog>
  )
}
