import type { InferResponseType } from 'hono/client'
import { SECOND_MS } from '../../../../shared/time.ts'
import { api, ask } from '../../../api.ts'
import { age, clock, shortDay } from '../../../format.ts'
import { now } from '../../../parts/age.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { href } from '../../../router.ts'
import { refreshFiring } from '../../../state/firing.ts'
import { useAction, useLoad } from '../../../state/load.ts'
import { isDeaf } from '../../../state/mesh/links.ts'
import { nodes } from '../../../state/mesh/nodes.ts'
import { has, isAdmin, isAnonymous } from '../../../state/session.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import { Calm, Deaf } from './calm.tsx'
import { lookAround } from './look-around.ts'
import type { Need } from './need.ts'
import { readOwnKeyNeeds } from './own-keys.ts'

type Dashboard = InferResponseType<typeof api.dashboard.$get, 200>

const POLL_MS = 60 * SECOND_MS
// Where each row read is charged.
const SLOW_POLL_MS = 2 * POLL_MS

/**
 * Everything that somebody should look at, each in one sentence with the way to its remedy; or one line that says what
 * was looked at. Only what this user may see is looked at.
 */
export function NeedsYou({ found }: { found: Dashboard | null }) {
  const service = useLoad(readService, [isAdmin.value], has('radio') ? POLL_MS : SLOW_POLL_MS)
  const own = isAnonymous.value ? [] : (nodes.value ?? []).filter(({ isLocal }) => isLocal)
  const keys = useLoad(
    () => readOwnKeyNeeds(own),
    [own.map(({ nodeNum, publicKey }) => `${nodeNum} ${publicKey}`).join()],
  )
  const around = lookAround(found, service)
  const { looked, isLooking } = around
  const needs = [...around.needs, ...(keys.data.value ?? [])]
  // People without an account have no rules, radios or backups: without repeaters there is nothing to look at.
  if (isAnonymous.value && needs.length === 0 && looked.relays === 0) return null
  const count = needs.length === 0 ? 0 : needs.length + (isDeaf.value ? 1 : 0)
  return (
    <Card title={count === 0 ? needTexts.title : needTexts.titleOf(count)}>
      {needs.length > 0 && isDeaf.value && <Deaf />}
      {needs.length > 0 && (
        <ul class="needs" aria-label={needTexts.title}>
          {needs.map((need) => (
            <NeedRow need={need} key={need.key} />
          ))}
        </ul>
      )}
      {needs.length === 0 && (isLooking ? <p class="calm faint">{needTexts.looking}</p> : <Calm looked={looked} />)}
      {service.error.value !== null && (
        <>
          <p class="faint">{needTexts.notLooked}</p>
          <Failure error={service.error.value} retry={() => void service.reload()} />
        </>
      )}
    </Card>
  )
}

/** Only administrators need its code. */
async function readService(): Promise<readonly Need[]> {
  return isAdmin.peek() ? (await import('./service-needs.ts')).readServiceNeeds() : []
}

function NeedRow({ need: { severity, text, since, details, remedy, alertId } }: { need: Need }) {
  const acknowledging = useAction()
  const acknowledge = (id: number) =>
    void acknowledging.run(async () => {
      await ask(api.alerts[':id'].acknowledge.$post({ param: { id: String(id) } }))
      await refreshFiring()
    })
  const more = [...(since === null ? [] : [needTexts.since(whenText(since), age(since, now.value))]), ...details]
  return (
    <li class={`need need-${severity}`}>
      <Icon name={severity === 'info' ? 'info' : 'warning'} />
      <div class="grow break">
        <bdi>{text}</bdi> <span class="faint">{more.join(' · ')}</span>
        <Failure error={acknowledging.error.value} />
      </div>
      <div class="actions">
        {alertId !== undefined && (
          <button
            type="button"
            class="button small"
            aria-label={needTexts.acknowledgeOf(text)}
            disabled={acknowledging.busy.value}
            onClick={() => acknowledge(alertId)}
          >
            {needTexts.acknowledge}
          </button>
        )}
        {remedy !== null && (
          <a class="button small" href={href(remedy.path)} aria-label={`${remedy.name}: ${text}`}>
            {remedy.name}
          </a>
        )}
      </div>
    </li>
  )
}

/** With the day, unless it is today. */
function whenText(t: number): string {
  const isToday = new Date(t).toDateString() === new Date(now.value).toDateString()
  return isToday ? clock(t) : `${shortDay(t)}, ${clock(t)}`
}
