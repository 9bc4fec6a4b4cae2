import { api, ask, send } from '../../../api.ts'
import { askFirst } from '../../../parts/dialog.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { asLeft, href, navigate } from '../../../router.ts'
import { useAction } from '../../../state/load.ts'
import { maySend } from '../../../state/mesh/links.ts'
import { type Node, nodeName, refreshNodes } from '../../../state/mesh/nodes.ts'
import { can, has, isAnonymous } from '../../../state/session.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { WatchNode } from './watch.tsx'

type Props = { node: Node; onChanged(): Promise<void> }

/** Changes what is noted about the node. */
function useChange({ node, onChanged }: Props) {
  const { busy, error, run } = useAction()
  const set = (json: { isFavorite?: boolean; isIgnored?: boolean; isMuted?: boolean; hidden?: boolean }) =>
    void run(async () => {
      await ask(api.nodes[':id'].$put({ param: { id: node.nodeId }, json }))
      await Promise.all([onChanged(), refreshNodes()])
    })
  return { busy, error, set }
}

/** What people often do with a node. */
export function NodeActions(props: Props) {
  const { node } = props
  const { busy, error, set } = useChange(props)
  return (
    <>
      <Failure error={error.value} />
      {can('messages', 'read') && !isAnonymous.value && !node.isLocal && (
        <a class="button primary" href={href(`/messages?with=${node.nodeId}`)}>
          <Icon name="messages" />
          {can('messages', 'write') && maySend('texts') ? nodeTexts.write : nodeTexts.messages}
        </a>
      )}
      {!isAnonymous.value && <WatchNode node={node} />}
      {can('nodes', 'write') && (
        <button
          type="button"
          class="button"
          aria-pressed={node.isFavorite}
          disabled={busy.value}
          onClick={() => set({ isFavorite: !node.isFavorite })}
        >
          <Icon name="star" filled={node.isFavorite} />
          {nodeTexts.favorite}
        </button>
      )}
    </>
  )
}

/** What people rarely do with a node, and what can't be undone: at the end of the page. */
export function ManageNode(props: Props) {
  const { node } = props
  const { busy, error, set } = useChange(props)
  const forget = () =>
    askFirst({
      text: nodeTexts.forgetSure(nodeName(node)),
      confirm: nodeTexts.forget,
      isDangerous: true,
      act: async () => {
        await send(api.nodes[':id'].$delete({ param: { id: node.nodeId } }))
        say(nodeTexts.forgotten)
        navigate(asLeft('/nodes'))
      },
    })
  return (
    <Card title={nodeTexts.manage}>
      <Failure error={error.value} />
      <ul class="rows">
        {can('configuration', 'read') && has('radio') && !node.isLocal && (
          <li>
            <p class="grow">{nodeTexts.configureHelp}</p>
            <a class="button small" href={href(`/configuration?node=${encodeURIComponent(node.nodeId)}`)}>
              {nodeTexts.configure}
            </a>
          </li>
        )}
        <li>
          <p class="grow">{nodeTexts.muteHelp}</p>
          <button
            type="button"
            class="button small"
            aria-pressed={node.isMuted}
            disabled={busy.value}
            onClick={() => set({ isMuted: !node.isMuted })}
          >
            {node.isMuted ? nodeTexts.muted : nodeTexts.mute}
          </button>
        </li>
        <li>
          <p class="grow">{nodeTexts.ignoreHelp}</p>
          <button
            type="button"
            class="button small"
            aria-pressed={node.isIgnored}
            disabled={busy.value}
            onClick={() => set({ isIgnored: !node.isIgnored })}
          >
            {node.isIgnored ? nodeTexts.ignored : nodeTexts.ignore}
          </button>
        </li>
        <li>
          <p class="grow">{nodeTexts.hideHelp}</p>
          <button
            type="button"
            class="button small"
            aria-pressed={node.hidden}
            disabled={busy.value}
            onClick={() => set({ hidden: !node.hidden })}
          >
            {node.hidden ? nodeTexts.hidden : nodeTexts.hide}
          </button>
        </li>
        <li>
          <p class="grow">{nodeTexts.forgetHelp}</p>
          <button type="button" class="button small danger-quiet" onClick={forget}>
            {nodeTexts.forget}
          </button>
        </li>
      </ul>
    </Card>
  )
}
