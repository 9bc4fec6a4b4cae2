import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import { bytes, clock } from '../../format.ts'
import { Age } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { t } from '../../strings.ts'

type Dashboard = InferResponseType<typeof api.dashboard.$get, 200>

/** The last day by the hour, and the state of the service. */
export function Activity({ found }: { found: Dashboard | null }) {
  if (found === null) {
    return (
      <Card title={t.dashboard.activity}>
        <div class="hours-awaited" />
      </Card>
    )
  }
  const { hours, lastBackup, storage, counts } = found
  const most = Math.max(1, ...hours.map(({ packets }) => packets))
  return (
    <Card title={t.dashboard.activity} help={t.dashboard.activityHelp(counts.packets, counts.messages)}>
      <div class="hours" role="img" aria-label={t.dashboard.activityHelp(counts.packets, counts.messages)}>
        {hours.map(({ t: begin, packets, messages }) => (
          <div class="hour" key={begin} title={t.dashboard.hour(clock(begin), packets, messages)}>
            <span style={{ height: `${(packets / most) * 100}%` }} />
          </div>
        ))}
      </div>
      <div class="hour-names faint" aria-hidden="true">
        <span>{hours[0] !== undefined && clock(hours[0].t)}</span>
        <span>{t.dashboard.now}</span>
      </div>
      <p class="faint">
        {lastBackup !== null && (
          <>
            {t.dashboard.lastBackup} <Age at={lastBackup.createdAt} />
          </>
        )}
        {lastBackup !== null && storage.databaseBytes !== null && ' · '}
        {storage.databaseBytes !== null && t.dashboard.storage(bytes(storage.databaseBytes))}
      </p>
    </Card>
  )
}
