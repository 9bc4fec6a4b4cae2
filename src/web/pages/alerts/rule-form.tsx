import { type Signal, useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { ALERT_KIND_NAMES } from '../../../shared/alerts/alert-kinds.ts'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, SaveOrCancel, Select } from '../../parts/form/field.tsx'
import { Group } from '../../parts/form/labelled.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { ALERT_KIND_TEXTS, alertTexts, DESTINATION_TEXTS } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import type { Destination } from './destinations.tsx'
import { Preview } from './preview.tsx'
import { freshRule, type NewRule, readCorners, sentence, showCorners, type ShownRule, type Watched } from './rule.ts'

type Props = {
  /** Null: a new one. */
  saved: ShownRule | null
  initial: NewRule
  destinations: readonly Destination[]
  onDone(): void
}

/** Creates or changes a rule, and previews when it would have fired. */
export function RuleForm({ saved, initial, destinations, onDone }: Props) {
  const draft = useSignal<NewRule>(initial)
  const saving = useAction()
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void saving.run(async () => {
      const json =
        draft.value.name.trim() === '' ? { ...draft.value, name: ALERT_KIND_TEXTS[draft.value.kind] } : draft.value
      if (saved === null) await ask(api.alerts.rules.$post({ json }))
      else {
        const param = { id: String(saved.id) }
        await ask(api.alerts.rules[':id'].$put({ param, json }, { headers: { 'If-Match': `"${saved.revision}"` } }))
      }
      say(t.common.saved)
      onDone()
    })
  }
  const set = (changes: object) => (draft.value = Object.assign({ ...draft.value }, changes))
  const rule = draft.value
  return (
    <Dialog title={saved === null ? alertTexts.newRule : alertTexts.editRule} onClose={onDone}>
      <form class="stack" onSubmit={save}>
        {saved === null && (
          <Select
            label={alertTexts.kind}
            value={rule.kind}
            options={ALERT_KIND_NAMES.map((kind) => [kind, ALERT_KIND_TEXTS[kind]] as const)}
            onChange={(kind) => (draft.value = { ...freshRule(kind, rule.destinations ?? []), name: rule.name })}
          />
        )}
        <p class="faint">{sentence(rule)}.</p>
        <Field
          label={alertTexts.name}
          value={rule.name}
          maxLength={MAX_RULE_NAME}
          onInput={(event) => set({ name: event.currentTarget.value })}
        />
        <KindFields draft={draft} set={set} />
        <Group
          legend={alertTexts.destinations}
          hint={destinations.length === 0 ? alertTexts.noDestinations : undefined}
        >
          {destinations.map(({ id, name, kind }) => (
            <label class="check" key={id}>
              <input
                type="checkbox"
                checked={rule.destinations?.includes(id) ?? false}
                onChange={(event) => {
                  const others = (rule.destinations ?? []).filter((other) => other !== id)
                  set({ destinations: event.currentTarget.checked ? [...others, id] : others })
                }}
              />{' '}
              {name} <span class="faint">{DESTINATION_TEXTS[kind]}</span>
            </label>
          ))}
        </Group>
        <Field
          label={alertTexts.repeat}
          hint={alertTexts.repeatHint}
          type="number"
          min={1}
          max={168}
          value={rule.repeatHours === null || rule.repeatHours === undefined ? '' : String(rule.repeatHours)}
          onInput={(event) =>
            set({ repeatHours: event.currentTarget.value === '' ? null : Number(event.currentTarget.value) })
          }
        />
        <Switch checked={rule.tellResolved ?? true} onChange={(tellResolved) => set({ tellResolved })}>
          {alertTexts.tellResolved}
        </Switch>
        <Preview rule={rule} />
        <Failure error={saving.error.value} />
        <SaveOrCancel busy={saving.busy.value} onCancel={onDone} />
      </form>
    </Dialog>
  )
}

type FieldsProps = { draft: Signal<NewRule>; set(changes: object): void }

