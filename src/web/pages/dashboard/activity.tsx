import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import { bytes, clock, shortCount } from '../../format.ts'
import { Age } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { t } from '../../strings.ts'
import { Change, completeHours } from './trend.tsx'

type Dashboard = InferResponseType<typeof api.dashboard.$get, 200>

/** Each of these has its name below it. */
const NAMED_HOURS = 6

/** The last day by the hour, and the state of the service. */
export function Activity({ found }: { found: Dashboard | null }) {
  if (found === null) {
    return (
      <Card title={t.dashboard.activity}>
        <div class="hours-awaited" />
      </Card>
    )
  }
  const { hours, lastBackup, storage, counts, dayBefore } = found
  // People without an account see only messages.
  const what = counts.packets > 0 ? 'packets' : 'messages'
  const most = Math.max(1, ...hours.map((hour) => hour[what]))
  const highest = hours.findIndex((hour) => hour[what] === most)
  return (
    <Card title={t.dashboard.activity} help={t.dashboard.activityHelp(counts.packets, counts.messages)}>
      <div class="hours-box">
        <div class="hours" role="img" aria-label={t.dashboard.activityHelp(counts.packets, counts.messages)}>
          {hours.map(({ t: begin, packets, messages }, index) => {
            const n = what === 'packets' ? packets : messages
            return (
              <div
                class={index === highest || index === hours.length - 1 ? 'hour told' : 'hour'}
                key={begin}
                title={t.dashboard.hour(clock(begin), packets, messages)}
              >
                <b>{n > 0 && shortCount(n)}</b>
                <span style={{ height: `calc((100% - 1.25rem) * ${n / most})` }} />
              </div>
            )
          })}
        </div>
        <div class="hour-names faint" aria-hidden="true">
          {hours.map(({ t: begin }, index) =>
            index % NAMED_HOURS === 0 ? <span key={begin}>{clock(begin)}</span> : null,
          )}
          <span>{t.dashboard.now}</span>
        </div>
      </div>
      <p class="faint">
        {[
          dayBefore !== null && (dayBefore.packets ?? 0) > 0 && (
            <>
              {t.dashboard.packets}: <Change now={completeHours(hours, 'packets')} before={dayBefore.packets ?? 0} />
            </>
          ),
          lastBackup !== null && (
            <>
              {t.dashboard.lastBackup} <Age at={lastBackup.createdAt} />
            </>
          ),
          storage.databaseBytes !== null && t.dashboard.storage(bytes(storage.databaseBytes)),
        ]
          .filter((part) => part !== false)
          .flatMap((part, index) => (index === 0 ? [part] : [' · ', part]))}
      </p>
    </Card>
  )
}
