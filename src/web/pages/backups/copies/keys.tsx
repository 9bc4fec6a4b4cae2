import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { MAX_KEY_NAME, MAX_TYPED_END, MAX_TYPED_KEY } from '../../../../shared/limits.ts'
import { api, send } from '../../../api.ts'
import { Age } from '../../../parts/age.tsx'
import { CopyText } from '../../../parts/copy.tsx'
import { askFirst, Dialog } from '../../../parts/dialog.tsx'
import { Actions, Field, handleForm, SaveOrCancel, Submit } from '../../../parts/form/field.tsx'
import { Failure, Loading, say } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { QrCode } from '../../../parts/qr-code.tsx'
import { useAction } from '../../../state/load.ts'
import { t } from '../../../strings.ts'
import { copyTexts } from '../../../strings/system/copies.ts'
import type { CopiesState } from './place.ts'

type Recipients = CopiesState['recipients']
type Props = { recipients: Recipients; reload(): Promise<void> }

/** Replaces the public keys. */
async function store(recipients: readonly { readonly recipient: string; readonly name: string }[]): Promise<void> {
  const json = { recipients: recipients.map(({ recipient, name }) => ({ recipient, name })) }
  await send(api.system.copies.$put({ json }))
}

/** For whom copies are encrypted. */
export function Keys({ recipients, reload }: Props) {
  const adding = useSignal<'new' | 'paste' | null>(null)
  const close = () => (adding.value = null)
  const add = async (recipient: string, name: string) => {
    await store([...recipients, { recipient, name }])
    say(copyTexts.keyAdded)
    close()
    await reload()
  }
  const remove = ({ recipient, name }: Recipients[number]) =>
    askFirst({
      text: copyTexts.removeKeySure(name),
      confirm: copyTexts.remove,
      isDangerous: true,
      act: async () => {
        await store(recipients.filter((one) => one.recipient !== recipient))
        say(copyTexts.keyRemoved)
        await reload()
      },
    })
  return (
    <Card title={copyTexts.keys} help={copyTexts.keysHelp}>
      {recipients.length === 0 && <p class="faint">{copyTexts.noKeys}</p>}
      <ul class="rows">
        {recipients.map((one) => (
          <li key={one.recipient}>
            <div class="grow">
              <strong>{one.name}</strong>{' '}
              <span class="faint">
                <Age at={one.addedAt} />
              </span>
              <div class="mono break">{one.recipient}</div>
            </div>
            <button
              type="button"
              class="button small danger-quiet"
              aria-label={`${copyTexts.remove} ${one.name}`}
              onClick={() => remove(one)}
            >
              {copyTexts.remove}
            </button>
          </li>
        ))}
      </ul>
      <Actions>
        <button type="button" class="button" onClick={() => (adding.value = 'paste')}>
          {copyTexts.pasteKey}
        </button>
        <button
          type="button"
          class={recipients.length === 0 ? 'button primary' : 'button'}
          onClick={() => (adding.value = 'new')}
        >
          {copyTexts.makeKey}
        </button>
      </Actions>
      {adding.value === 'new' && <NewKey onAdd={add} onClose={close} />}
      {adding.value === 'paste' && <PastedKey onAdd={add} onClose={close} />}
    </Card>
  )
}

type Adding = { onAdd(recipient: string, name: string): Promise<void>; onClose(): void }

function KeyName() {
  return (
    <Field
      label={copyTexts.keyName}
      hint={copyTexts.keyNameHint}
      name="name"
      maxLength={MAX_KEY_NAME}
      autocomplete="off"
      required
    />
  )
}

/** Makes a pair of keys in this browser. Only the public one leaves it. */
function NewKey({ onAdd, onClose }: Adding) {
  const pair = useSignal<{ identity: string; recipient: string } | null>(null)
  const making = useAction()
  const saving = useAction()
  const wrong = useSignal(false)
  useEffect(() => {
    void making.run(async () => {
      const { generateX25519Identity, identityToRecipient } = await import('age-encryption')
      const identity = await generateX25519Identity()
      pair.value = { identity, recipient: await identityToRecipient(identity) }
    })
    return () => (pair.value = null)
  }, [])
  const made = pair.value
  const save = handleForm(async (text) => {
    if (made === null) return
    wrong.value = text('lastFour').trim().toUpperCase() !== made.identity.slice(-4)
    if (!wrong.value) await saving.run(() => onAdd(made.recipient, text('name').trim()))
  })
  return (
    <Dialog title={copyTexts.makeTitle} onClose={onClose}>
      {made === null ? (
        making.error.value === null ? (
          <Loading />
        ) : (
          <Failure error={making.error.value} />
        )
      ) : (
        <>
          <p class="measure">{copyTexts.onlyOnce}</p>
          <CopyText text={made.identity} label={copyTexts.makeTitle} />
          <QrCode text={made.identity} label={copyTexts.qr} />
          <form onSubmit={save} class="stack">
            <KeyName />
            <Field
              label={copyTexts.lastFour}
              hint={copyTexts.lastFourHint}
              error={wrong.value ? copyTexts.wrongFour : null}
              name="lastFour"
              maxLength={MAX_TYPED_END}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              required
            />
            <Failure error={saving.error.value} />
            <Actions>
              <button type="button" class="button" onClick={onClose}>
                {t.common.cancel}
              </button>
              <Submit busy={saving.busy.value} idle={copyTexts.useKey} working={t.common.saving} />
            </Actions>
          </form>
        </>
      )}
    </Dialog>
  )
}

/** A public key that was made elsewhere. */
function PastedKey({ onAdd, onClose }: Adding) {
  const saving = useAction()
  const isPrivate = useSignal(false)
  const save = handleForm(async (text, form) => {
    const recipient = text('recipient').trim()
    // It must not even be sent to be refused.
    isPrivate.value = /AGE-SECRET-KEY|PRIVATE KEY/i.test(recipient)
    if (isPrivate.value) form.reset()
    else await saving.run(() => onAdd(recipient, text('name').trim()))
  })
  return (
    <Dialog title={copyTexts.pasteKey} onClose={onClose}>
      <form onSubmit={save} class="stack">
        <Field
          label={copyTexts.publicKey}
          hint={copyTexts.publicKeyHint}
          error={isPrivate.value ? copyTexts.isPrivate : null}
          name="recipient"
          maxLength={MAX_TYPED_KEY}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          required
        />
        <KeyName />
        <Failure error={saving.error.value} />
        <SaveOrCancel busy={saving.busy.value} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
