import { api, ask } from '../../api.ts'
import { inbox } from '../../state/messages/inbox.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { useLoad } from '../../state/load.ts'
import {
  isActive,
  type Message,
  nameOf,
  type Node,
  nodeName,
  nodes,
  nodesError,
  refreshNodes,
  shortNameOf,
  useNodes,
} from '../../state/mesh/nodes.ts'
import { Age, now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { href } from '../../router.ts'
import { can, isAdmin, isAnonymous } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { Activity } from './activity.tsx'
import { NodeFigures } from './figures.tsx'
import { Radios } from './radios.tsx'

const Checklist = lazyPage(async () => (await import('./checklist.tsx')).Checklist)

const POLL_MS = 60_000

/** The most important figures, readable from a distance. */
export function DashboardPage() {
  const loaded = useLoad(() => ask(api.dashboard.$get()), [], POLL_MS)
  useOfflineCache('dashboard', loaded)
  const found = loaded.data.value
  const retry = () => {
    void loaded.reload()
    void refreshNodes()
  }
  return (
    <Page title={t.dashboard.title}>
      <Failure error={loaded.error.value ?? nodesError.value} retry={retry} />
      {can('nodes', 'read') && <NodeFigures messages={found?.counts.messages ?? null} />}
      <div class="cards">
        {can('nodes', 'read') && <JustHeard />}
        <div class="stack">
          <Activity found={found} />
          {can('info', 'read') && !isAnonymous.value && <Radios />}
          {can('messages', 'read') && <LatestMessages />}
        </div>
      </div>
      {isAdmin.value && <Checklist />}
    </Page>
  )
}

const SHOWN = 10

function JustHeard() {
  useNodes()
  const all = nodes.value
  const steady = useSteady('heard', all ?? [], numberOf)
  return (
    <Card
      title={t.dashboard.recent}
      actions={
        <a class="button small" href={href('/nodes')}>
          {t.dashboard.allNodes}
        </a>
      }
    >
      {all?.length === 0 ? (
        <Empty icon="nodes" title={t.nodes.empty}>
          <p>{t.nodes.emptyHelp}</p>
          <ConnectHelp />
        </Empty>
      ) : (
        <SteadyList steady={steady}>
          <ul class={all === null ? 'rows-awaited' : 'rows tight'}>
            {steady.rows.slice(0, SHOWN).map((node) => (
              <HeardRow node={node} key={node.nodeNum} />
            ))}
          </ul>
        </SteadyList>
      )}
    </Card>
  )
}

const numberOf = ({ nodeNum }: Node) => nodeNum
const idOf = ({ id }: Message) => id

function HeardRow({ node }: { node: Node }) {
  return (
    <li>
      <span class={isActive(node, now.value) ? 'badge live' : 'badge'} aria-hidden="true">
        {shortNameOf(node)}
      </span>
      <a class="grow clip" dir="auto" href={href(`/nodes/${node.nodeId}`)} title={nodeName(node)}>
        {nodeName(node)}
      </a>
      <span class="faint nowrap">
        {node.hopsAway !== null && <span class="phone-hidden">{t.nodes.hopsAway(node.hopsAway)} · </span>}
        <Age at={node.lastHeard} />
      </span>
    </li>
  )
}

function LatestMessages() {
  const texts = inbox.value?.filter(({ emoji }) => !emoji)
  const steady = useSteady('texts', texts ?? [], idOf)
  return (
    <Card
      title={t.dashboard.recentMessages}
      actions={
        <a class="button small" href={href('/messages')}>
          {t.dashboard.allMessages}
        </a>
      }
    >
      {texts?.length === 0 && <p class="faint">{t.messages.none}</p>}
      <SteadyList steady={steady}>
        <ul class="rows tight">
          {steady.rows.slice(0, 5).map((message) => (
            <li key={message.id}>
              <div class="grow">
                <div class="faint">
                  {nameOf(message.fromNodeNum, message.fromNodeId)} · <Age at={message.timestamp} />
                </div>
                <div class="pre short">
                  <bdi>{message.text}</bdi>
                </div>
              </div>
            </li>
          ))}
        </ul>
      </SteadyList>
    </Card>
  )
}
