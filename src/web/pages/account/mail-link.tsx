import { type Signal, signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../../api.ts'
import { Alone } from '../../parts/alone.tsx'
import { Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, Loading } from '../../parts/notice.tsx'
import { href } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { refreshStatus, status, tellTabs, siteName } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { mailTexts } from '../../strings/people/mail.ts'
import { MAX_TYPED_PASSWORD } from '../../../shared/limits.ts'

/** The token of the link; null: the address has none. Nothing stores it, so a reload needs the link again. */
const token: Signal<string | null> = signal(takeToken())

/** Takes the token out of the address, so that neither the history nor a screenshot has it. */
function takeToken(): string | null {
  const found = /^#([\w-]{43})$/.exec(location.hash)?.[1] ?? null
  if (location.hash !== '') history.replaceState(history.state, '', location.pathname + location.search)
  return found
}

type Link = InferResponseType<typeof api.auth.links.$post>

/** Shows what a link in an e-mail is for. Opening it changes nothing; only its button does. */
export function MailLinkPage() {
  useEffect(() => {
    const again = () => {
      const found = takeToken()
      if (found !== null) token.value = found
    }
    addEventListener('hashchange', again)
    return () => removeEventListener('hashchange', again)
  }, [])
  return token.value === null ? <NoLink /> : <OpenLink token={token.value} key={token.value} />
}

function Titled({ title, children }: Parameters<typeof Alone>[0]) {
  useEffect(() => {
    document.title = `${title} · ${siteName.value}`
  }, [title])
  return <Alone title={title}>{children}</Alone>
}

function NoLink() {
  return (
    <Titled title={mailTexts.noLink}>
      <p class="measure">{mailTexts.noLinkHelp}</p>
      <Ways />
    </Titled>
  )
}

/** Where to go if a link does not work. */
function Ways() {
  return (
    <>
      {status.value?.accountMail === true && (
        <a class="button wide" href={href('/forgot-password')}>
          {mailTexts.another}
        </a>
      )}
      <a class="button wide" href={href('/')}>
        {t.shell.home}
      </a>
    </>
  )
}

function OpenLink({ token: one }: { token: string }) {
  const { data, error } = useLoad(() => ask(api.auth.links.$post({ json: { token: one } })), [one])
  const link = data.value
  if (error.value !== null && link === null) {
    return (
      <Titled title={mailTexts.noLink}>
        <Failure error={error.value} />
        <Ways />
      </Titled>
    )
  }
  if (link === null) {
    return (
      <Titled title={siteName.value}>
        <Loading />
      </Titled>
    )
  }
  return link.purpose === 'verify' ? <Confirm link={link} token={one} /> : <Choose link={link} token={one} />
}

function Confirm({ link, token: one }: { link: Link; token: string }) {
  const { busy, error, run } = useAction()
  const isDone = useSignal(false)
  const confirm = () =>
    run(async () => {
      await send(api.auth.email.confirm.$post({ json: { token: one } }))
      isDone.value = true
      await refreshStatus()
    })
  return (
    <Titled title={mailTexts.confirmTitle}>
      {isDone.value ? (
        <>
          <p class="measure" role="status">
            {mailTexts.confirmed(link.email)}
          </p>
          <a class="button primary wide" href={href('/')}>
            {t.shell.home}
          </a>
        </>
      ) : (
        <>
          <p class="measure named">{mailTexts.confirmHelp(link.email, link.username)}</p>
          <Failure error={error.value} />
          <button type="button" class="button primary wide" disabled={busy.value} onClick={() => void confirm()}>
            {mailTexts.confirm}
          </button>
        </>
      )}
    </Titled>
  )
}

function Choose({ link, token: one }: { link: Link; token: string }) {
  const { busy, error, run } = useAction()
  const differ = useSignal(false)
  const isDone = useSignal(false)
  const isInvited = link.purpose === 'invitation'
  const submit = handleForm(async (text) => {
    const password = text('new')
    differ.value = password !== text('repeat')
    if (differ.value) return
    await run(async () => {
      const json = { token: one, password }
      await send(isInvited ? api.auth.invitation.$post({ json }) : api.auth['password-reset'].confirm.$post({ json }))
      isDone.value = true
      await refreshStatus()
      tellTabs()
    })
  })
  const title = isInvited ? mailTexts.invitedTitle(link.username) : mailTexts.resetTitle
  if (isDone.value) {
    return (
      <Titled title={title}>
        <p class="measure" role="status">
          {isInvited ? mailTexts.ready : mailTexts.changed}
        </p>
        <a class="button primary wide" href={href('/login')}>
          {t.signIn.submit}
        </a>
      </Titled>
    )
  }
  return (
    <Titled title={title}>
      <p class="measure named">{isInvited ? mailTexts.invitedHelp : mailTexts.resetHelp(link.username)}</p>
      <form onSubmit={submit} class="stack">
        <Failure error={error.value} />
        <input type="text" name="username" autocomplete="username" value={link.username} readOnly hidden />
        <Field
          label={t.password.new}
          name="new"
          type="password"
          autocomplete="new-password"
          hint={t.password.hint(status.value?.passwordMinLength ?? null)}
          maxLength={MAX_TYPED_PASSWORD}
          required
          autofocus
        />
        <Field
          label={t.password.repeat}
          name="repeat"
          type="password"
          autocomplete="new-password"
          error={differ.value ? t.password.differ : null}
          maxLength={MAX_TYPED_PASSWORD}
          required
        />
        <Submit busy={busy.value} idle={mailTexts.setPassword} working={t.common.saving} />
      </form>
    </Titled>
  )
}
