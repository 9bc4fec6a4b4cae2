import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { MAX_CONNECTION_NAME } from '../../../shared/limits.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions, Field, handleForm, Select, Submit } from '../../parts/form/field.tsx'
import { textOf } from '../../parts/form/shaped-fields.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { connectionKind, connectionTexts } from '../../strings/system/connections.ts'
import { problemWords } from '../../strings/system/radio-problems.ts'
import { t } from '../../strings.ts'
import type { Candidate, Connection, Found, Kind, Settings } from './connection.ts'
import { SettingsFields, settingsIn } from './fields.tsx'

const KINDS: readonly Kind[] = ['tcp', 'serial', 'http', 'mqtt', 'udp']

/** What was entered, and what was found there. */
type Tried = { readonly kind: Kind; readonly settings: Settings; readonly found: Found }

type Props = {
  /** The one that is edited; null: a new one. */
  connection: Connection | null
  /** All in the list. */
  known: readonly Connection[]
  onClose(): void
  /** After it was saved. */
  onSaved(): void
}

/** Enters the address of a radio or a broker, asks it, and saves it under a name. */
export function ConnectDialog({ connection, known, onClose, onSaved }: Props) {
  const kind = useSignal<Kind>(KINDS.find((one) => one === connection?.kind) ?? 'tcp')
  const entered = useSignal<Settings | null>(connection?.settings ?? null)
  const tried = useSignal<Tried | null>(null)
  const wasTried = useSignal(false)
  const title = connection === null ? connectionTexts.add : connectionTexts.editOf(connection.name)
  return (
    <Dialog title={title} onClose={onClose}>
      {tried.value === null ? (
        <Address
          connection={connection}
          known={known}
          kind={kind.value}
          settings={entered.value}
          isAgain={wasTried.value}
          onKind={(next, settings) => {
            kind.value = next
            entered.value = settings ?? null
          }}
          onTried={(now) => {
            entered.value = now.settings
            tried.value = now
            wasTried.value = true
          }}
          onClose={onClose}
        />
      ) : (
        <Outcome connection={connection} tried={tried.value} onBack={() => (tried.value = null)} onSaved={onSaved} />
      )}
    </Dialog>
  )
}

/** The first step: where it is. */
function Address(props: {
  connection: Connection | null
  known: readonly Connection[]
  kind: Kind
  settings: Settings | null
  /** The next step was left by *Back*. */
  isAgain: boolean
  onKind(kind: Kind, settings?: Settings): void
  onTried(tried: Tried): void
  onClose(): void
}) {
  const { connection, kind, settings } = props
  const testing = useAction()
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (props.isAgain) form.current?.querySelector('input')?.focus()
  }, [])
  const test = (its: Kind, asked: Settings) =>
    testing.run(async () => {
      const json = { kind: its, settings: asked, ...(connection !== null && { connection: connection.id }) }
      props.onTried({ kind: its, settings: asked, found: await ask(api.connections.test.$post({ json })) })
    })
  return (
    <div class="stack">
      {connection === null && (
        <Candidates
          known={props.known}
          isBusy={testing.busy.value}
          onChoose={({ kind: its, settings: at }) => {
            props.onKind(its, at)
            void test(its, at)
          }}
        />
      )}
      <form
        class="stack"
        ref={form}
        onSubmit={handleForm(async (text) => {
          await test(kind, settingsIn(kind, text))
        })}
      >
        {connection === null && (
          <Select
            label={connectionTexts.kind}
            value={kind}
            options={KINDS.map((each) => [each, connectionKind(each)] as const)}
            onChange={(next) => props.onKind(next)}
          />
        )}
        <SettingsFields key={`${kind} ${JSON.stringify(settings)}`} kind={kind} settings={settings} />
        <Failure error={testing.error.value} />
        <Actions>
          <button type="button" class="button" onClick={props.onClose}>
            {t.common.cancel}
          </button>
          <Submit busy={testing.busy.value} idle={connectionTexts.next} working={connectionTexts.testing} />
        </Actions>
      </form>
    </div>
  )
}

type CandidatesProps = {
  known: readonly Connection[]
  /** One is asked now. */
  isBusy: boolean
  onChoose(candidate: Candidate): void
}

