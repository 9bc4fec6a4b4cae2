import { type Signal, useSignal } from '@preact/signals'
import type { ApiError, Issue } from '../../api.ts'
import { capital } from '../../format.ts'
import { asApiError, type Loaded, useAction } from '../../state/load.ts'
import { say } from '../../parts/notice.tsx'
import { c } from '../../strings/system/configuration.ts'
import { keepEdits, noteSent } from './edits.ts'
import {
  bodyOf,
  type Destination,
  type Difference,
  type Edits,
  fits,
  isReadable,
  leavesOf,
  NO_EDITS,
  type Section,
} from './model.ts'
import { Review } from './review.tsx'
import { namesOf } from './words.ts'

/** The service's errors, and the request that caused them. */
export type Refusal = { readonly issues: readonly Issue[]; readonly edits: Edits }

type SaveProps = {
  section: Section
  destination: Destination
  loaded: Pick<Loaded<unknown>, 'reload'>
  onSent(): void
  differences: readonly Difference[]
  edits: Edits
  refused: Signal<Refusal | null>
  /** Secrets to enter again, and the change that requires it, by path. */
  unrenewed: ReadonlyMap<string, string>
  isFixed: boolean
}

/** The unsent changes, and the button to send them. */
export function SaveBar(props: SaveProps) {
  const { section, differences, edits, refused, unrenewed, isFixed } = props
  const isOpen = useSignal(false)
  const { sending, notice, send } = useSending(props, isOpen)
  const isReady = differences.every(
    (each) => each.kind === 'secret' || (isReadable(each.leaf.field, each.after) && fits(each.leaf.field, each.after)),
  )
  const rest = refused.value?.edits === edits ? refused.value.issues.filter(isElsewhere(section)) : []
  return (
    <div class="save-bar">
      {notice.value !== null && (
        <div class="notice notice-warn" role="alert">
          <div>
            {notice.value}
            {rest.map(({ message }) => (
              <div key={message}>{capital(message)}</div>
            ))}
          </div>
        </div>
      )}
      <div role="status">
        {[...unrenewed].map(([secret, path]) => (
          <div class="notice notice-warn" key={secret}>
            {c.renewFor(namesOf(section, leavesOf(section), [secret]), namesOf(section, leavesOf(section), [path]))}
          </div>
        ))}
      </div>
      <div class="save-bar-line">
        <strong>{c.fieldCount(differences.length)}</strong>
        <span class="grow" />
        <button
          type="button"
          class="button"
          onClick={() => {
            refused.value = null
            keepEdits(section.source, section.section, NO_EDITS)
          }}
        >
          {c.discard}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={isFixed || !isReady || unrenewed.size > 0}
          onClick={() => {
            notice.value = null
            sending.error.value = null
            isOpen.value = true
          }}
        >
          {c.review}
        </button>
      </div>
      {isOpen.value && (
        <Review
          section={section.section}
          differences={differences}
          airtime={props.destination.airtime}
          sending={sending}
          onSend={(confirmed, accepted) => void send(confirmed, accepted)}
          onClose={() => (isOpen.value = false)}
        />
      )}
    </div>
  )
}

/** An issue without a field, for example that there must be one primary channel. */
function isElsewhere(section: Section): (issue: Issue) => boolean {
  const paths = new Set(leavesOf(section).flatMap(({ path }) => [`values.${path}`, `secrets.${path}`]))
  return ({ path }) => !paths.has(path)
}

function useSending(props: SaveProps, isOpen: Signal<boolean>) {
  const { section, destination, differences, edits, refused, loaded, onSent } = props
  const sending = useAction()
  const notice = useSignal<string | null>(null)
  const send = (confirmed: readonly string[], accepted: readonly string[]) =>
    sending.run(async () => {
      try {
        const change = await destination.put(section, bodyOf(section, differences, confirmed), accepted)
        if (change !== null) noteSent(change.id)
        say(change === null ? destination.nothing : destination.sent)
        refused.value = null
        isOpen.value = false
        onSent()
      } catch (cause) {
        const error = asApiError(cause)
        if (!(await explainAtForm(error))) throw error
      }
      await loaded.reload()
    })
  /** Closes the window for errors that are shown at the form; false for other errors. */
  const explainAtForm = async (error: ApiError): Promise<boolean> => {
    if (error.code === 'configuration_changed') notice.value = c.reloaded
    else if (error.issues.length > 0) {
      notice.value = c.lookAbove
      refused.value = { issues: error.issues, edits }
    } else return false
    isOpen.value = false
    return true
  }
  return { sending, notice, send }
}
