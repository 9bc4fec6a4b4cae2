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
import { CODE_FIELD, RECOVERY_FIELD } from './form/code-field.ts'
import { Actions, Field, handleForm, Submit } from './form/field.tsx'
import { Failure, Problem } from './notice.tsx'

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

type Typed = 'password' | 'totp' | 'recovery'

/** The ways that are typed, in the order in which the dialog offers them. */
const TYPED: readonly Typed[] = ['password', 'totp', 'recovery']

const USE: Readonly<Record<Typed, string>> = {
  password: factorTexts.usePassword,
  totp: factorTexts.useTotp,
  recovery: factorTexts.useRecovery,
}

function Here({ ways, onProved }: { ways: readonly string[]; onProved(): void }) {
  const { busy, error, run } = useAction()
  const typed = TYPED.filter((way) => ways.includes(way))
  const hasPasskey = ways.includes('passkey')
  // Recovery codes are for emergencies: without another code or password the passkey comes first.
  const chosen = useSignal(hasPasskey && typed[0] === 'recovery' ? null : (typed[0] ?? null))
  const byPasskey = () =>
    run(async () => {
      await proveByPasskey()
      onProved()
    })
  const submit = handleForm(async (text) => {
    const value = text('proof')
    const json =
      chosen.value === 'password'
        ? { password: value }
        : chosen.value === 'totp'
          ? { code: value.trim() }
          : { recoveryCode: value.trim() }
    await run(async () => {
      await send(api.auth.reauthenticate.$post({ json }))
      onProved()
    })
  })
  return (
    <form onSubmit={submit} class="stack" key={chosen.value}>
      <p class="measure">{ways.includes('password') ? factorTexts.proofHelp : factorTexts.factorProofHelp}</p>
      {chosen.value === 'recovery' && error.value?.code === 'wrong_code' ? (
        <Problem>{factorTexts.wrongRecovery}</Problem>
      ) : (
        <Failure error={error.value} />
      )}
      {chosen.value !== null && <ProofField way={chosen.value} />}
      <Actions>
        {hasPasskey && (
          <button
            type="button"
            class={chosen.value === null ? 'button primary' : 'button'}
            disabled={busy.value}
            onClick={() => void byPasskey()}
          >
            {factorTexts.usePasskey}
          </button>
        )}
        {typed
          .filter((way) => way !== chosen.value)
          .map((way) => (
            <button type="button" class="button" key={way} onClick={() => (chosen.value = way)}>
              {USE[way]}
            </button>
          ))}
        {chosen.value !== null && <Submit busy={busy.value} idle={factorTexts.confirm} working={t.signIn.working} />}
      </Actions>
    </form>
  )
}

function ProofField({ way }: { way: Typed }) {
  if (way === 'totp') return <Field {...CODE_FIELD} name="proof" required autofocus />
  if (way === 'recovery') return <Field {...RECOVERY_FIELD} name="proof" required autofocus />
  return (
    <>
      <input type="hidden" autocomplete="username" value={user.value?.username} />
      <Field
        label={t.signIn.password}
        name="proof"
        type="password"
        autocomplete="current-password"
        required
        autofocus
      />
    </>
  )
}
