import { type Signal, useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { api, send } from '../api.ts'
import { useAction } from '../load.ts'
import { BROADCAST, type Message, nodeByNum, nodeName } from '../mesh.ts'
import { Icon } from '../parts/icon.tsx'
import { Failure } from '../parts/notice.tsx'
import { t } from '../strings.ts'

/** Bytes of UTF-8 that the service takes. */
const MAX_BYTES = 200

type Props = {
  channel: number
  /** Node id of the receiver; null: everybody on the channel. */
  partner: string | null
  replyTo: Signal<Message | null>
  onSent(): Promise<void>
}

/** Writes a text. What could not be sent stays in the box. */
export function Composer({ channel, partner, replyTo, onSent }: Props) {
  const text = useSignal('')
  const { busy, error, run } = useAction()
  // The same draft sent twice, because an answer got lost, is one message.
  const draft = useRef(crypto.getRandomValues(new Uint32Array(4)).join('-'))
  const used = new TextEncoder().encode(text.value).length
  const canSend = text.value.trim() !== '' && used <= MAX_BYTES && !busy.value
  const submit = () =>
    run(async () => {
      const reply = replyTo.peek()
      const to = partner ?? receiverOf(reply)
      const json = {
        text: text.value,
        channel: to === null ? (reply?.channel ?? channel) : 0,
        ...(to !== null && { to }),
        ...(reply !== null && { replyId: reply.packetId }),
      }
      await send(api.messages.$post({ json }, { headers: { 'Idempotency-Key': draft.current } }))
      draft.current = crypto.getRandomValues(new Uint32Array(4)).join('-')
      text.value = ''
      replyTo.value = null
      await onSent()
    })
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        if (canSend) void submit()
      }}
    >
      <Failure error={error.value} />
      {replyTo.value !== null && (
        <div class="reply">
          <span>{t.messages.replyTo(replyTo.value.text)}</span>
          <button
            type="button"
            class="icon-button"
            aria-label={t.messages.noReply}
            onClick={() => (replyTo.value = null)}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
      <div class="composer-line">
        <textarea
          rows={2}
          aria-label={t.messages.write}
          placeholder={destination(channel, partner, replyTo.value)}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            if (canSend) void submit()
          }}
        />
        <button class="button primary" disabled={!canSend}>
          <Icon name="send" />
          {t.messages.send}
        </button>
      </div>
      <div class={used > MAX_BYTES ? 'about bad' : 'about faint'}>{t.messages.bytes(used, MAX_BYTES)}</div>
    </form>
  )
}

/** A reply to a direct message goes to the other of the two. */
function receiverOf(reply: Message | null): string | null {
  if (reply === null || reply.toNodeNum === BROADCAST) return null
  return reply.direction === 'in' ? reply.fromNodeId : reply.toNodeId
}

/** Where the text would go, said before it is written. */
function destination(channel: number, partner: string | null, reply: Message | null): string {
  const nodeId = partner ?? receiverOf(reply)
  if (nodeId === null) return t.messages.writeTo(t.messages.channel(reply?.channel ?? channel))
  const node = nodeByNum(Number.parseInt(nodeId.slice(1), 16))
  return t.messages.writeTo(node === undefined ? nodeId : nodeName(node))
}