function NumberField({
  label,
  value,
  set,
  ...bounds
}: {
  label: string
  value: number | null | undefined
  set(value: number): void
  min?: number
  max?: number
}) {
  return (
    <Field
      label={label}
      type="number"
      step="any"
      required
      {...bounds}
      value={value === null || value === undefined ? '' : String(value)}
      onInput={(event) => set(Number(event.currentTarget.value))}
    />
  )
}

const split = (text: string) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

function KindFields({ draft, set }: FieldsProps) {
  const rule = draft.value
  switch (rule.kind) {
    case 'node_silent':
      return (
        <>
          <WatchedFields nodes={rule.nodes} set={(nodes) => set({ nodes })} />
          <NumberField
            label={alertTexts.afterMinutes}
            value={rule.afterMinutes}
            min={15}
            max={43_200}
            set={(afterMinutes) => set({ afterMinutes })}
          />
        </>
      )
    case 'metric':
      return (
        <>
          <WatchedFields nodes={rule.nodes} set={(nodes) => set({ nodes })} />
          <Field
            label={alertTexts.metric}
            hint={alertTexts.metricHint}
            value={rule.metric}
            onInput={(event) => set({ metric: event.currentTarget.value })}
          />
          <Select
            label={alertTexts.limit}
            value={rule.is}
            options={[
              ['below', alertTexts.below],
              ['above', alertTexts.above],
            ]}
            onChange={(is) => set({ is })}
          />
          <NumberField label={alertTexts.limit} value={rule.limit} set={(limit) => set({ limit })} />
          <NumberField
            label={alertTexts.hysteresis}
            value={rule.hysteresis ?? 0}
            min={0}
            set={(hysteresis) => set({ hysteresis })}
          />
          <NumberField
            label={alertTexts.forMinutes}
            value={rule.forMinutes ?? 0}
            min={0}
            max={1440}
            set={(forMinutes) => set({ forMinutes })}
          />
        </>
      )
    case 'node_restarted':
    case 'key':
      return <WatchedFields nodes={rule.nodes} set={(nodes) => set({ nodes })} />
    case 'area':
      return (
        <>
          <WatchedFields nodes={rule.nodes} set={(nodes) => set({ nodes })} />
          <Select
            label={alertTexts.when}
            value={rule.when}
            options={[
              ['moves', alertTexts.areaEvents.moves],
              ['enters', alertTexts.areaEvents.enters],
              ['leaves', alertTexts.areaEvents.leaves],
            ]}
            onChange={(when) =>
              set(
                when === 'moves'
                  ? { when, metres: rule.metres ?? 500, shape: null }
                  : { when, shape: rule.shape ?? CIRCLE },
              )
            }
          />
          {rule.when === 'moves' ? (
            <NumberField label={alertTexts.metres} value={rule.metres} min={10} set={(metres) => set({ metres })} />
          ) : (
            <ShapeFields shape={rule.shape ?? CIRCLE} set={(shape) => set({ shape })} />
          )}
        </>
      )
    case 'message': {
      const channels = rule.channels === 'all' || rule.channels === undefined ? '' : rule.channels.join(', ')
      return (
        <>
          <Field
            label={alertTexts.words}
            hint={alertTexts.wordsHint}
            defaultValue={rule.match?.words.join(', ') ?? ''}
            onChange={(event) => {
              const words = split(event.currentTarget.value)
              set({ match: words.length === 0 ? null : { mode: 'word', words } })
            }}
          />
          <Switch checked={rule.direct ?? true} onChange={(direct) => set({ direct })}>
            {alertTexts.direct}
          </Switch>
          <Field
            label={alertTexts.channels}
            hint={alertTexts.channelsHint}
            defaultValue={channels}
            onChange={(event) => {
              const numbers = split(event.currentTarget.value).map(Number)
              set({ channels: numbers.length === 0 ? 'all' : numbers })
            }}
          />
        </>
      )
    }
    case 'link':
      return (
        <NumberField
          label={alertTexts.afterMinutes}
          value={rule.afterMinutes}
          min={1}
          set={(afterMinutes) => set({ afterMinutes })}
        />
      )
    case 'backup':
      return (
        <NumberField
          label={alertTexts.afterHours}
          value={rule.afterHours ?? 48}
          min={1}
          set={(afterHours) => set({ afterHours })}
        />
      )
    case 'node_new':
    case 'sign_in':
      return null
    default:
      return rule satisfies never
  }
}

