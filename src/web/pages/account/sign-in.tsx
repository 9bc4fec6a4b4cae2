import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask, ownName } from '../../api.ts'
import { type Action, useAction } from '../../state/load.ts'
import { Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, Problem } from '../../parts/notice.tsx'
import { Alone } from '../../parts/alone.tsx'
import { href, place, safeReturn, setQuery } from '../../router.ts'
import {
  hasEnded,
  refreshStatus,
  SIGNED_OUT_KEY,
  type Status,
  status,
  tellTabs,
  temporaryPassword,
  siteName,
} from '../../state/session.ts'
import { t } from '../../strings.ts'
import { MAX_SIGN_IN_NAME, MAX_TYPED_PASSWORD } from '../../../shared/limits.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'
import { canUsePasskeys } from '../../can-use-passkeys.ts'

const SecondStep = lazyPage(async () => (await import('./second-step.tsx')).SecondStep)

const RETURN_KEY = ownName('return-to')
/** When this tab last went straight to the provider, in ms. */
const STRAIGHT_KEY = ownName('straight-to-provider')
const STRAIGHT_MS = 60_000

/** After a failure, the provider returns without the page that was requested, so the tab remembers it. */
function keepReturn(path: string): void {
  try {
    sessionStorage.setItem(RETURN_KEY, path)
  } catch {
    // Storage is blocked: after a failure, the sign-in leads to the start page.
  }
}

function recallReturn(): string {
  try {
    const path = safeReturn(sessionStorage.getItem(RETURN_KEY))
    return path === '/' ? '' : path
  } catch {
    return ''
  }
}

const BrowserLanguage = lazyPage(async () => (await import('../../parts/form/language-select.tsx')).BrowserLanguage)

/** The local form, the provider's button, or both, as the service allows. */
export function SignInPage() {
  const known = status.value
  const returnTo = safeReturn(place.value.query.get('returnTo'))
  useEffect(() => {
    document.title = `${t.signIn.title} · ${siteName.value}`
    const { query } = place.peek()
    if (query.has('error') && !query.has('returnTo')) setQuery({ returnTo: recallReturn() })
  }, [])
  const half = useSignal<readonly SecondFactor[] | null>(null)
  const first = known?.providers[0]
  useEffect(() => {
    const straight =
      known?.proxyUser != null ? proxyAt(returnTo) : first === undefined ? null : signInAt(first.id, returnTo)
    if (known === null || straight === null || !takeStraightWay(known)) return
    keepReturn(returnTo)
    location.replace(straight)
  }, [first?.id, known?.proxyUser])
  if (known === null) return null
  const isInvited = place.value.query.has('invitation')
  return (
    <Alone title={t.signIn.title}>
      {hasEnded.value && (
        <div class="notice" role="status">
          {t.signIn.ended}
        </div>
      )}
      <ProviderFailure code={place.value.query.get('error')} />
      {isInvited && <p class="measure">{t.signIn.invited}</p>}
      {!known.localAuthDisabled && !isInvited && <LocalForm half={half} />}
      {half.value === null && known.oidcEnabled && !known.localAuthDisabled && !isInvited && (
        <div class="or">{t.signIn.or}</div>
      )}
      {half.value === null && <ProviderButtons known={known} returnTo={returnTo} />}
      {known.localAuthDisabled && <p class="faint">{t.signIn.oidcOnly}</p>}
      <BrowserLanguage />
    </Alone>
  )
}

function ProviderButtons({ known, returnTo }: { known: Status; returnTo: string }) {
  return (
    <>
      {known.proxyUser !== null && (
        <a class="button primary wide named" href={proxyAt(returnTo)}>
          {t.signIn.proxy(known.proxyUser)}
        </a>
      )}
      {known.providers.map(({ id, name, icon }, index) => (
        <a
          key={id}
          class={known.localAuthDisabled && index === 0 ? 'button primary wide named' : 'button wide named'}
          href={signInAt(id, returnTo)}
          onClick={() => keepReturn(returnTo)}
        >
          {icon !== null && <img src={icon} alt="" width="20" height="20" />}
          {name === null ? t.signIn.oidc : t.signIn.oidcNamed(name)}
        </a>
      ))}
    </>
  )
}

/** Where users named by a proxy sign in. */
function proxyAt(returnTo: string): string {
  return `${href('/api/auth/proxy/login')}?returnTo=${encodeURIComponent(href(returnTo))}`
}

/** Where the sign-in at a provider begins. */
function signInAt(provider: string, returnTo: string): string {
  const which = provider === 'default' ? '' : `provider=${encodeURIComponent(provider)}&`
  const token = place.value.query.get('invitation')
  const invitation = token === null ? '' : `&invitation=${encodeURIComponent(token)}`
  return `${href('/api/auth/oidc/login')}?${which}returnTo=${encodeURIComponent(href(returnTo))}${invitation}`
}

/**
 * Whether the page goes straight to the provider. It does not after an error, a sign-out or the end of a session, not
 * if somebody asks for the page itself, and not again within a minute: if this browser does not keep the session, it
 * would loop forever.
 */
