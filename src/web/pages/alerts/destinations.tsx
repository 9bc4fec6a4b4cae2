import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { DESTINATION_KIND_NAMES, type DestinationKind, fieldsOf } from '../../../shared/alerts/destination-kinds.ts'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'
import { api, ask, send } from '../../api.ts'
import { dateTime, humanize } from '../../format.ts'
import { Copyable } from '../../parts/copy.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { Field, handleForm, SaveOrCancel, Select } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction } from '../../state/load.ts'
import { refreshStatus } from '../../state/session.ts'
import { alertTexts, DESTINATION_TEXTS, FIELD_TEXTS } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { pushProblem, subscribeBrowser } from './push.ts'

export type Destination = InferResponseType<typeof api.alerts.destinations.$get, 200>['destinations'][number]

type Props = { destinations: readonly Destination[]; hasMail: boolean; reload(): Promise<void> }

/** The destinations of the reader's alerts. */
export function Destinations({ destinations, hasMail, reload }: Props) {
  const isAdding = useSignal(false)
  const subscribing = useAction()
  const problem = useSignal<string | null>(null)
  const subscribe = () =>
    void subscribing.run(async () => {
      problem.value = pushProblem()
      if (problem.value !== null) return
      try {
        await subscribeBrowser()
      } catch (error) {
        if (error instanceof Error && error.name !== 'ApiError') {
          problem.value = error.message
          return
        }
        throw error
      }
      await reload()
    })
  return (
    <Card
      title={alertTexts.destinationsTitle}
      help={alertTexts.destinationsHelp}
      actions={
        <>
          <button type="button" class="button" disabled={subscribing.busy.value} onClick={subscribe}>
            {alertTexts.pushOn}
          </button>
          <button type="button" class="button" onClick={() => (isAdding.value = true)}>
            <Icon name="plus" />
            {alertTexts.newDestination}
          </button>
        </>
      }
    >
      <Failure error={subscribing.error.value} />
      {problem.value !== null && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      <ul class="rows">
        {destinations.map((destination) => (
          <DestinationRow destination={destination} reload={reload} key={destination.id} />
        ))}
      </ul>
      {isAdding.value && (
        <AddDestination
          hasMail={hasMail}
          onDone={() => {
            isAdding.value = false
            void reload()
          }}
        />
      )}
    </Card>
  )
}

function DestinationRow({ destination, reload }: { destination: Destination; reload(): Promise<void> }) {
  const { id, name, kind, host, enabled, confirmed, lastResult, heldAt, heldFor, newsAt } = destination
  const releasing = useAction()
  const testing = useAction()
  const param = { id: String(id) }
  const test = () =>
    void testing.run(async () => {
      const { ok, result } = await ask(api.alerts.destinations[':id'].test.$post({ param }))
      say(alertTexts.tested(ok, result))
      await reload()
    })
  const isToReview = heldAt !== null || newsAt !== null
  const release = () =>
    void releasing.run(async () => {
      await ask(api.alerts.destinations[':id'].release.$post({ param }))
      await Promise.all([reload(), refreshStatus()])
    })
  const remove = () =>
    askFirst({
      text: `${t.common.delete} “${name}”?`,
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.alerts.destinations[':id'].$delete({ param }))
        await Promise.all([reload(), isToReview ? refreshStatus() : null])
      },
    })
  return (
    <li>
      <span class="grow break">
        <strong>{name}</strong> <span class="tag">{DESTINATION_TEXTS[kind]}</span>{' '}
        {!enabled && <span class="tag">{alertTexts.off}</span>}
        {host !== null && <span class="faint">{host}</span>}
        {heldFor !== null && <div class="warn">{alertTexts.heldFor(heldFor, dateTime(heldAt ?? 0))}</div>}
        {newsAt !== null && heldAt === null && <div class="warn">{alertTexts.isNew(dateTime(newsAt))}</div>}
        {newsAt !== null && heldAt !== null && <div class="faint">{alertTexts.addedAt(dateTime(newsAt))}</div>}
        {!confirmed && <div class="warn">{alertTexts.unconfirmed}</div>}
        {lastResult !== null && (
          <div class="faint">
            {alertTexts.last} {lastResult}
          </div>
        )}
        <Failure error={testing.error.value ?? releasing.error.value} />
      </span>
      <div class="row-actions">
        {isToReview && (
          <button type="button" class="button small primary" disabled={releasing.busy.value} onClick={release}>
            {heldAt === null ? alertTexts.wasMe : alertTexts.release}
          </button>
        )}
        {confirmed && heldAt === null && (
          <button type="button" class="button small" disabled={testing.busy.value} onClick={test}>
            {alertTexts.test}
          </button>
        )}
        <button type="button" class="button small danger-quiet" onClick={remove}>
          {t.common.delete}
        </button>
      </div>
    </li>
  )
}

type AddProps = {
  hasMail: boolean
  /** With the ID of the new destination; null: none was made. */
  onDone(made: number | null): void
}

/** Creates a destination. */
export function AddDestination({ hasMail, onDone }: AddProps) {
  const kinds = DESTINATION_KIND_NAMES.filter((kind) => kind !== 'web_push' && (kind !== 'email' || hasMail))
  const kind = useSignal<DestinationKind>(hasMail ? 'email' : 'ntfy')
  const made = useSignal<{ readonly id: number; readonly secret: string } | null>(null)
  const saving = useAction()
  const fields = fieldsOf(kind.value)
  const save = handleForm(async (text) => {
    await saving.run(async () => {
      const given = fields.map(([name]) => [name, text(name).trim()] as const).filter(([, value]) => value !== '')
      const name = text('name').trim() === '' ? DESTINATION_TEXTS[kind.value] : text('name').trim()
      const json = { kind: kind.value, name, settings: Object.fromEntries(given) }
      const { destination, secret } = await ask(api.alerts.destinations.$post({ json }))
      if (secret === null) onDone(destination.id)
      else made.value = { id: destination.id, secret }
    })
  })
  if (made.value !== null) {
    const { id, secret } = made.value
    return (
      <Dialog title={alertTexts.newDestination} onClose={() => onDone(id)} key="made">
        <p>{alertTexts.secretOnce}</p>
        <Copyable text={secret} name={alertTexts.secretOnce} />
      </Dialog>
    )
  }
  return (
    <Dialog title={alertTexts.newDestination} onClose={() => onDone(null)}>
      <form class="stack" onSubmit={save}>
        <Select
          label={alertTexts.destinations}
          value={kind.value}
          options={kinds.map((each) => [each, DESTINATION_TEXTS[each]] as const)}
          onChange={(next) => (kind.value = next)}
        />
        <Field label={alertTexts.name} name="name" maxLength={MAX_RULE_NAME} />
        {fields.map(([name, { secret: isSecret, optional, example }]) => (
          <Field
            key={`${kind.value} ${name}`}
            label={FIELD_TEXTS[name] ?? humanize(name)}
            name={name}
            type={isSecret === true ? 'password' : 'text'}
            autocomplete="off"
            hint={example ?? ''}
            required={optional !== true}
          />
        ))}
        <Failure error={saving.error.value} />
        <SaveOrCancel busy={saving.busy.value} onCancel={() => onDone(null)} />
      </form>
    </Dialog>
  )
}
