import { api, askAs } from '../../../api.ts'
import { Age } from '../../../parts/age.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { href } from '../../../router.ts'
import { useLoad } from '../../../state/load.ts'
import { maySend } from '../../../state/mesh/links.ts'
import { BROADCAST, type Message, type MessagePage, nameOf, type Node } from '../../../state/mesh/nodes.ts'
import { can } from '../../../state/session.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { useChannels } from '../../automation/channels.ts'

const POLL_MS = 10_000
const SHOWN = 4

/** The latest texts of a node and to it, on channels and directly. */
export function NodeMessages({ node }: { node: Node }) {
  const { nodeId } = node
  const channels = useChannels()
  const { data, error } = useLoad(() => readLatest(node), [nodeId], POLL_MS, ['message'])
  const messages = data.value
  return (
    <Card
      title={nodeTexts.messages}
      actions={
        <a class="button small" href={href(node.isLocal ? '/messages' : `/messages?with=${nodeId}`)}>
          {!node.isLocal && can('messages', 'write') && maySend('texts') ? nodeTexts.write : nodeTexts.allMessages}
        </a>
      }
    >
      <Failure error={error.value} />
      {messages?.length === 0 && <p class="faint">{nodeTexts.noMessages}</p>}
      <ul class="rows tight">
        {messages?.map((message) => (
          <li key={message.id}>
            <div class="grow">
              <div class="faint">
                <bdi>{nameOf(message.fromNodeNum, message.fromNodeId)}</bdi> · {whereOf(message, channels.name)} ·{' '}
                <Age at={message.timestamp} />
              </div>
              <div class="pre short">
                <bdi>{message.text}</bdi>
              </div>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function whereOf({ toNodeNum, channel }: Message, nameOfChannel: (index: number) => string): string {
  return toNodeNum === BROADCAST ? nameOfChannel(channel) : nodeTexts.direct
}

/** Direct ones with it, and its own on channels; newest first. */
async function readLatest({ nodeId }: Node): Promise<readonly Message[]> {
  const limit = String(SHOWN)
  const pages = await Promise.all(
    [{ with: nodeId }, { from: nodeId }].map((filter) =>
      askAs<MessagePage>(api.messages.$get({ query: { ...filter, limit } })),
    ),
  )
  const byId = new Map(pages.flatMap(({ messages }) => messages).map((message) => [message.id, message]))
  const texts = [...byId.values()].filter(({ emoji }) => !emoji)
  return texts.toSorted((a, b) => b.timestamp - a.timestamp || b.id - a.id).slice(0, SHOWN)
}
