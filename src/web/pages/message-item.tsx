import { clock, dateTime, humanize } from '../format.ts'
import { BROADCAST, type Message, nodeByNum, nodeName } from '../mesh.ts'
import { Icon } from '../parts/icon.tsx'
import { href } from '../router.ts'
import { can } from '../session.ts'
import { t } from '../strings.ts'

type Props = {
  message: Message
  repliedTo: Message | undefined
  reactions: readonly Message[]
  onReply: ((message: Message) => void) | null
}

/** One text: who, to whom, when, how it came or what became of it. */
export function MessageItem({ message, repliedTo, reactions, onReply }: Props) {
  const isOut = message.direction === 'out'
  const isDirect = message.toNodeNum !== BROADCAST
  return (
    <article class={isOut ? 'message out' : 'message'}>
      <header>
        <NodeLink nodeNum={message.fromNodeNum} nodeId={message.fromNodeId} />
        {isDirect && <span class="faint">{t.messages.to(nameOf(message.toNodeNum, message.toNodeId))}</span>}
        {message.pkiEncrypted && (
          <span class="faint" title={t.messages.encrypted}>
            <Icon name="lock" />
            <span class="sr-only">{t.messages.encrypted}</span>
          </span>
        )}
        <time class="faint" dateTime={new Date(message.timestamp).toISOString()} title={dateTime(message.timestamp)}>
          {clock(message.timestamp)}
        </time>
      </header>
      {repliedTo !== undefined && <blockquote>{t.messages.replyTo(repliedTo.text)}</blockquote>}
      <p class="pre">{message.text}</p>
      <footer class="faint">
        {isOut ? <Delivery message={message} /> : <Arrival message={message} />}
        {!isDirect && <span>{t.messages.channel(message.channel)}</span>}
        {reactions.length > 0 && (
          <span class="reactions">
            <span class="sr-only">{t.messages.reactions}: </span>
            {reactions.map(({ id, text, fromNodeNum, fromNodeId }) => (
              <span key={id} title={nameOf(fromNodeNum, fromNodeId)}>
                {text}
              </span>
            ))}
          </span>
        )}
        {onReply !== null && message.packetId !== 0 && (
          <button type="button" class="text-button" onClick={() => onReply(message)}>
            {t.messages.reply}
          </button>
        )}
      </footer>
    </article>
  )
}

function Delivery({ message: { deliveryState, routingError, sentBy } }: { message: Message }) {
  const state = deliveryState ?? 'unknown'
  return (
    <span class={`delivery ${state}`}>
      {t.messages.state[state]}
      {routingError !== null && ` (${humanize(routingError)})`}
      {sentBy !== null && ` · ${t.messages.sentBy(sentBy)}`}
    </span>
  )
}

function Arrival({ message: { hopsAway, rxSnr, viaMqtt } }: { message: Message }) {
  const parts = [
    viaMqtt ? t.nodes.mqtt : null,
    hopsAway === null ? null : t.nodes.hopsAway(hopsAway),
    rxSnr === null || hopsAway !== 0 ? null : `${rxSnr} dB`,
  ]
  return <span>{parts.filter((part) => part !== null).join(' · ')}</span>
}

function nameOf(nodeNum: number, nodeId: string): string {
  const node = nodeByNum(nodeNum)
  return node === undefined ? nodeId : nodeName(node)
}

function NodeLink({ nodeNum, nodeId }: { nodeNum: number; nodeId: string }) {
  const name = nameOf(nodeNum, nodeId)
  return can('nodes', 'read') ? <a href={href(`/nodes/${nodeId}`)}>{name}</a> : <strong>{name}</strong>
}
