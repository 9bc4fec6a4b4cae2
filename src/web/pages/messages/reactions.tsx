import { useEffect, useRef } from 'preact/hooks'
import { api, send } from '../../api.ts'
import { BROADCAST, type Message, nameOf } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'

/** Sends a reaction; it appears with the next load. Throws `ApiError`. */
export async function sendReaction(message: Message, emoji: string): Promise<void> {
  const { packetId, toNodeNum, channel, direction, fromNodeId, toNodeId } = message
  const isDirect = toNodeNum !== BROADCAST
  const to = direction === 'in' ? fromNodeId : toNodeId
  await send(
    api.messages.$post({
      json: { text: emoji, emoji: true, replyId: packetId, channel: isDirect ? 0 : channel, ...(isDirect && { to }) },
    }),
  )
}

type Props = {
  reactions: readonly Message[]
  /** Null: the user may not react. */
  onReact: ((emoji: string) => void) | null
}

/** Equal reactions as one button, with their number and senders; pressing it sends the same reaction. */
export function Reactions({ reactions, onReact }: Props) {
  if (reactions.length === 0) return null
  const groups = new Map<string, Message[]>()
  for (const reaction of reactions) groups.set(reaction.text, [...(groups.get(reaction.text) ?? []), reaction])
  return (
    <ul class="reactions" aria-label={t.messages.reactions}>
      {[...groups].map(([emoji, group]) => (
        <li key={emoji}>
          <Group emoji={emoji} group={group} onReact={onReact} />
        </li>
      ))}
    </ul>
  )
}

function Group({ emoji, group, onReact }: { emoji: string; group: readonly Message[] } & Pick<Props, 'onReact'>) {
  const own = group.filter(({ direction }) => direction === 'out')
  // Reactions cannot be withdrawn in a mesh; a failed one may be sent again.
  const isSaid = own.some(({ deliveryState }) => deliveryState !== 'failed')
  const hasFailed = own.length > 0 && !isSaid
  const names = [...new Set(group.map(({ fromNodeNum, fromNodeId }) => nameOf(fromNodeNum, fromNodeId)))].join(', ')
  const about = hasFailed ? `${names}. ${t.messages.reactionFailed}` : names
  return (
    <button
      type="button"
      class={hasFailed ? 'reaction bad' : 'reaction'}
      disabled={onReact === null || isSaid}
      aria-pressed={isSaid}
      aria-label={`${emoji} ${about}`}
      title={about}
      onClick={() => onReact?.(emoji)}
    >
      {emoji}
      {group.length > 1 && <span>{group.length}</span>}
    </button>
  )
}

/** Some emoji to answer with. */
export function ReactionPicker({ onPick, onClose }: { onPick(emoji: string): void; onClose(): void }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' })
    box.current?.querySelector('button')?.focus()
  }, [])
  return (
    <div
      class="picker"
      ref={box}
      role="group"
      aria-label={t.messages.react}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose()
      }}
    >
      {Object.entries(t.messages.emojis).map(([emoji, name]) => (
        <button key={emoji} type="button" aria-label={name} title={name} onClick={() => onPick(emoji)}>
          {emoji}
        </button>
      ))}
    </div>
  )
}