type Shape = NonNullable<Extract<NewRule, { kind: 'area' }>['shape']>
const CIRCLE = { kind: 'circle' as const, latitude: 0, longitude: 0, metres: 1000 }

/** A circle by its centre, or a polygon by its corners. */
function ShapeFields({ shape, set }: { shape: Shape; set(shape: Shape): void }) {
  const id = useId()
  const problem = useSignal<string | null>(null)
  const begin = (kind: Shape['kind']): Shape => (kind === 'circle' ? CIRCLE : { kind, points: [] })
  return (
    <>
      <Select
        label={alertTexts.shape}
        value={shape.kind}
        options={[
          ['circle', alertTexts.shapes.circle],
          ['polygon', alertTexts.shapes.polygon],
        ]}
        onChange={(kind) => set(begin(kind))}
      />
      {shape.kind === 'polygon' ? (
        <div class="field">
          <label for={id}>{alertTexts.corners}</label>
          <textarea
            id={id}
            rows={5}
            required
            aria-describedby={`${id}-about`}
            aria-invalid={problem.value !== null}
            defaultValue={showCorners(shape.points)}
            onChange={(event) => {
              const points = readCorners(event.currentTarget.value)
              problem.value = points === null ? alertTexts.cornersWrong : null
              event.currentTarget.setCustomValidity(problem.value ?? '')
              if (points !== null) set({ kind: 'polygon', points })
            }}
          />
          <div id={`${id}-about`} class="about">
            {problem.value === null ? alertTexts.cornersHint : <span class="bad">{problem.value}</span>}
          </div>
        </div>
      ) : (
        <>
          <NumberField
            label={alertTexts.latitude}
            value={shape.latitude}
            min={-90}
            max={90}
            set={(latitude) => set({ ...shape, latitude })}
          />
          <NumberField
            label={alertTexts.longitude}
            value={shape.longitude}
            min={-180}
            max={180}
            set={(longitude) => set({ ...shape, longitude })}
          />
          <NumberField
            label={alertTexts.metres}
            value={shape.metres}
            min={10}
            set={(metres) => set({ ...shape, metres })}
          />
        </>
      )}
    </>
  )
}

const KINDS = ['all', 'favorites', 'own', 'role', 'list'] as const

function WatchedFields({ nodes, set }: { nodes: Watched; set(nodes: Watched): void }) {
  const begin = (kind: (typeof KINDS)[number]): Watched => {
    if (kind === 'role') return { kind, roles: ['ROUTER', 'REPEATER'] }
    return kind === 'list' ? { kind, nodes: [] } : { kind }
  }
  return (
    <>
      <Select
        label={alertTexts.nodes}
        value={nodes.kind}
        options={KINDS.map((kind) => [kind, alertTexts.watched[kind]] as const)}
        onChange={(kind) => set(begin(kind))}
      />
      {nodes.kind === 'role' && (
        <Field
          label={alertTexts.roles}
          defaultValue={nodes.roles.join(', ')}
          onChange={(event) =>
            set({ kind: 'role', roles: split(event.currentTarget.value).map((role) => role.toUpperCase()) })
          }
        />
      )}
      {nodes.kind === 'list' && (
        <Field
          label={alertTexts.list}
          defaultValue={nodes.nodes
            .map((node) => (typeof node === 'number' ? `!${node.toString(16).padStart(8, '0')}` : node))
            .join(', ')}
          onChange={(event) => set({ kind: 'list', nodes: split(event.currentTarget.value) })}
        />
      )}
    </>
  )
}
