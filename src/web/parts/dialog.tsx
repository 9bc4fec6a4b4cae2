import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { t } from '../strings.ts'
import { useAction } from '../state/load.ts'
import { Failure, openDialogs, Toaster } from './notice.tsx'
import { Icon } from './icon.tsx'

/**
 * The element outside dialogs that had the focus last, because a button that is disabled while its action runs loses
 * the focus.
 */
let lastFocused: Element | null = null
document.addEventListener('focusin', ({ target }) => {
  if (target instanceof Element && target.closest('dialog') === null) lastFocused = target
})

/** A modal window: the browser keeps the focus inside and closes it on Escape. */
export function Dialog(props: { title: string; onClose(): void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    openDialogs.value = [...openDialogs.peek(), id]
    return () => {
      openDialogs.value = openDialogs.peek().filter((each) => each !== id)
      // The element that opened it, such as a deleted row, may no longer exist; the page's heading always does.
      const places = [opener === document.body ? null : opener, lastFocused, document.querySelector('h1')]
      const next = places.find((each) => each?.isConnected)
      if (next instanceof HTMLElement) next.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      // Called before the window disappears, because `close` follows in a task of its own, when the page may already be
      // gone.
      onBeforeToggle={({ newState }) => newState === 'closed' && props.onClose()}
      // Browsers without that event on dialogs.
      onClose={() => dialog.current !== null && props.onClose()}
    >
      <div class="dialog-head">
        <h2 id={id}>{props.title}</h2>
        <button type="button" class="icon-button" aria-label={t.common.close} onClick={() => dialog.current?.close()}>
          <Icon name="close" />
        </button>
      </div>
      <div class="dialog-body">{props.children}</div>
      <Toaster dialog={id} />
    </dialog>
  )
}

type Question = { text: string; confirm: string; isDangerous: boolean; act(): Promise<void> }
const question = signal<Question | null>(null)

/** Asks before `act`; errors appear in the same window. */
export function askFirst(asked: Question): void {
  question.value = asked
}

/** The place where `askFirst` asks: once per page. */
export function Asker() {
  return question.value === null ? null : <Confirm question={question.value} key={question.value} />
}

function Confirm({ question: { text, confirm, isDangerous, act } }: { question: Question }) {
  const action = useAction()
  const close = () => (question.value = null)
  return (
    <Dialog title={confirm} onClose={close}>
      <p class="measure">{text}</p>
      <Failure error={action.error.value} />
      <div class="form-actions">
        <button type="button" class="button" onClick={close}>
          {t.common.cancel}
        </button>
        <button
          type="button"
          class={isDangerous ? 'button danger' : 'button primary'}
          disabled={action.busy.value}
          onClick={async () => {
            if (await action.run(act)) close()
          }}
        >
          {confirm}
        </button>
      </div>
    </Dialog>
  )
}
