import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Wanted } from '../../state/messages/conversation.ts'
import { conversationOf, inbox, muted, unread, unreadTotal } from '../../state/messages/inbox.ts'
import type { Channels } from '../../state/messages/channels.ts'
import { type Message, nameOf, nameOfId } from '../../state/mesh/nodes.ts'
import { Age } from '../../parts/age.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Mark } from '../../parts/list/mark.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { Unread } from '../../parts/unread.tsx'
import { href, navigate } from '../../router.ts'
import { can, has } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'

/** All conversations: everything, each channel, and each node with direct messages. */
export function Conversations({ wanted, channels }: { wanted: Wanted; channels: Channels }) {
  const latest = latestOf(inbox.value ?? [])
  const { channel, partner } = wanted
  const known = [...latest.keys()]
  const slots = known.flatMap((key) => (key.startsWith('channel=') ? [Number(key.slice('channel='.length))] : []))
  const partners = known.flatMap((key) => (key.startsWith('with=') ? [key.slice('with='.length)] : []))
  const indexes = [...new Set([0, ...channels.used, ...slots])].toSorted((a, b) => a - b)
  const listed = [...new Set([...(partner === null ? [] : [partner]), ...partners])]
  // A new conversation is shown as soon as it is opened.
  const begun = partner === null || partners.includes(partner) ? '' : partner
  const steady = useSteady('conversations', listed, (id) => id, begun)
  const isAll = channel === null && partner === null
  const list = steady.box
  useEffect(() => {
    // On a phone the list is a line that extends beyond the screen.
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [channel, partner])
  return (
    <nav class="conversations" aria-label={t.messages.conversations}>
      {can('nodes', 'read') && can('messages', 'write') && has('radio') && <NewDirect />}
      <SteadyList steady={steady}>
        <ul>
          <Entry path="/messages" name={t.messages.all} isOpen={isAll} count={isAll ? 0 : unreadTotal.value} />
          {indexes.map((index) => (
            <ConversationEntry
              key={index}
              id={`channel=${index}`}
              name={channels.name(index)}
              isOpen={channel === String(index)}
              latest={latest}
            />
          ))}
          {steady.rows.map((nodeId) => (
            <ConversationEntry
              key={nodeId}
              id={`with=${nodeId}`}
              name={nameOfId(nodeId)}
              isOpen={partner === nodeId}
              latest={latest}
            />
          ))}
        </ul>
      </SteadyList>
    </nav>
  )
}

/** Chooses the node to write to. */
function NewDirect() {
  const isOpen = useSignal(false)
  return (
    <>
      <button type="button" class="button small new-direct" onClick={() => (isOpen.value = true)}>
        {t.messages.newDirect}
      </button>
      {isOpen.value && (
        <Dialog title={t.messages.newDirectTitle} onClose={() => (isOpen.value = false)}>
          <div class="picker-room">
            <NodePicker
              label={t.messages.recipient}
              isOffered={({ isLocal }) => !isLocal}
              value=""
              autofocus
              onChoose={(nodeId) => {
                isOpen.value = false
                navigate(`/messages?with=${nodeId}`)
              }}
            />
          </div>
        </Dialog>
      )}
    </>
  )
}

function ConversationEntry(props: { id: string; name: string; isOpen: boolean; latest: ReadonlyMap<string, Message> }) {
  const { id, name, isOpen, latest } = props
  return (
    <Entry
      path={`/messages?${id}`}
      name={name}
      isOpen={isOpen}
      count={isOpen ? 0 : (unread.value.get(id) ?? 0)}
      isMuted={muted.value.has(id)}
      latest={latest.get(id)}
    />
  )
}

type EntryProps = {
  path: string
  name: string
  isOpen: boolean
  count: number
  isMuted?: boolean
  latest?: Message | undefined
}

function Entry(props: EntryProps) {
  const { latest } = props
  return (
    <li>
      <a class="conversation" href={href(props.path)} aria-current={props.isOpen ? 'true' : undefined}>
        <span class="clip conversation-name" dir="auto" title={props.name}>
          {props.name}
        </span>
        {props.isMuted ? <Mark icon="muted" words={t.messages.muted} /> : <Unread count={props.count} />}
        {latest !== undefined && (
          <span class="conversation-about">
            <span class="clip grow" title={latest.text}>
              {latest.direction === 'out' ? t.messages.you : nameOf(latest.fromNodeNum, latest.fromNodeId)}:{' '}
              <bdi>{latest.text}</bdi>
            </span>
            <Age at={latest.timestamp} short />
          </span>
        )}
      </a>
    </li>
  )
}

/** The latest text of each conversation, the most recent first. */
function latestOf(messages: readonly Message[]): ReadonlyMap<string, Message> {
  const latest = new Map<string, Message>()
  for (const message of messages) {
    const id = conversationOf(message)
    if (!message.emoji && !latest.has(id)) latest.set(id, message)
  }
  return latest
}