function takeStraightWay({ autoLogin, proxyUser, authenticated }: Status): boolean {
  const { query } = place.peek()
  if (
    (!autoLogin && proxyUser === null) ||
    authenticated ||
    hasEnded.peek() ||
    query.has('error') ||
    query.has('local') ||
    query.has('invitation')
  )
    return false
  try {
    const last = Number(sessionStorage.getItem(STRAIGHT_KEY) ?? 0)
    if (sessionStorage.getItem(SIGNED_OUT_KEY) !== null || Date.now() - last < STRAIGHT_MS) return false
    sessionStorage.setItem(STRAIGHT_KEY, String(Date.now()))
    return true
  } catch {
    // Without storage, a redirect loop could not be stopped.
    return false
  }
}

function ProviderFailure({ code }: { code: string | null }) {
  if (code === null) return null
  const texts: Readonly<Record<string, string>> = t.signIn.errors
  return <Problem>{texts[code] ?? t.signIn.otherError}</Problem>
}

type Half = Signal<readonly SecondFactor[] | null>

function LocalForm({ half }: { half: Half }) {
  const hasNoCookie = useSignal(false)
  const entered = async () => {
    await refreshStatus()
    tellTabs()
    hasNoCookie.value = status.value?.authenticated === false
  }
  const byPassword = useAction()
  const byPasskey = useAction()
  const isPossible = canUsePasskeys(status.value?.passkeysPossible === true)
  const isOffered = isPossible && half.value === null && !byPassword.busy.value && !byPasskey.busy.value
  useEffect(() => {
    if (!isOffered) return
    const chosen = (signIn: () => Promise<void>) =>
      void byPasskey.run(async () => {
        await signIn()
        await entered()
      })
    let isOver = false
    let withdraw = () => {}
    const begin = async () => {
      const { offerPasskeys } = await loadPasskeys()
      if (!isOver) withdraw = offerPasskeys(chosen)
    }
    // Nobody asked for the offer, so nothing is shown if its code does not arrive.
    begin().catch(() => {})
    return () => {
      isOver = true
      withdraw()
    }
  }, [isOffered])
  return (
    <>
      {hasNoCookie.value && <Problem>{t.signIn.cookie}</Problem>}
      {half.value === null ? (
        <>
          <PasswordStep
            half={half}
            action={byPassword}
            isPasskeyOffered={isPossible}
            onBegin={() => (hasNoCookie.value = false)}
            onEntered={entered}
          />
          {status.value?.accountMail === true && (
            <a class="forgot" href={href('/forgot-password')}>
              {t.signIn.forgot}
            </a>
          )}
          {isPossible && <PasskeyButton action={byPasskey} onEntered={entered} />}
        </>
      ) : (
        <SecondStep factors={half.value} onEntered={entered} onBack={() => (half.value = null)} />
      )}
    </>
  )
}

const loadPasskeys = () => import('../../passkeys.ts')

function PasskeyButton({ action, onEntered }: { action: Action; onEntered(): Promise<void> }) {
  const { busy, error, run } = action
  const enter = () =>
    run(async () => {
      const { signInByPasskey } = await loadPasskeys()
      await signInByPasskey('alone')
      await onEntered()
    })
  return (
    <>
      <Failure error={error.value} />
      <button type="button" class="button wide" disabled={busy.value} onClick={() => void enter()}>
        {t.signIn.passkey}
      </button>
    </>
  )
}

type PasswordStepProps = {
  half: Half
  action: Action
  isPasskeyOffered: boolean
  onBegin(): void
  onEntered(): Promise<void>
}

function PasswordStep({ half, action, isPasskeyOffered, onBegin, onEntered }: PasswordStepProps) {
  const { busy, error, run } = action
  const submit = handleForm(async (text) => {
    const password = text('password')
    onBegin()
    // An earlier failure at the provider does not concern the current attempt.
    if (place.peek().query.has('error')) setQuery({ error: '' })
    await run(async () => {
      const answer = await ask(api.auth.login.$post({ json: { username: text('username').trim(), password } }))
      if ('secondFactor' in answer) {
        half.value = answer.secondFactor
        return
      }
      temporaryPassword.value = answer.mustChangePassword ? password : null
      await onEntered()
    })
  })
  return (
    <form onSubmit={submit} class="stack">
      <Failure error={error.value} />
      <Field
        label={t.signIn.username}
        name="username"
        autocomplete={isPasskeyOffered ? 'username webauthn' : 'username'}
        autocapitalize="off"
        spellcheck={false}
        maxLength={MAX_SIGN_IN_NAME}
        required
        autofocus
      />
      <Field
        label={t.signIn.password}
        name="password"
        type="password"
        autocomplete="current-password"
        maxLength={MAX_TYPED_PASSWORD}
        required
      />
      <Submit busy={busy.value} idle={t.signIn.submit} working={t.signIn.working} />
    </form>
  )
}
