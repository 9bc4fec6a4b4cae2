import { useSignal } from '@preact/signals'
import type { InferRequestType } from 'hono/client'
import { api, ask, send } from '../../api.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { CopyText } from '../../parts/copy.tsx'
import { scopeName, type Token, TokenRow } from '../../parts/form/credential-rows.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { Actions, Field, Select, Submit } from '../../parts/form/field.tsx'
import { useDraft } from '../../parts/form/typed-draft.ts'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { type Scope, usableScopes } from '../../../shared/access/token-scopes.ts'
import { isAdmin, status } from '../../state/session.ts'
import { namesOf } from '../../../shared/names.ts'
import { t } from '../../strings.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { MAX_TOKEN_NAME } from '../../../shared/limits.ts'

type NewToken = InferRequestType<typeof api.tokens.$post>['json']

/** The user's own API tokens: creating, listing and revoking them. */
export function Tokens() {
  const { data, error, reload } = useLoad(() => ask(api.tokens.$get()), [])
  // Continues with a token that was being created when the session ended.
  const draft = useTokenDraft()
  const isMaking = useSignal(draft.wasBegun)
  const tokens = data.value?.tokens
  return (
    <Card
      title={accountTexts.tokens}
      help={accountTexts.tokensHelp}
      actions={
        <button type="button" class="button" onClick={() => (isMaking.value = true)}>
          {accountTexts.newToken}
        </button>
      }
    >
      <Failure error={error.value} retry={reload} />
      {tokens?.length === 0 && <p class="faint">{accountTexts.noTokens}</p>}
      <ul class="rows">
        {tokens?.map((token) => (
          <TokenRow token={token} key={token.id}>
            <Revoke token={token} onRevoked={reload} />
          </TokenRow>
        ))}
      </ul>
      {isMaking.value && <NewTokenDialog draft={draft} onClose={() => (isMaking.value = false)} onMade={reload} />}
    </Card>
  )
}

function Revoke({ token, onRevoked }: { token: Token; onRevoked(): Promise<void> }) {
  return (
    <button
      type="button"
      class="button small"
      aria-label={accountTexts.revokeLabel(token.name)}
      onClick={() =>
        askFirst({
          text: accountTexts.revokeSure(token.name),
          confirm: accountTexts.revoke,
          isDangerous: true,
          act: async () => {
            await send(api.tokens[':id'].$delete({ param: { id: String(token.id) } }))
            say(accountTexts.revoked)
            await onRevoked()
          },
        })
      }
    >
      {accountTexts.revoke}
    </button>
  )
}

/** Only the owner's own permissions. */
function offeredScopes(): Scope[] {
  const permissions = status.value?.permissions
  return permissions === undefined ? [] : usableScopes({ isAdmin: isAdmin.value, permissions }, namesOf(t.resources))
}

const EXPIRIES = ['30', '90', '365', ''] as const

function useTokenDraft() {
  const name = useDraft('token-name')
  const scopes = useDraft('token-scopes')
  const expiry = useDraft('token-expiry', '90')
  const all = [name, scopes, expiry]
  return {
    name: name.value,
    /** Separated by spaces. */
    scopes: scopes.value,
    expiry: expiry.value,
    wasBegun: all.some(({ wasBegun }) => wasBegun),
    forget() {
      name.value.value = ''
      scopes.value.value = ''
      expiry.value.value = '90'
    },
  }
}

type DialogProps = { draft: ReturnType<typeof useTokenDraft>; onClose(): void; onMade(): Promise<void> }

function NewTokenDialog({ draft, onClose, onMade }: DialogProps) {
  const { busy, error, run } = useAction()
  const made = useSignal<string | null>(null)
  const hasNoScope = useSignal(false)
  const chosen = draft.scopes.value.split(' ').filter((scope) => scope !== '')
  const close = () => {
    draft.forget()
    onClose()
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    // Scopes that the owner has lost meanwhile have no box to untick, so they are left out.
    const scopes = offeredScopes().filter((scope) => chosen.includes(scope))
    hasNoScope.value = scopes.length === 0
    if (hasNoScope.value) return
    const json: NewToken = {
      name: draft.name.value.trim(),
      scopes,
      // Without this field, a token ends after 90 days.
      expiresInDays: draft.expiry.value === '' ? null : Number(draft.expiry.value),
    }
    await run(async () => {
      made.value = (await ask(api.tokens.$post({ json }))).token
      draft.forget()
      await onMade()
    })
  }
  if (made.value !== null) {
    return (
      <Dialog title={accountTexts.tokenMade} onClose={onClose} key="made">
        <p class="measure">{accountTexts.tokenMadeHelp}</p>
        <CopyText text={made.value} label={accountTexts.newToken} />
      </Dialog>
    )
  }
  return (
    <Dialog title={accountTexts.newToken} onClose={close}>
      <form onSubmit={submit} class="stack">
        <Failure error={error.value} />
        <Field
          label={accountTexts.tokenName}
          name="name"
          hint={accountTexts.tokenNameHint}
          maxLength={MAX_TOKEN_NAME}
          pattern=".*\S.*"
          value={draft.name.value}
          onInput={(event) => (draft.name.value = event.currentTarget.value)}
          required
          autofocus
        />
        <Scopes chosen={chosen} onChange={(scopes) => (draft.scopes.value = scopes.join(' '))} />
        {hasNoScope.value && (
          <p class="bad" role="alert">
            {accountTexts.noScope}
          </p>
        )}
        <Select
          label={accountTexts.expires}
          value={EXPIRIES.find((days) => days === draft.expiry.value) ?? '90'}
          options={EXPIRIES.map((days) => [days, accountTexts.expiry[days]] as const)}
          onChange={(days) => (draft.expiry.value = days)}
        />
        <Actions>
          <Submit busy={busy.value} idle={accountTexts.newToken} working={t.common.saving} />
        </Actions>
      </form>
    </Dialog>
  )
}

function Scopes({ chosen, onChange }: { chosen: readonly string[]; onChange(scopes: readonly string[]): void }) {
  return (
    <fieldset class="checks">
      <legend>{accountTexts.scopes}</legend>
      {offeredScopes().map((scope) => (
        <label key={scope}>
          <input
            type="checkbox"
            checked={chosen.includes(scope)}
            onChange={(event) =>
              onChange(event.currentTarget.checked ? [...chosen, scope] : chosen.filter((other) => other !== scope))
            }
          />
          {scopeName(scope)}
        </label>
      ))}
    </fieldset>
  )
}
