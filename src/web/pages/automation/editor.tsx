import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, type ApiError, ask, isRecord, type Issue } from '../../api.ts'
import { type Action, useAction, useLoad } from '../../state/load.ts'
import { useNames } from '../../state/mesh/nodes.ts'
import { Actions, Submit } from '../../parts/form/field.tsx'
import { Empty, explain, Failure, say } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { navigate, place } from '../../router.ts'
import { can } from '../../state/session.ts'
import { a } from '../../strings/automation.ts'
import { t } from '../../strings.ts'
import './automation.css'
import { type Channels, useChannels } from './channels.ts'
import { type Draft, draftOf, emptyDraft, ruleOf, tryableOf, withOwn } from './draft.ts'
import { type Begun, forgetDraft, useStoredDraft } from './drafts.ts'
import type { Form } from './fields.tsx'
import { RuleFields } from './form.tsx'
import { RunLog } from './log.tsx'
import { RuleFacts } from './facts.tsx'
import { type KindName, KIND_NAMES, type OwnDraft, viewOf } from './kinds/kinds.ts'
import type { Automation, NewRule, Sample } from './rule.ts'
import { type Trial, useSavedTrial, useTrial } from './trial.ts'
import { Guards, TryCard } from './try.tsx'
import { deleteFirst, ifMatch, unlessChanged } from './version.ts'
import { airADay } from './words.ts'

const UP = { path: '/automation', name: a.back }

/** A rule that does not exist yet. */
export function NewAutomationPage() {
  useNames()
  const wanted = place.value.query.get('kind')
  const initial = useRef(emptyDraft(KIND_NAMES.find((kind) => kind === wanted) ?? 'announce')).current
  const begun = useStoredDraft(null, initial)
  const { draft } = begun
  return (
    <Page title={a.newTitle} up={UP}>
      <fieldset class="kinds">
        <legend class="sr-only">{a.kind}</legend>
        {KIND_NAMES.map((kind) => (
          <label class="kind" key={kind}>
            <input
              type="radio"
              name="kind"
              checked={draft.value.kind === kind}
              onChange={() => (draft.value = { ...draft.value, kind })}
            />
            <strong>{viewOf(kind).name}</strong>
            <span class="faint">{viewOf(kind).help}</span>
          </label>
        ))}
      </fieldset>
      <Editor begun={begun} saved={null} initial={initial} onSaved={() => {}} />
    </Page>
  )
}

/** One rule: its form, its dry run, and its log. */
export function RulePage({ id }: { id: string }) {
  useNames()
  const { data, error, reload } = useLoad(() => ask(api.automation[':id'].$get({ param: { id } })), [])
  const automation = data.value?.automation ?? null
  if (error.value?.code === 'automation_not_found') {
    return (
      <Page title={a.gone} up={UP}>
        <Empty icon="automation" title={a.gone}>
          <p>{a.goneHelp}</p>
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title={automation?.rule.name ?? a.title}
      up={UP}
      actions={automation !== null && can('automation', 'write') && <Delete automation={automation} reload={reload} />}
    >
      <Failure error={error.value} retry={reload} />
      {automation !== null &&
        (can('automation', 'write') ? (
          <EditRule automation={automation} onSaved={(next) => (data.value = { automation: next })} />
        ) : (
          <ShowRule automation={automation} />
        ))}
      {automation !== null && <RunLog id={automation.id} />}
    </Page>
  )
}

function Delete({ automation, reload }: { automation: Automation; reload(): Promise<void> }) {
  const remove = () => deleteFirst({ ...automation, name: automation.rule.name }, () => navigate('/automation'), reload)
  return (
    <button type="button" class="button danger-quiet" onClick={remove}>
      {t.common.delete}
    </button>
  )
}

function EditRule({ automation, onSaved }: { automation: Automation; onSaved(next: Automation): void }) {
  const initial = draftOf(automation.rule)
  const begun = useStoredDraft(automation, initial)
  return <Editor begun={begun} saved={automation} initial={initial} onSaved={onSaved} />
}

function ShowRule({ automation }: { automation: Automation }) {
  const sample = useSample(draftOf(automation.rule))
  const trial = useSavedTrial(automation.id, sampleFor(automation.rule.kind, sample))
  const channels = useChannels()
  const { kind, timeZone } = automation.rule
  return (
    <div class="editor">
      <div class="stack">
        <p class="faint">{a.readOnly}</p>
        <RuleFacts automation={automation} channels={channels} />
        <Guards />
      </div>
      <div class="beside">
        <TryCard
          answers={viewOf(kind).sampleOf !== undefined}
          timeZone={timeZone}
          trial={trial}
          channels={channels}
          sample={sample}
        />
      </div>
    </div>
  )
}

/** An example message to start with. */
function useSample({ kind, own }: Draft): Signal<Sample> {
  return useSignal(viewOf(kind).sampleOf?.(own[kind]) ?? { text: 'ping', channel: 0, direct: false })
}

function sampleFor(kind: KindName, sample: Signal<Sample>): Sample | null {
  return viewOf(kind).sampleOf !== undefined && sample.value.text !== '' ? sample.value : null
}

type EditorProps = {
  begun: Begun
  saved: Automation | null
  /** The saved rule, or none yet. */
  initial: Draft
  /** The service now has this version. */
  onSaved(next: Automation): void
}

function Editor({ begun, saved, initial, onSaved }: EditorProps) {
  const { draft } = begun
  const channels = useChannels()
  const sample = useSample(draft.peek())
  const tryable = tryableOf(draft.value)
  const trial = useTrial(tryable, sampleFor(draft.value.kind, sample))
  const saving = useSave(begun, saved, onSaved)
  const isDirty = JSON.stringify(draft.value) !== JSON.stringify(initial)
  const box = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (saving.action.error.value !== null) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [saving.action.error.value])
  const { timeZone, kind } = draft.value
  return (
    <div class="editor">
      <form
        ref={box}
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void saving.save()
        }}
      >
        <RuleFields {...createForms(draft, channels, trial, saving)} air={airOf(trial)} />
        <SaveLine isNew={saved === null} isDirty={isDirty} saving={saving} onDiscard={() => (draft.value = initial)} />
      </form>
      <div class="beside">
        <TryCard
          answers={viewOf(kind).sampleOf !== undefined}
          timeZone={timeZone}
          trial={trial}
          channels={channels}
          sample={sample}
        />
        <Guards />
      </div>
    </div>
  )
}

