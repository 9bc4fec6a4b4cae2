import '../../parts/gauges.css'
import type { InferResponseType } from 'hono/client'
import { MAX_COUNTED } from '../../../shared/limits.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../../shared/time.ts'
import { api, ask } from '../../api.ts'
import { age, bytes, count, duration } from '../../format.ts'
import { Age, At, ExactAge, now } from '../../parts/age.tsx'
import { LinkRow } from '../../parts/mesh/link-row.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure, Loading } from '../../parts/notice.tsx'
import { Card, Facts, Page } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { has } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { clockStates, jobNames, problemTexts, systemTexts, tableNames } from '../../strings/system/system.ts'
import { REMEDIES } from './remedies.ts'
import { RoomChart } from './room-chart.tsx'
import '../../styles/system.css'

export type System = InferResponseType<typeof api.system.$get>

const POLL_MS = 30 * SECOND_MS
// Where each row read is charged.
const SLOW_POLL_MS = 2 * MINUTE_MS
/** The state of the service itself: what is wrong first, then everything that was looked at. */
export function SystemPage() {
  const { data, error, reload } = useLoad(() => ask(api.system.$get()), [], has('radio') ? POLL_MS : SLOW_POLL_MS, [
    'link',
  ])
  const found = data.value
  return (
    <Page title={systemTexts.title}>
      <Failure error={error.value} retry={reload} />
      {found === null && error.value === null && <Loading />}
      {found !== null && (
        <>
          <Problems problems={found.problems} />
          <div class="cards">
            <Storage {...found} />
            {found.backups !== null && <Backups {...found.backups} />}
            <Links {...found} />
            <Queues {...found} />
            <Retention {...found} />
            {found.instances !== null && <Instances instances={found.instances} />}
            {found.runs.length > 0 && <Jobs runs={found.runs} />}
            <Service {...found} />
          </div>
        </>
      )}
    </Page>
  )
}

function Problems({ problems }: Pick<System, 'problems'>) {
  if (problems.length === 0) {
    return (
      <div class="notice all-well" role="status">
        <Icon name="check" />
        <div>
          <strong>{systemTexts.noProblems}</strong>
          <div class="faint">{systemTexts.noProblemsHelp}</div>
        </div>
      </div>
    )
  }
  return (
    <ul class="problems" aria-label={systemTexts.problems}>
      {problems.map(({ code, severity, subject }) => {
        const remedy = REMEDIES[code]
        return (
          <li class={`notice problem-${severity}`} key={`${code} ${subject}`}>
            <Icon name={severity === 'info' ? 'info' : 'warning'} />
            <div>{problemTexts[code](subject ?? '')}</div>
            {remedy !== undefined && (
              <a class="button small" href={href(remedy[0])}>
                {remedy[1]}
              </a>
            )}
          </li>
        )
      })}
    </ul>
  )
}

function Storage({ storage }: Pick<System, 'storage'>) {
  const { databaseBytes, disk, forecast, limitBytes, roomBytes, samples } = storage
  const total = disk?.totalBytes ?? limitBytes
  const free = disk?.freeBytes ?? roomBytes
  const share = total === null || free === null || total === 0 ? null : Math.min(1, Math.max(0, 1 - free / total))
  const mood = disk?.isFull === true || (share ?? 0) > 0.95 ? 'bad' : (share ?? 0) > 0.85 ? 'warn' : 'good'
  return (
    <Card title={systemTexts.storage}>
      {share !== null && total !== null && free !== null && (
        <div class={`meter wide ${mood}`}>
          <span class="meter-bar" aria-hidden="true">
            <span style={{ width: `${Math.max(1, share * 100)}%` }} />
          </span>
          {systemTexts.usedOf(bytes(free), bytes(total))}
        </div>
      )}
      <Facts
        entries={[
          [systemTexts.database, databaseBytes === null ? null : bytes(databaseBytes)],
          [systemTexts.limit, limitBytes === null ? null : bytes(limitBytes)],
          [systemTexts.room, roomBytes === null ? null : bytes(roomBytes)],
          [systemTexts.growth, forecast === null ? null : changeOf(forecast.bytesPerDay)],
          [systemTexts.fullIn, roomBytes === null ? null : endOf(forecast)],
        ]}
      />
      <RoomChart samples={samples} />
    </Card>
  )
}

function changeOf(bytesPerDay: number): string {
  if (bytesPerDay === 0) return systemTexts.steady
  const size = bytes(Math.abs(bytesPerDay))
  return bytesPerDay > 0 ? systemTexts.shrinks(size) : systemTexts.grows(size)
}

function endOf(forecast: System['storage']['forecast']): string {
  if (forecast === null) return systemTexts.forecastLater
  if (forecast.fullAt === null) return systemTexts.notSoon
  return systemTexts.days(Math.max(0, Math.floor((forecast.fullAt - now.value) / DAY_MS)))
}

function Retention({ retention }: Pick<System, 'retention'>) {
  return (
    <Card
      title={systemTexts.retention}
      help={systemTexts.retentionHelp}
      actions={
        <a class="button small" href={href('/settings')}>
          {systemTexts.openSettings}
        </a>
      }
    >
      <Facts
        entries={retention.tables.map(({ table, setDays, keptDays, reason, lagSeconds, isLate }) => [
          tableNames[table],
          <>
            {reason === null ? (
              <span>{systemTexts.kept(setDays)}</span>
            ) : (
              <span class="warn">{systemTexts.keptShorter(keptDays, setDays, reason)}</span>
            )}
            {isLate && <div class="bad">{systemTexts.late(duration(lagSeconds ?? 0))}</div>}
          </>,
        ])}
      />
    </Card>
  )
}

