import { useSignal } from '@preact/signals'
import { namesOf } from '../../../shared/names.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { api, send } from '../../api.ts'
import { dateTime } from '../../format.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { changeRule, quietNodes, type RuleChanges } from './change-rule.ts'
import { AddDestination, type Destination } from './destinations.tsx'
import { shownName } from './kinds/fields.tsx'
import { mayWatch, offeredKinds, sentence, viewOf } from './kinds/kinds.ts'
import { PRESETS } from './presets.ts'
import type { NewRule, ShownRule } from './rule.ts'
import { RuleForm } from './rule-form.tsx'

type Editing = { saved: ShownRule | null; initial: NewRule }
type RulesProps = {
  rules: readonly ShownRule[]
  destinations: readonly Destination[]
  hasMail: boolean
  reload(): Promise<void>
}

/** The rules of the reader. */
export function Rules({ rules, destinations, hasMail, reload }: RulesProps) {
  const editing = useSignal<Editing | null>(null)
  const all = destinations.filter(({ confirmed }) => confirmed).map(({ id }) => id)
  const presets = namesOf(PRESETS).filter((preset) => mayWatch(PRESETS[preset](all).kind))
  return (
    <Card
      title={alertTexts.rules}
      help={alertTexts.rulesHelp}
      actions={
        <button
          type="button"
          class="button primary"
          onClick={() =>
            (editing.value = {
              saved: null,
              initial: viewOf(offeredKinds()[0] ?? 'sign_in').fresh({ name: '', destinations: all }),
            })
          }
        >
          <Icon name="plus" />
          {alertTexts.newRule}
        </button>
      }
    >
      {rules.length === 0 && presets.length > 0 && (
        <div class="stack">
          <p>{alertTexts.noRules}</p>
          <div class="actions">
            {presets.map((preset) => (
              <button
                type="button"
                class="button"
                key={preset}
                onClick={() => (editing.value = { saved: null, initial: PRESETS[preset](all) })}
              >
                {alertTexts.presets[preset]}
              </button>
            ))}
          </div>
        </div>
      )}
      <ul class="rows">
        {rules.map((rule) => (
          <RuleRow
            shown={rule}
            destinations={destinations}
            hasMail={hasMail}
            reload={reload}
            onEdit={() => (editing.value = { saved: rule, initial: rule.rule })}
            key={rule.id}
          />
        ))}
      </ul>
      {editing.value !== null && (
        <RuleForm
          {...editing.value}
          destinations={destinations}
          onDone={() => {
            editing.value = null
            void reload()
          }}
        />
      )}
    </Card>
  )
}

type RowProps = Omit<RulesProps, 'rules'> & { shown: ShownRule; onEdit(): void }

function RuleRow({ shown, destinations, hasMail, reload, onEdit }: RowProps) {
  const { id, rule, revision, sees, firing } = shown
  const action = useAction()
  const param = { id: String(id) }
  const headers = { 'If-Match': `"${revision}"` }
  const change = (changes: RuleChanges) =>
    void action.run(async () => {
      await changeRule(shown, changes)
      await reload()
    })
  const remove = () =>
    askFirst({
      text: `${t.common.delete} “${rule.name}”?`,
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.alerts.rules[':id'].$delete({ param }, { headers }))
        await reload()
      },
    })
  const isQuiet = rule.silencedUntil !== null && rule.silencedUntil > Date.now()
  return (
    <li>
      <Switch
        label={rule.name}
        checked={rule.enabled}
        disabled={action.busy.value}
        onChange={(enabled) => change({ enabled })}
      />
      <span class="grow break">
        <strong>{rule.name}</strong> <span class="tag">{viewOf(rule.kind).name}</span>{' '}
        {firing > 0 && <span class="tag bad">{firing}</span>}
        <div class="faint">{sentence(rule)}.</div>
        {!sees && <div class="warn">{alertTexts.blind}</div>}
        {rule.enabled && sees && (
          <NobodyTold
            chosen={rule.destinations}
            destinations={destinations}
            hasMail={hasMail}
            choose={(chosen) => change({ destinations: chosen })}
          />
        )}
        {isQuiet && (
          <div class="faint">
            {alertTexts.silencedUntil} {dateTime(rule.silencedUntil ?? 0)}
          </div>
        )}
        {quietNodes(shown).map(({ node, until }) => (
          <div class="faint" key={node}>
            {alertTexts.quietNode(shownName(node), dateTime(until))}{' '}
            <button
              type="button"
              class="text-button"
              onClick={() => change({ silencedNodes: quietNodes(shown).filter((each) => each.node !== node) })}
            >
              {alertTexts.unsilence}
            </button>
          </div>
        ))}
        <Failure error={action.error.value} />
      </span>
      <button
        type="button"
        class="button small"
        onClick={() => change({ silencedUntil: isQuiet ? null : Date.now() + DAY_MS })}
      >
        {isQuiet ? alertTexts.unsilence : alertTexts.silence}
      </button>
      <button type="button" class="button small" onClick={onEdit}>
        {t.common.edit}
      </button>
      <button type="button" class="button small danger-quiet" onClick={remove}>
        {t.common.delete}
      </button>
    </li>
  )
}

type NobodyProps = {
  chosen: readonly number[]
  destinations: readonly Destination[]
  hasMail: boolean
  choose(destinations: number[]): void
}

/** Says that a rule tells nobody, and how to change that. */
function NobodyTold({ chosen, destinations, hasMail, choose }: NobodyProps) {
  const isAdding = useSignal(false)
  const usable = destinations.filter(({ enabled, confirmed, heldAt }) => enabled && confirmed && heldAt === null)
  if (usable.some(({ id }) => chosen.includes(id))) return null
  if (chosen.length > 0) return <div class="warn">{alertTexts.noneUsable}</div>
  return (
    <div class="warn">
      {alertTexts.nobodyTold}{' '}
      <button
        type="button"
        class="text-button"
        onClick={() => {
          if (usable.length === 0) isAdding.value = true
          else choose(usable.map(({ id }) => id))
        }}
      >
        {usable.length === 0 ? alertTexts.addOne : alertTexts.sendTo(usable.map(({ name }) => name).join(', '))}
      </button>
      {isAdding.value && (
        <AddDestination
          hasMail={hasMail}
          onDone={(made) => {
            isAdding.value = false
            if (made !== null) choose([made])
          }}
        />
      )}
    </div>
  )
}
