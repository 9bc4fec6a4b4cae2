import './dashboard.css'
import { api, ask } from '../../api.ts'
import { Failure } from '../../parts/notice.tsx'
import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { Page } from '../../parts/page.tsx'
import { useLoad } from '../../state/load.ts'
import { inbox } from '../../state/messages/inbox.ts'
import { nodesError, refreshNodes } from '../../state/mesh/nodes.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { can, isAdmin, isAnonymous } from '../../state/session.ts'
import { isWall } from '../../state/wall.ts'
import { t } from '../../strings.ts'
import { Activity } from './activity.tsx'
import { FellSilent } from './fell-silent.tsx'
import { NodeFigures } from './figures.tsx'
import { JustHeard } from './just-heard.tsx'
import { LatestMessages } from './latest-messages.tsx'
import { NeedsYou } from './needs/needs-you.tsx'
import { Radios } from './radios.tsx'
import './dashboard.css'

const Checklist = lazyPage(async () => (await import('./checklist.tsx')).Checklist)

const FindingsCard = lazyPage(async () => (await import('./findings-card.tsx')).FindingsCard)

const POLL_MS = 60_000
const FEW = 3

/** What needs somebody first, then the most important figures, readable from a distance. */
export function DashboardPage() {
  const loaded = useLoad(() => ask(api.dashboard.$get()), [], POLL_MS)
  useOfflineCache('dashboard', loaded)
  const found = loaded.data.value
  const retry = () => {
    void loaded.reload()
    void refreshNodes()
  }
  const mayReadNodes = can('nodes', 'read')
  const mayReadMessages = can('messages', 'read')
  const mayReadLinks = can('info', 'read') && !isAnonymous.value
  // Few messages leave room below them.
  const isQuiet = mayReadMessages && inbox.value !== null && inbox.value.length < FEW
  return (
    <Page title={t.dashboard.title}>
      <Failure error={loaded.error.value ?? nodesError.value} retry={retry} />
      {!isWall.value && <NeedsYou found={found} />}
      {mayReadNodes && <NodeFigures found={found} />}
      {!isWall.value && <Activity found={found} />}
      {isAdmin.value && !isWall.value && <Checklist />}
      <div class="overview">
        {isWall.value && <NeedsYou found={found} />}
        {isWall.value && mayReadNodes && <FellSilent />}
        {isWall.value && mayReadMessages && <LatestMessages />}
        {!isWall.value && mayReadMessages && (
          <div class="stack">
            <LatestMessages />
            {isQuiet && mayReadLinks && <Radios />}
          </div>
        )}
        {!isWall.value && (
          <div class="stack">
            {!isQuiet && mayReadLinks && <Radios />}
            {mayReadNodes && <JustHeard />}
            {mayReadLinks && mayReadNodes && <FindingsCard />}
          </div>
        )}
      </div>
    </Page>
  )
}