function Backups(backups: NonNullable<System['backups']>) {
  const { count: n, enabled, last, lastRun, nextRunAt, running, sizeBytes } = backups
  return (
    <Card
      title={systemTexts.backups}
      actions={
        <a class="button small" href={href('/backups')}>
          {systemTexts.openBackups}
        </a>
      }
    >
      {running !== null && <div class="notice">{systemTexts.running}</div>}
      <Facts
        entries={[
          [
            systemTexts.last,
            last === null ? (
              systemTexts.never
            ) : (
              <>
                <Age at={last.createdAt} />, {bytes(last.sizeBytes)}
              </>
            ),
          ],
          [systemTexts.next, !enabled || nextRunAt === null ? systemTexts.off : <At at={nextRunAt} />],
          [
            systemTexts.lastRun,
            lastRun === null ? (
              systemTexts.never
            ) : (
              <span class={lastRun.ok ? 'good' : 'bad'}>
                <Age at={lastRun.at} />, {lastRun.ok ? systemTexts.succeeded : systemTexts.failed(lastRun.error ?? '')}
              </span>
            ),
          ],
          [systemTexts.all, systemTexts.together(n, bytes(sizeBytes))],
        ]}
      />
    </Card>
  )
}

function Links({ links, collector }: Pick<System, 'links' | 'collector'>) {
  return (
    <Card title={systemTexts.links}>
      {links.length === 0 && <p class="faint">{has('radio') ? systemTexts.noLinks : systemTexts.noLinksHere}</p>}
      <ul class="rows tight">
        {links.map(({ name, state, since, lastFrameAt, reconnects, reason }) => (
          <LinkRow key={name} state={state} name={name} word={t.shell.link[state]} reason={reason}>
            {t.dashboard.since(age(since, now.value))}
            {lastFrameAt !== null && (
              <>
                {' · '}
                {systemTexts.lastHeard} <Age at={lastFrameAt} />
              </>
            )}
            {reconnects > 0 && ` · ${t.dashboard.reconnects(reconnects)}`}
          </LinkRow>
        ))}
        {collector !== null && (
          <LinkRow
            state={collector.reason === null ? 'connected' : 'waiting'}
            name={systemTexts.delivery(collector.target)}
            word=""
            reason={collector.reason}
          >
            {systemTexts.lastDelivery} <Age at={collector.lastDeliveredAt} />
          </LinkRow>
        )}
      </ul>
    </Card>
  )
}

function Queues({ queues }: Pick<System, 'queues'>) {
  const { ingest, sending, collector, anchor, alerts } = queues
  const shown = (n: number | null) => (n === null ? null : count(n))
  return (
    <Card title={systemTexts.queues}>
      <Facts
        entries={[
          [systemTexts.ingest, shown(ingest)],
          [systemTexts.sending, shown(sending)],
          [systemTexts.alerts, systemTexts.atLeast(alerts, MAX_COUNTED)],
          [systemTexts.collector, shown(collector)],
          [systemTexts.anchor, shown(anchor)],
        ]}
      />
    </Card>
  )
}

function Instances({ instances }: { instances: NonNullable<System['instances']> }) {
  return (
    <Card title={systemTexts.instances}>
      <ul class="rows tight">
        {instances.map(({ id, isSelf, hasLease, seenAt }) => (
          <li key={id}>
            <div class="grow">
              <span class="mono">{id}</span> {isSelf && <span class="tag accent">{systemTexts.thisOne}</span>}
              <div class="faint">
                {hasLease ? systemTexts.onDuty : systemTexts.standby} · {systemTexts.seen} <Age at={seenAt} />
              </div>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function Jobs({ runs }: Pick<System, 'runs'>) {
  return (
    <Card title={systemTexts.jobs}>
      <Facts
        entries={runs.map(({ job, at, ok }) => [
          jobNames[job],
          <span class={ok ? 'good' : 'bad'} key={job}>
            <Age at={at} />
          </span>,
        ])}
      />
    </Card>
  )
}

function Service({ version, startedAt, clock, signIns, release }: System) {
  return (
    <Card
      title={systemTexts.service}
      actions={
        <a class="button small" href={href('/audit?action=login_failed')}>
          {systemTexts.openAudit}
        </a>
      }
    >
      <Facts
        entries={[
          [systemTexts.version, version],
          [systemTexts.release, <Release release={release} key="release" />],
          [systemTexts.started, <ExactAge at={startedAt} key="started" />],
          [systemTexts.clock, clock === null ? null : clockStates[clock.state]],
          [systemTexts.signIns, systemTexts.atLeast(signIns.failed, MAX_COUNTED)],
        ]}
      />
    </Card>
  )
}

/** What the address says is a claim, and shown as one. */
function Release({ release }: Pick<System, 'release'>) {
  if (release === null) return <span class="faint">{systemTexts.notAsked}</span>
  const { host, askedAt, latest, isNewer, problem } = release
  if (problem !== null && latest === null) return <>{systemTexts.noAnswer(host, problem)}</>
  if (latest === null || askedAt === null) return <>{systemTexts.unasked(host)}</>
  return (
    <>
      {isNewer ? systemTexts.claims(host, latest) : systemTexts.newest(host)}, <Age at={askedAt} />
      <div class="faint">{problem === null ? systemTexts.unproven : systemTexts.noAnswer(host, problem)}</div>
    </>
  )
}
