import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../../api.ts'
import { dateTime } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Age } from '../../parts/age.tsx'
import { CopyText } from '../../parts/copy.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { CODE_FIELD } from '../../parts/form/code-field.ts'
import { Actions, Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { QrCode } from '../../parts/qr-code.tsx'
import { Card } from '../../parts/page.tsx'
import { canUsePasskeys } from '../../can-use-passkeys.ts'
import { createPasskey } from '../../passkeys.ts'
import { newRecoveryCodes } from '../../state/recovery-codes.ts'
import { refreshStatus, status } from '../../state/session.ts'
import { MAX_PASSKEY_NAME } from '../../../shared/limits.ts'
import { t } from '../../strings.ts'
import { factorTexts } from '../../strings/people/factors.ts'

/** The user's own second factors and recovery codes. */
export function Factors() {
  const { data, error, reload } = useLoad(() => ask(api.auth.factors.$get()), [])
  const isAdding = useSignal(false)
  const isNaming = useSignal(false)
  const found = data.value
  const changed = async () => {
    await Promise.all([reload(), refreshStatus()])
  }
  const hasFactor = found !== null && (found.totp !== null || found.passkeys.length > 0)
  return (
    <Card
      title={factorTexts.title}
      help={factorTexts.help}
      actions={
        <>
          {canUsePasskeys(status.value?.passkeysPossible === true) && (
            <button type="button" class="button" onClick={() => (isNaming.value = true)}>
              {factorTexts.addPasskey}
            </button>
          )}
          <button type="button" class="button" onClick={() => (isAdding.value = true)}>
            {found?.totp ? factorTexts.replace : factorTexts.setUp}
          </button>
        </>
      }
    >
      <ResetNotice />
      <Failure error={error.value} retry={reload} />
      {found !== null && !hasFactor && (
        <p class="faint">
          {factorTexts.none} {factorTexts.firstEndsOthers}
        </p>
      )}
      <ul class="rows">
        {found?.totp && (
          <li>
            <div class="grow">
              {factorTexts.totp}
              <div class="faint">
                {factorTexts.since} <Age at={found.totp.createdAt} />
              </div>
              {!found.totp.isReadable && <div class="bad">{factorTexts.unreadable}</div>}
            </div>
            <RemoveButton
              name={factorTexts.totp}
              sure={factorTexts.removeTotpSure}
              act={() => send(api.auth.factors.totp.$delete())}
              onDone={changed}
            />
          </li>
        )}
        {found?.passkeys.map((passkey) => (
          <li key={passkey.id}>
            <div class="grow">
              {passkey.name} <span class="tag">{factorTexts.passkey}</span>
              <div class="faint">
                {passkey.lastUsedAt === null ? (
                  factorTexts.never
                ) : (
                  <>
                    {factorTexts.lastUsed} <Age at={passkey.lastUsedAt} />
                  </>
                )}
              </div>
              {!passkey.isUsable && <div class="bad">{factorTexts.unusable(passkey.host)}</div>}
            </div>
            <RemoveButton
              name={passkey.name}
              sure={factorTexts.removePasskeySure(passkey.name)}
              act={() => send(api.auth.factors.passkeys[':id'].$delete({ param: { id: String(passkey.id) } }))}
              onDone={changed}
            />
          </li>
        ))}
        {hasFactor && (
          <li>
            <div class="grow">{factorTexts.codesLeft(found.recoveryCodesLeft)}</div>
            <button type="button" class="button small" onClick={() => renewCodes(reload)}>
              {factorTexts.newCodes}
            </button>
          </li>
        )}
      </ul>
      {isAdding.value && (
        <AddTotp
          onClose={() => (isAdding.value = false)}
          onAdded={async (made) => {
            isAdding.value = false
            newRecoveryCodes.value = made
            await changed()
          }}
        />
      )}
      {isNaming.value && (
        <AddPasskey
          onClose={() => (isNaming.value = false)}
          onAdded={async (made) => {
            isNaming.value = false
            newRecoveryCodes.value = made
            await changed()
          }}
        />
      )}
    </Card>
  )
}

function renewCodes(reload: () => Promise<void>): void {
  askFirst({
    text: factorTexts.newCodesSure,
    confirm: factorTexts.newCodes,
    isDangerous: true,
    act: async () => {
      newRecoveryCodes.value = (await ask(api.auth.factors['recovery-codes'].$post())).recoveryCodes
      await reload()
    },
  })
}

type RemoveProps = { name: string; sure: string; act(): Promise<unknown>; onDone(): Promise<void> }

function RemoveButton({ name, sure, act, onDone }: RemoveProps) {
  const remove = () =>
    askFirst({
      text: sure,
      confirm: factorTexts.remove,
      isDangerous: true,
      act: async () => {
        await act()
        say(factorTexts.removed)
        await onDone()
      },
    })
  return (
    <button type="button" class="button small" aria-label={factorTexts.removeLabel(name)} onClick={remove}>
      {factorTexts.remove}
    </button>
  )
}

/** A notice that an administrator changed this account, until it is confirmed. */
function ResetNotice() {
  const at = status.value?.secondFactor.resetAt ?? null
  const { busy, run } = useAction()
  if (at === null) return null
  const dismiss = () =>
    run(async () => {
      await send(api.auth.factors['reset-notice'].$delete())
      await refreshStatus()
    })
  return (
    <div class="notice" role="status">
      <div>{factorTexts.wasReset(dateTime(at))}</div>
      <button type="button" class="button small" disabled={busy.value} onClick={() => void dismiss()}>
        {factorTexts.understood}
      </button>
    </div>
  )
}

type Begun = InferResponseType<typeof api.auth.factors.totp.$post, 200>

function AddTotp(props: { onClose(): void; onAdded(codes: readonly string[] | null): Promise<void> }) {
  const { data, error } = useLoad(() => ask(api.auth.factors.totp.$post()), [])
  return (
    <Dialog title={factorTexts.setUp} onClose={props.onClose}>
      <Failure error={error.value} />
      {data.value !== null && <ConfirmTotp begun={data.value} onAdded={props.onAdded} />}
    </Dialog>
  )
}

type AddPasskeyProps = { onClose(): void; onAdded(codes: readonly string[] | null): Promise<void> }

function AddPasskey({ onClose, onAdded }: AddPasskeyProps) {
  const { busy, error, run } = useAction()
  const submit = handleForm(async (text) => {
    const name = text('name').trim()
    await run(async () => {
      const codes = await createPasskey(name)
      say(factorTexts.added)
      await onAdded(codes)
    })
  })
  return (
    <Dialog title={factorTexts.addPasskey} onClose={onClose}>
      <form onSubmit={submit} class="stack">
        <p class="measure">{factorTexts.passkeyHelp}</p>
        <Failure error={error.value} />
        <Field
          label={factorTexts.passkeyName}
          name="name"
          hint={factorTexts.passkeyNameHint}
          maxLength={MAX_PASSKEY_NAME}
          pattern=".*\S.*"
          autocomplete="off"
          required
          autofocus
        />
        <Actions>
          <Submit busy={busy.value} idle={factorTexts.addPasskey} working={t.common.saving} />
        </Actions>
      </form>
    </Dialog>
  )
}

type ConfirmProps = { begun: Begun; onAdded(codes: readonly string[] | null): Promise<void> }

function ConfirmTotp({ begun, onAdded }: ConfirmProps) {
  const { busy, error, run } = useAction()
  const submit = handleForm(async (text) => {
    const json = { enrolment: begun.enrolment, code: text('code').trim() }
    await run(async () => {
      const { recoveryCodes } = await ask(api.auth.factors.totp.confirm.$post({ json }))
      say(factorTexts.added)
      await onAdded(recoveryCodes)
    })
  })
  return (
    <form onSubmit={submit} class="stack">
      <p class="measure">{factorTexts.scan}</p>
      <QrCode text={begun.uri} label={factorTexts.qr} />
      <div>
        <div class="faint">{factorTexts.secret}</div>
        <CopyText text={begun.secret} label={factorTexts.secret} />
      </div>
      <Failure error={error.value} />
      <Field {...CODE_FIELD} name="code" required />
      <Actions>
        <Submit busy={busy.value} idle={factorTexts.confirm} working={t.common.saving} />
      </Actions>
    </form>
  )
}
