import { newRecoveryCodes } from '../state/recovery-codes.ts'
import { factorTexts } from '../strings/people/factors.ts'
import { CopyText } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Actions } from './form/field.tsx'

/** Shows new recovery codes until the user has stored them. Used once per page. */
export function RecoveryCodes() {
  const codes = newRecoveryCodes.value
  if (codes === null) return null
  const close = () => (newRecoveryCodes.value = null)
  return (
    <Dialog title={factorTexts.codesTitle} onClose={close}>
      <p class="measure">{factorTexts.codesHelp}</p>
      <CopyText text={codes.join('\n')} label={factorTexts.codesTitle} />
      <Actions>
        <button type="button" class="button primary" onClick={close}>
          {factorTexts.codesKept}
        </button>
      </Actions>
    </Dialog>
  )
}
