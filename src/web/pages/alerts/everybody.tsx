import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { api, ask, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useLoad } from '../../state/load.ts'
import { user } from '../../state/session.ts'
import { alertTexts, DESTINATION_TEXTS } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { sentence, viewOf } from './kinds/kinds.ts'

/** The rules and destinations of other users, for administrators, who can delete them. */
export function Everybody() {
  const isShown = useSignal(false)
  return (
    <Card title={alertTexts.others} help={alertTexts.othersHelp}>
      {isShown.value ? (
        <Others />
      ) : (
        <div class="actions">
          <button type="button" class="button" onClick={() => (isShown.value = true)}>
            {alertTexts.showOthers}
          </button>
        </div>
      )}
    </Card>
  )
}

const ALL = { query: { all: 'true' as const } }

function Others() {
  const rules = useLoad(() => ask(api.alerts.rules.$get(ALL)), [])
  const destinations = useLoad(() => ask(api.alerts.destinations.$get(ALL)), [])
  const isOther = ({ owner }: { owner: { id: number } }) => owner.id !== user.value?.id
  const otherRules = rules.data.value?.rules.filter(isOther) ?? []
  const otherDestinations = destinations.data.value?.destinations.filter(isOther) ?? []
  const isLoaded = rules.data.value !== null && destinations.data.value !== null
  return (
    <>
      <Failure error={rules.error.value ?? destinations.error.value} retry={rules.reload} />
      {isLoaded && otherRules.length + otherDestinations.length === 0 && <p class="faint">{alertTexts.noOthers}</p>}
      <ul class="rows">
        {otherRules.map(({ id, rule, owner, revision, firing }) => (
          <OthersRow
            name={rule.name}
            owner={owner.username}
            kind={viewOf(rule.kind).name}
            remove={async () => {
              const headers = { 'If-Match': `"${revision}"` }
              await send(api.alerts.rules[':id'].$delete({ param: { id: String(id) } }, { headers }))
              await rules.reload()
            }}
            key={`rule ${id}`}
          >
            {firing > 0 && <span class="tag bad">{firing}</span>}
            <div class="faint">
              {sentence(rule)}.{!rule.enabled && ` (${alertTexts.off})`}
            </div>
          </OthersRow>
        ))}
        {otherDestinations.map(({ id, name, kind, host, owner, enabled, heldAt, lastResult }) => (
          <OthersRow
            name={name}
            owner={owner.username}
            kind={DESTINATION_TEXTS[kind]}
            remove={async () => {
              await send(api.alerts.destinations[':id'].$delete({ param: { id: String(id) } }))
              await destinations.reload()
            }}
            key={`destination ${id}`}
          >
            {host !== null && <span class="faint">{host}</span>} {!enabled && <span class="tag">{alertTexts.off}</span>}
            {heldAt !== null && <span class="tag">{alertTexts.isHeld}</span>}
            {lastResult !== null && (
              <div class="faint">
                {alertTexts.last} {lastResult}
              </div>
            )}
          </OthersRow>
        ))}
      </ul>
    </>
  )
}

type RowProps = { name: string; owner: string; kind: string; remove(): Promise<void>; children: ComponentChildren }

function OthersRow({ name, owner, kind, remove, children }: RowProps) {
  const askToRemove = () =>
    askFirst({ text: alertTexts.deleteOthers(name, owner), confirm: t.common.delete, isDangerous: true, act: remove })
  return (
    <li>
      <span class="grow break">
        <strong>{owner}</strong>: {name} <span class="tag">{kind}</span> {children}
      </span>
      <button type="button" class="button small danger-quiet" onClick={askToRemove}>
        {t.common.delete}
      </button>
    </li>
  )
}