function airOf({ isWhole, result, error }: Trial): string | null {
  return !isWhole || result.value === null || error.value !== null ? null : airADay(result.value.estimate)
}

type Forms = { readonly form: Form<Draft>; readonly own: Form<OwnDraft> }

/** The fields of every rule, and those of its kind. */
function createForms(draft: Signal<Draft>, channels: Channels, trial: Trial, saving: Saving): Forms {
  const { kind, own } = draft.value
  const shared = {
    channels,
    tokens: viewOf(kind).tokens,
    preview: trial.isWhole && trial.error.value === null ? (trial.result.value?.messages[0]?.text ?? null) : null,
    errorAt: (path: string) => {
      const all = [...issuesOf(trial.error.value), ...saving.issuesFor(ruleOf(draft.value))]
      return all.find((issue) => issue.path === path || issue.path.startsWith(`${path}.`))?.message ?? null
    },
  }
  return {
    form: { ...shared, draft: draft.value, set: (changes) => (draft.value = { ...draft.value, ...changes }) },
    own: { ...shared, draft: own[kind], set: (changes) => (draft.value = withOwn(draft.value, changes)) },
  }
}

/** The service's errors in a rule, by paths in the rule itself. */
function issuesOf(error: ApiError | null): readonly Issue[] {
  if (error === null) return []
  if (error.code === 'automation_name_taken') return [{ path: 'name', message: explain(error) }]
  return error.issues.map(({ path: whole, message }) => {
    const path = whole.replace(/^rule\./, '')
    if (path === 'name') return { path, message: a.nameNeeded }
    return { path, message: message === 'not empty' ? a.textNeeded : message }
  })
}

function valueAt(rule: NewRule | null, path: string): string {
  const value = path.split('.').reduce<unknown>((at, step) => (isRecord(at) ? at[step] : at), rule)
  return JSON.stringify(value ?? null)
}

type Saving = {
  readonly action: Action
  /** The errors of the last attempt to save, for fields that have not changed since. */
  issuesFor(rule: NewRule): readonly Issue[]
  /** Who changed the rule after it was opened here. */
  readonly rival: Signal<string | null>
  save(): Promise<void>
}

function useSave({ draft, seen }: Begun, saved: Automation | null, onSaved: EditorProps['onSaved']): Saving {
  const action = useAction()
  const refused = useRef<NewRule | null>(null)
  const rival = useSignal<string | null>(null)
  const save = async () => {
    const json = ruleOf(draft.value)
    refused.current = json
    await action.run(async () => {
      if (saved === null) {
        const { automation } = await ask(api.automation.$post({ json }))
        say(a.created(automation.rule.name))
        forgetDraft(null)
        navigate(`/automation/${automation.id}`, { replace: true })
        return
      }
      const param = { id: String(saved.id) }
      const put = api.automation[':id'].$put({ param, json }, { headers: ifMatch(seen.value) })
      const automation = (await unlessChanged(ask(put)))?.automation ?? null
      if (automation === null) {
        const { automation: present } = await ask(api.automation[':id'].$get({ param }))
        seen.value = present.revision
        rival.value = present.updatedBy ?? a.somebody
        onSaved(present)
        return
      }
      seen.value = automation.revision
      rival.value = null
      draft.value = draftOf(automation.rule)
      forgetDraft(automation)
      onSaved(automation)
      say(a.saved)
    })
  }
  const issuesFor = (rule: NewRule) =>
    issuesOf(action.error.value).filter(({ path }) => valueAt(rule, path) === valueAt(refused.current, path))
  return { action, issuesFor, rival, save }
}

function SaveLine(props: { isNew: boolean; isDirty: boolean; saving: Saving; onDiscard(): void }) {
  const { isNew, isDirty, saving, onDiscard } = props
  const { action, rival } = saving
  const isMarked = issuesOf(action.error.value).length > 0
  return (
    <div class="save-line">
      {isMarked ? (
        <div class="bad" role="alert">
          {a.lookAbove}
        </div>
      ) : (
        <Failure error={action.error.value} />
      )}
      {rival.value !== null && (
        <div class="notice" role="alert">
          <div>{a.changedMeanwhile(rival.value)}</div>
        </div>
      )}
      <Actions>
        {isDirty && (
          <button
            type="button"
            class="button"
            onClick={() => {
              onDiscard()
              rival.value = null
              action.error.value = null
            }}
          >
            {a.discard}
          </button>
        )}
        <Submit
          busy={action.busy.value}
          idle={isNew ? a.create : t.common.save}
          working={isNew ? a.creating : t.common.saving}
          disabled={!isNew && !isDirty}
        />
      </Actions>
    </div>
  )
}
