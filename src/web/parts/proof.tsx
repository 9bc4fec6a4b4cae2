import { useSignal } from '@preact/signals'
import { api, send } from '../api.ts'
import { href } from '../router.ts'
import { useAction } from '../state/load.ts'
import { wantedProof } from '../state/proof.ts'
import { user } from '../state/session.ts'
import { proveByPasskey } from '../passkeys.ts'
import { t } from '../strings.ts'
import { factorTexts } from '../strings/people/factors.ts'
import { Dialog } from './dialog.tsx'
import { CODE_FIELD } from './form/code-field.ts'
import { Actions, Field, handleForm, Submit } from './form/field.tsx'
import { Failure } from './notice.tsx'

/** Asks users to confirm who they are before the page repeats their action: once per page. */
export function ProofAsker() {
  const wanted = wantedProof.value
  if (wanted === null) return null
  return (
    <Dialog title={factorTexts.proof} onClose={() => wanted.end(false)}>
      {wanted.ways.includes('oidc') ? <AtProvider /> : <Here ways={wanted.ways} onProved={() => wanted.end(true)} />}
    </Dialog>
  )
}

function AtProvider() {
  const back = `${location.pathname}${location.search}`
  return (
    <div class="stack">
      <p class="measure">{factorTexts.proofAtProvider}</p>
      <Actions>
        <a
          class="button primary"
          href={`${href('/api/auth/oidc/login')}?reauthenticate=true&returnTo=${encodeURIComponent(back)}`}
        >
          {t.signIn.oidc}
        </a>
      </Actions>
    </div>
  )
}

function Here({ ways, onProved }: { ways: readonly string[]; onProved(): void }) {
  const { busy, error, run } = useAction()
  const byCode = useSignal(false)
  const byPasskey = () =>
    run(async () => {
      await proveByPasskey()
      onProved()
    })
  const submit = handleForm(async (text) => {
    const json = byCode.value ? { code: text('code').trim() } : { password: text('password') }
    await run(async () => {
      await send(api.auth.reauthenticate.$post({ json }))
      onProved()
    })
  })
  return (
    <form onSubmit={submit} class="stack" key={String(byCode.value)}>
      <p class="measure">{factorTexts.proofHelp}</p>
      <Failure error={error.value} />
      {byCode.value ? (
        <Field {...CODE_FIELD} name="code" required autofocus />
      ) : (
        <>
          <input type="hidden" autocomplete="username" value={user.value?.username} />
          <Field
            label={t.signIn.password}
            name="password"
            type="password"
            autocomplete="current-password"
            required
            autofocus
          />
        </>
      )}
      <Actions>
        {ways.includes('passkey') && (
          <button type="button" class="button" disabled={busy.value} onClick={() => void byPasskey()}>
            {factorTexts.usePasskey}
          </button>
        )}
        {ways.includes('totp') && (
          <button type="button" class="button" onClick={() => (byCode.value = !byCode.value)}>
            {byCode.value ? factorTexts.usePassword : factorTexts.useTotp}
          </button>
        )}
        <Submit busy={busy.value} idle={factorTexts.confirm} working={t.signIn.working} />
      </Actions>
    </form>
  )
}