/** Radios that announce themselves. */
function Candidates({ known, isBusy, onChoose }: CandidatesProps) {
  const looking = useAction()
  const chosen = useSignal<Candidate | null>(null)
  // Those of the environment are called like their address.
  const taken = new Set(
    known.map(({ name, kind, settings }) => (settings === null ? name : addressOf({ kind, settings }))),
  )
  const found = useSignal<readonly Candidate[] | null>(null)
  useEffect(() => {
    void looking.run(async () => {
      found.value = (await ask(api.connections.candidates.$get())).candidates
    })
  }, [])
  if (looking.error.value !== null) return <Failure error={looking.error.value} />
  if (found.value === null) return <p role="status">{connectionTexts.looking}</p>
  if (found.value.length === 0) return <p class="faint">{connectionTexts.nothingFound}</p>
  return (
    <section>
      <h3>{connectionTexts.found}</h3>
      <ul class="rows tight">
        {found.value.map((candidate) => (
          <li key={`${candidate.kind} ${JSON.stringify(candidate.settings)}`}>
            <span class="grow break">
              <strong>{candidate.name}</strong> <span class="tag">{connectionKind(candidate.kind)}</span>{' '}
              <span class="faint">{addressOf(candidate)}</span>
            </span>
            {taken.has(addressOf(candidate)) ? (
              <span class="faint">{connectionTexts.inList}</span>
            ) : (
              <button
                type="button"
                class="button small"
                aria-label={connectionTexts.useOf(candidate.name)}
                disabled={isBusy}
                onClick={() => {
                  chosen.value = candidate
                  onChoose(candidate)
                }}
              >
                {isBusy && chosen.value === candidate ? connectionTexts.testing : connectionTexts.use}
              </button>
            )}
          </li>
        ))}
      </ul>
      <p class="faint">{connectionTexts.claims}</p>
    </section>
  )
}

/** Where it is, in one line. */
export function addressOf({ kind, settings }: { readonly kind: string; readonly settings: Settings }): string {
  const text = (name: string) => textOf(settings[name])
  if (kind === 'serial') return text('device')
  if (kind === 'udp') return `UDP ${text('port')}`
  return kind === 'tcp' ? `${text('host')}:${text('port')}` : text('url')
}

/** The second step: what is there, and how it is called. */
function Outcome(props: { connection: Connection | null; tried: Tried; onBack(): void; onSaved(): void }) {
  const { connection, tried } = props
  const { kind, settings, found } = tried
  const saving = useAction()
  const outcome = useRef<HTMLDivElement>(null)
  // The button of the step before has gone, and the focus with it.
  useEffect(() => outcome.current?.focus(), [])
  const isGood = found.problem === null
  const save = handleForm(async (text) => {
    await saving.run(async () => {
      const kept = found.fingerprint === null ? settings : { ...settings, fingerprint: found.fingerprint }
      if (connection === null) {
        const name = text('name').trim()
        await ask(api.connections.$post({ json: { kind, name, settings: kept } }))
        say(connectionTexts.added(name))
      } else {
        const param = { id: String(connection.id) }
        await ask(api.connections[':id'].$put({ param, json: { settings: kept } }))
        say(connectionTexts.saved(connection.name))
      }
      props.onSaved()
    })
  })
  const { radio } = found
  const isWaiting = connection !== null && connection.waiting > 0
  return (
    <form class="stack" onSubmit={save}>
      <div role="status" tabIndex={-1} ref={outcome}>
        {found.problem !== null && (
          <p>
            <strong class="bad">{connectionTexts.problem}.</strong> {problemWords(found.problem)}
          </p>
        )}
        {isGood && radio === null && <p class="good">{connectionTexts.isThere}</p>}
        {radio !== null && (
          <p>
            <strong class="break">
              {connectionTexts.isRadio(radio.longName ?? radio.shortName ?? '?', radio.nodeId)}
            </strong>
            <span class="faint">
              {[
                radio.hwModel,
                radio.firmwareVersion === null ? null : connectionTexts.firmware(radio.firmwareVersion),
                radio.region,
              ].map((each) => (each === null ? null : ` · ${each}`))}
            </span>
          </p>
        )}
      </div>
      {connection === null && (
        <Field
          label={connectionTexts.name}
          name="name"
          hint={connectionTexts.nameHint}
          defaultValue={radio?.longName ?? addressOf({ kind, settings }).slice(0, MAX_CONNECTION_NAME)}
          maxLength={MAX_CONNECTION_NAME}
          autocomplete="off"
          required
        />
      )}
      {isWaiting && <p class="warn">{connectionTexts.waiting(connection.waiting)}</p>}
      <Failure error={saving.error.value} />
      <Actions>
        <button type="button" class="button" onClick={props.onBack}>
          {connectionTexts.back}
        </button>
        <Submit
          busy={saving.busy.value}
          idle={isGood ? t.common.save : connectionTexts.saveAnyway}
          working={t.common.saving}
        />
      </Actions>
    </form>
  )
}
