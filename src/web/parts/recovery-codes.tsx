import './recovery-codes.css'
import { date, plain } from '../format.ts'
import { href } from '../router.ts'
import { newRecoveryCodes } from '../state/recovery-codes.ts'
import { user } from '../state/session.ts'
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
      <div class="paper-only codes-paper">
        <h1>{factorTexts.paperTitle}</h1>
        <dl>
          <dt>{factorTexts.paperAccount}</dt>
          <dd>{plain(user.value?.username ?? '')}</dd>
          <dt>{factorTexts.paperService}</dt>
          <dd>{new URL(href('/'), location.href).href}</dd>
          <dt>{factorTexts.paperDate}</dt>
          <dd>{date(Date.now())}</dd>
        </dl>
        <ol>
          {codes.map((code) => (
            <li key={code}>{code}</li>
          ))}
        </ol>
      </div>
      <Actions>
        <button type="button" class="button" onClick={() => print()}>
          {factorTexts.print}
        </button>
        <button type="button" class="button primary" onClick={close}>
          {factorTexts.codesKept}
        </button>
      </Actions>
    </Dialog>
  )
}
