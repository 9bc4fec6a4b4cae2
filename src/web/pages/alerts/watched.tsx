import './alerts.css'
import type { Signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { WATCHED_STATES } from '../../../shared/alerts/alert-kinds.ts'
import type { api } from '../../api.ts'
import { age, clock, count, dateMinutes, dateTime, plain } from '../../format.ts'
import { now } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'

type Page = InferResponseType<typeof api.alerts.watched.$get, 200>
type WatchedNode = Page['nodes'][number]

/** The nodes that are shown at once. */
export const WATCHED_ROWS = 40

const TONES = { firing: 'tag bad', unknown: 'tag', pending: 'tag', muted: 'tag', unheard: 'tag', well: 'tag good' }

/** The watched nodes and their states, those that fire first. Without any, nothing. */
export function Watched({ page: { nodes, total, totals }, offset }: { page: Page; offset: Signal<number> }) {
  if (total === 0) return null
  const first = offset.value
  const states = WATCHED_STATES.filter((state) => (totals[state] ?? 0) > 0)
  return (
    <Card
      title={alertTexts.watchedTitle}
      actions={states.map((state) => (
        <span class={TONES[state]} key={state}>
          {alertTexts.watchedStates[state]}: {count(totals[state] ?? 0)}
        </span>
      ))}
    >
      <ul class="watched">
        {nodes.map((node) => (
          <Row node={node} key={node.nodeNum} />
        ))}
      </ul>
      {total > WATCHED_ROWS && (
        <nav class="more pages" aria-label={alertTexts.watchedTitle}>
          <button
            type="button"
            class="button"
            disabled={first === 0}
            onClick={() => (offset.value = Math.max(0, first - WATCHED_ROWS))}
          >
            {alertTexts.earlier}
          </button>
          <span class="faint">{alertTexts.range(first + 1, first + nodes.length, total)}</span>
          <button
            type="button"
            class="button"
            disabled={first + nodes.length >= total}
            onClick={() => (offset.value = first + WATCHED_ROWS)}
          >
            {alertTexts.later}
          </button>
        </nav>
      )}
    </Card>
  )
}

function Row({ node }: { node: WatchedNode }) {
  const { nodeId, name, state, lastHeard, silentSince, alerts, rules, totalRules } = node
  const more = totalRules > rules.length ? ` +${count(totalRules - rules.length)}` : ''
  return (
    <li>
      <div class="break">
        <a href={href(`/nodes/${nodeId}`)}>{plain(name)}</a> <span class={TONES[state]}>{stateOf(node)}</span>
      </div>
      {silentSince === null && alerts.map(({ id, what }) => <div key={id}>{what}</div>)}
      <div class="faint break">
        {lastHeard !== null && (
          <>
            <time dateTime={new Date(lastHeard).toISOString()} title={dateTime(lastHeard)}>
              {alertTexts.heard(t.common.ago(age(lastHeard, now.value)))}
            </time>
            {' · '}
          </>
        )}
        {alertTexts.watchedBy(rules.map((rule) => plain(rule.name)).join(', ') + more, totalRules)}
      </div>
    </li>
  )
}

function stateOf({ state, silentSince, mutedUntil }: WatchedNode): string {
  if (silentSince !== null) return alertTexts.silentSince(minuteOf(silentSince))
  if (mutedUntil !== null) return alertTexts.mutedUntil(minuteOf(mutedUntil))
  return alertTexts.watchedStates[state]
}

/** The time of day if it is today, else with the date. */
function minuteOf(at: number): string {
  return new Date(at).toDateString() === new Date(now.value).toDateString() ? clock(at) : dateMinutes(at)
}
