import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { asLeft } from '../../router.ts'
import { needHeard } from '../../state/live.ts'
import { awaited, useLoad } from '../../state/load.ts'
import { maySend } from '../../state/mesh/links.ts'
import { nodeName, useNames } from '../../state/mesh/nodes.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import './parts/node.css'
import type { NodeDetail } from './parts/detail.ts'
import { Details } from './parts/details.tsx'
import { Doubts } from './parts/doubts.tsx'
import { NodeHistory } from './parts/history.tsx'
import { useNodeLinks } from './parts/links.ts'
import { ManageNode, NodeActions } from './parts/manage.tsx'
import { MarksOnRadios } from './parts/marks.tsx'
import { NodeMessages } from './parts/messages.tsx'
import { NodeNeighbors } from './parts/neighbors.tsx'
import { Notes } from './parts/notes.tsx'
import { NodePackets } from './parts/packets.tsx'
import { NodePast, NodeSilence } from './parts/past.tsx'
import { NodePlace } from './parts/place.tsx'
import { NodeRequests } from './parts/requests.tsx'
import { NodeRoutes } from './parts/routes.tsx'
import { NodeState } from './parts/state.tsx'

const POLL_MS = 10_000

export function NodePage({ id }: { id: string }) {
  useNames()
  const about = id.startsWith('!') ? id : null
  useEffect(needHeard, [])
  const loaded = useLoad(() => ask(api.nodes[':id'].$get({ param: { id } })), [id], POLL_MS, ['node'], null, about)
  const { data, error, reload } = loaded
  useOfflineCache(`node ${id}`, loaded)
  const node = data.value
  const up = { path: asLeft('/nodes'), name: t.nodes.title }
  if (error.value?.code === 'node_not_found') {
    return (
      <Page title={nodeTexts.gone} up={up}>
        <Empty icon="nodes">
          <p>{nodeTexts.goneHelp}</p>
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title={node === null ? id : nodeName(node)}
      up={up}
      actions={node !== null && <NodeActions node={node} onChanged={reload} />}
    >
      <Failure error={error.value} retry={reload} />
      {node !== null && (
        <>
          <Doubts node={node} onChanged={reload} />
          {has('radio') && !isAnonymous.value && !node.isLocal && <MarksOnRadios node={node} />}
          {can('info', 'read') && !isAnonymous.value && !node.isLocal && <NodeSilence node={node} />}
          <Parts node={node} onChanged={reload} />
        </>
      )}
    </Page>
  )
}

/** What people come for first, and what they rarely need last. */
function Parts({ node, onChanged }: { node: NodeDetail; onChanged(): Promise<void> }) {
  const links = useNodeLinks(node.nodeId)
  const mayReadInfo = can('info', 'read')
  const isSettled = useSettled()
  return (
    <>
      <div class={node.position === null ? 'node-top' : 'node-top with-map'}>
        <NodeState node={node} />
        {node.position !== null && <NodePlace node={node} links={links} />}
      </div>
      {mayReadInfo && <NodeHistory node={node} />}
      <div class="stack" hidden={!isSettled}>
        <div class="node-columns">
          <div class="stack">
            {mayReadInfo && <NodeNeighbors node={node} links={links} />}
            {mayReadInfo && <NodeRoutes node={node} />}
            {can('info', 'write') && maySend('requests') && !node.isLocal && <NodeRequests node={node} />}
          </div>
          <div class="stack">
            {can('messages', 'read') && !isAnonymous.value && <NodeMessages node={node} />}
            {mayReadInfo && !isAnonymous.value && <NodePackets node={node} />}
          </div>
        </div>
        {mayReadInfo && !isAnonymous.value && <NodePast node={node} />}
        <Details node={node}>
          <Notes node={node} onSaved={onChanged} />
        </Details>
        {can('nodes', 'write') && <ManageNode node={node} onChanged={onChanged} />}
      </div>
    </>
  )
}

/** False until the first answers are here: what is shown below others then stays where it is. */
function useSettled(): boolean {
  const isSettled = useSignal(false)
  useSignalEffect(() => {
    if (awaited.value === 0) isSettled.value = true
  })
  return isSettled.value
}
