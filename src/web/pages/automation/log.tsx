import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { capital, dateTime, stamp } from '../../format.ts'
import { useAction, useFresh } from '../../state/load.ts'
import { nameOfId } from '../../state/mesh/nodes.ts'
import { More } from '../../parts/list/log-table.tsx'
import { Failure } from '../../parts/notice.tsx'
import { a } from '../../strings/automation.ts'
import { nodeIdOf } from './rule.ts'

type Page = Extract<InferResponseType<(typeof api.automation)[':id']['runs']['$get']>, { runs: unknown }>
type Run = Page['runs'][number]

const PAGE = '20'
const POLL_MS = 4000

/** What a rule did, and why it skipped runs, newest first. */
export function RunLog({ id }: { id: number }) {
  const runs = useSignal<readonly Run[] | null>(null)
  const next = useSignal<number | null>(null)
  const loading = useAction()
  const load = async (before: number | null) => {
    const query = { limit: PAGE, ...(before !== null && { before: String(before) }) }
    const page = await ask(api.automation[':id'].runs.$get({ param: { id: String(id) }, query }))
    const known = runs.peek() ?? []
    const isFirst = known.length === 0
    // A run may still change, so newly loaded versions replace older ones.
    const fresh = new Set(page.runs.map((run) => run.id))
    runs.value = [...page.runs, ...known.filter((run) => !fresh.has(run.id))].toSorted((x, y) => y.id - x.id)
    if (isFirst || before !== null) next.value = page.nextBefore
  }
  useEffect(() => void loading.run(() => load(null)), [id])
  useFresh(async () => {
    if (!loading.busy.peek()) await loading.run(() => load(null))
  }, POLL_MS)
  return (
    <section class="stack">
      <h2>{a.log}</h2>
      <Failure error={loading.error.value} retry={() => void loading.run(() => load(null))} />
      {runs.value?.length === 0 && <p class="faint">{a.logNone}</p>}
      {runs.value !== null && runs.value.length > 0 && <RunTable runs={runs.value} />}
      <div>
        <More next={next.value} isBusy={false} onMore={(before) => void loading.run(() => load(before))} />
      </div>
    </section>
  )
}

function RunTable({ runs }: { runs: readonly Run[] }) {
  return (
    <div class="table-box">
      <table class="table run-log">
        <thead>
          <tr>
            <th scope="col">{a.logWhen}</th>
            <th scope="col">{a.logOutcome}</th>
            <th scope="col">{a.logWhat}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow run={run} key={run.id} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const TAGS = { sending: 'tag', sent: 'tag good', skipped: 'tag', failed: 'tag bad' } as const satisfies Record<
  Run['outcome'],
  string
>

function RunRow({ run }: { run: Run }) {
  const { at, lastAt, count, outcome, reason, triggeredBy, text, packets } = run
  const about = [
    ...(triggeredBy === null ? [] : [a.logFor(nameOfId(nodeIdOf(triggeredBy)))]),
    ...(packets.length === 0 ? [] : [a.logPackets(packets.length)]),
    ...(text === null ? packets.map(({ toNodeNum }) => a.logRoute(nameOfId(nodeIdOf(toNodeNum)))) : []),
  ]
  return (
    <tr>
      <td class="run-time">
        <time dateTime={new Date(at).toISOString()} title={dateTime(at)}>
          {stamp(at)}
        </time>
        {count > 1 && <div class="faint">{a.logTimes(count, stamp(lastAt))}</div>}
      </td>
      <td>
        <span class={TAGS[outcome]}>{a.outcomes[outcome]}</span>
      </td>
      <td>
        {reason !== null && <div>{capital(a.reasons[reason])}</div>}
        {text !== null && <div class="pre">{text}</div>}
        {about.length > 0 && <div class="faint">{about.join(' · ')}</div>}
      </td>
    </tr>
  )
}
