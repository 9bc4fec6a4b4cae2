import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { keepDraft, readDraft } from '../../state/drafts.ts'
import { type Action, useAction } from '../../state/load.ts'
import { BROADCAST, type Message, nameOf, nameOfId } from '../../state/mesh/nodes.ts'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/notice.tsx'
import { user } from '../../state/session.ts'
import { t } from '../../strings.ts'
import type { Channels } from '../../state/messages/channels.ts'
import { SendBy } from './send-by.tsx'
import { newKey, sendText } from './sending.ts'
import { MAX_TEXT_BYTES } from '../../../shared/limits.ts'

/** Why nothing can be sent: words of `t.messages`. */
export type Obstacle = 'readOnly' | 'noCollector' | 'channelOff' | 'channelElsewhere' | null

type Props = {
  channel: number
  /** Node ID of the recipient; null: broadcast on the channel. */
  partner: string | null
  replyTo: Signal<Message | null>
  obstacle: Obstacle
  channels: Channels
  onSent(message: Message): void
}

/** Writes a text. An unsent text stays in the box, even if the page closes or the permission is lost. */
export function Composer(props: Props) {
  const { replyTo, obstacle } = props
  const mayWrite = obstacle === null
  const box = useRef<HTMLTextAreaElement>(null)
  const { text, radio, action, submit } = useDraft(props)
  const used = new TextEncoder().encode(text.value).length
  const canSend = mayWrite && text.value.trim() !== '' && used <= MAX_TEXT_BYTES && !action.busy.value
  useEffect(() => {
    if (replyTo.value !== null) box.current?.focus()
  }, [replyTo.value])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') replyTo.value = null
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    if (canSend) void submit()
  }
  if (obstacle !== null && text.value === '') return <p class="faint about">{t.messages[obstacle]}</p>
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        if (canSend) void submit()
      }}
    >
      <Failure error={action.error.value} />
      <ReplyTo replyTo={replyTo} />
      <div class="composer-line">
        <textarea
          rows={2}
          ref={box}
          aria-label={t.messages.write}
          placeholder={destination(props)}
          value={text.value}
          readOnly={!mayWrite}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <button class="button primary" disabled={!canSend}>
          <Icon name="send" />
          {t.messages.send}
        </button>
      </div>
      <Counter used={used} note={noteOf(action, obstacle)} />
      {mayWrite && <SendBy radio={radio} />}
    </form>
  )
}

/** The text of this conversation that is not sent yet, and how it is sent. */
function useDraft({ channel, partner, replyTo, onSent }: Props) {
  const place = `${user.value?.id}:${partner ?? channel}`
  const text = useSignal(readDraft(place))
  const action = useAction()
  useEffect(() => keepDraft(place, text.value), [text.value])
  const radio = useSignal('')
  // Sending the same draft again after a lost answer makes only one message. Another draft has another key.
  const sent = useRef({ request: '', key: '' })
  const submit = () =>
    action.run(async () => {
      const reply = replyTo.peek()
      const to = partner ?? receiverOf(reply)
      const json = {
        text: text.value,
        channel: to === null ? (reply?.channel ?? channel) : 0,
        ...(to !== null && { to }),
        ...(reply !== null && { replyId: reply.packetId }),
        ...(radio.value !== '' && { radio: radio.value }),
      }
      const request = JSON.stringify(json)
      if (sent.current.request !== request) sent.current = { request, key: newKey() }
      const message = await sendText(json, sent.current.key)
      sent.current = { request: '', key: '' }
      text.value = restOf(text.peek(), json.text)
      keepDraft(place, text.value)
      // Another one may have been chosen meanwhile.
      if (replyTo.peek() === reply) replyTo.value = null
      onSent(message)
    })
  return { text, radio, action, submit }
}

/** What was typed while a text was being sent. */
function restOf(typed: string, sent: string): string {
  return typed.startsWith(sent) ? typed.slice(sent.length).trimStart() : typed
}

/** The typed text stays after a failure. */
function noteOf({ error }: Action, obstacle: Obstacle): string {
  if (obstacle === 'readOnly') return t.messages.readOnlyDraft
  if (obstacle !== null) return `${t.messages[obstacle]} ${t.messages.kept}`
  return error.value === null ? '' : t.messages.kept
}

function ReplyTo({ replyTo }: { replyTo: Signal<Message | null> }) {
  if (replyTo.value === null) return null
  const { fromNodeNum, fromNodeId, text } = replyTo.value
  return (
    <div class="reply">
      <span class="clip" title={text}>
        {t.messages.replyingTo} <strong>{nameOf(fromNodeNum, fromNodeId)}</strong> <bdi>{text}</bdi>
      </span>
      <button type="button" class="icon-button" aria-label={t.messages.noReply} onClick={() => (replyTo.value = null)}>
        <Icon name="close" />
      </button>
    </div>
  )
}

function Counter({ used, note }: { used: number; note: string }) {
  const over = used - MAX_TEXT_BYTES
  return (
    <div class="about composer-about">
      {note === '' ? <span class="keys">{t.messages.keys}</span> : <span>{note}</span>}
      <span role="status" class="bad">
        {over > 0 && t.messages.over(over)}
      </span>
      <span class={over > 0 ? 'bytes bad' : 'bytes'}>{t.messages.bytes(used, MAX_TEXT_BYTES)}</span>
    </div>
  )
}

/** A reply to a direct message goes to the other node. */
function receiverOf(reply: Message | null): string | null {
  if (reply === null || reply.toNodeNum === BROADCAST) return null
  return reply.direction === 'in' ? reply.fromNodeId : reply.toNodeId
}

/** The destination of the text, shown before the text is written. */
function destination({ channel, partner, replyTo, channels }: Props): string {
  const nodeId = partner ?? receiverOf(replyTo.value)
  if (nodeId !== null) return t.messages.writeTo(nameOfId(nodeId))
  return t.messages.writeTo(channels.name(replyTo.value?.channel ?? channel))
}
