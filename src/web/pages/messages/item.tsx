import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { clock, dateTime, decimal } from '../../format.ts'
import { conversationOf } from '../../state/messages/inbox.ts'
import { type Action, useAction } from '../../state/load.ts'
import { BROADCAST, type Message, nameOf } from '../../state/mesh/nodes.ts'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { Mark } from '../../parts/list/mark.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { href } from '../../router.ts'
import { can, isAnonymous } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { MessageDetails } from './details.tsx'
import { newKey, type NewText, sendText } from './sending.ts'
import { ReactionPicker, Reactions, sendReaction } from './reactions.tsx'

type Props = {
  message: Message
  /** From the same sender as before: no name needed. */
  isContinued: boolean
  repliedTo: Message | undefined
  reactions: readonly Message[]
  /** Where it was sent: a channel, or a node; null: the user knows. */
  where: string | null
  /** Null: the user may not write. */
  onReply: (() => void) | null
  /** Takes the message that was sent again; null: the user may not send here. */
  onSent: ((message: Message) => void) | null
  /** The search term, marked in the text; null: this is no search. */
  hit: string | null
  onJump(): void
  /** The answered message may be further up than the loaded ones. */
  mayBeOlder: boolean
}

/** One text: sender, recipient, time, path or delivery state, and reactions. */
export function MessageItem(props: Props) {
  const { message, reactions } = props
  const opened = useSignal<'reactions' | 'details' | null>(null)
  const { busy, error, run } = useAction()
  const react = (emoji: string) => {
    opened.value = null
    void run(() => sendReaction(message, emoji))
  }
  const mayReact = props.onReply !== null && message.packetId !== 0
  return (
    <article class={`message ${message.direction} ${props.isContinued ? 'continued' : ''}`} tabIndex={-1}>
      {!props.isContinued && <From message={message} where={props.where} />}
      {message.replyId !== null && <Quote {...props} />}
      <p class="pre">
        <bdi>
          <Marked text={message.text} hit={props.hit ?? ''} />
        </bdi>
      </p>
      <Reactions reactions={reactions} onReact={mayReact && !busy.value ? react : null} />
      <footer>
        <About message={message} />
        <span class="message-actions">
          {props.hit !== null && (
            <a class="button small" href={placeOf(message)}>
              {t.messages.inContext}
            </a>
          )}
          {props.onSent !== null && mayBeSentAgain(message) && (
            <SendAgain message={message} onSent={props.onSent} run={run} isBusy={busy.value} />
          )}
          {mayReact && (
            <>
              <ActionButton name={t.messages.reply} icon="reply" onClick={() => props.onReply?.()} />
              <ActionButton
                name={t.messages.react}
                icon="react"
                isOpen={opened.value === 'reactions'}
                onClick={() => (opened.value = opened.value === 'reactions' ? null : 'reactions')}
              />
            </>
          )}
          {!isAnonymous.value && (
            <ActionButton
              name={t.messages.details}
              icon="info"
              isOpen={opened.value === 'details'}
              onClick={() => (opened.value = opened.value === 'details' ? null : 'details')}
            />
          )}
        </span>
      </footer>
      {message.notice !== undefined && <p class="bad">{t.common.radioSays(message.notice)}</p>}
      {opened.value === 'reactions' && <ReactionPicker onPick={react} onClose={() => (opened.value = null)} />}
      {opened.value === 'details' && (
        <>
          <MessageDetails message={message} />
          <p class="message-link">
            <a href={placeOf(message)}>{t.messages.linkTo}</a>
          </p>
        </>
      )}
      <Failure error={error.value} />
    </article>
  )
}

/** The address of a message within its conversation. */
function placeOf(message: Message): string {
  return href(`/messages?${conversationOf(message)}&message=${message.id}`)
}

/** A text with the search terms marked. As in the search, case does not matter. */
function Marked({ text, hit }: { text: string; hit: string }) {
  if (hit === '') return text
  const parts = text.split(new RegExp(`(${hit.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replaceAll('\n', '|')})`, 'giu'))
  return parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))
}

/** Offers to send a text again that did not arrive. For a text of a rule, the rule decides. */
function mayBeSentAgain({ direction, deliveryState, sentBy }: Message): boolean {
  return direction === 'out' && deliveryState === 'failed' && !sentBy?.startsWith('automation:')
}

type SendAgainProps = { message: Message; onSent(message: Message): void; isBusy: boolean; run: Action['run'] }

function SendAgain({ message, onSent, run, isBusy }: SendAgainProps) {
  const key = useRef('')
  const again = () =>
    run(async () => {
      // With the same key, a repetition after a lost answer is sent once.
      if (key.current === '') key.current = newKey()
      onSent(await sendText(textOf(message), key.current))
      key.current = ''
      say(t.messages.sentAgain)
    })
  return (
    <button type="button" class="button small" disabled={isBusy} onClick={() => void again()}>
      {t.messages.sendAgain}
    </button>
  )
}

function textOf({ text, channel, toNodeNum, toNodeId, replyId }: Message): NewText {
  const isDirect = toNodeNum !== BROADCAST
  return {
    text,
    channel: isDirect ? 0 : channel,
    ...(isDirect && { to: toNodeId }),
    ...(replyId !== null && { replyId }),
  }
}

function From({ message, where }: { message: Message; where: string | null }) {
  const { fromNodeNum, fromNodeId, pkiEncrypted, keyDoubt, sentBy } = message
  const name = nameOf(fromNodeNum, fromNodeId)
  return (
    <header>
      {can('nodes', 'read') ? <a href={href(`/nodes/${fromNodeId}`)}>{name}</a> : <strong>{name}</strong>}
      {where !== null && <span class="faint">{where}</span>}
      {sentBy !== null && <span class="faint">{t.messages.sentBy(sentBy)}</span>}
      {pkiEncrypted && keyDoubt === null && <Mark icon="lock" words={t.messages.encrypted} />}
    </header>
  )
}

function Quote({ repliedTo, onJump, mayBeOlder }: Pick<Props, 'repliedTo' | 'onJump' | 'mayBeOlder'>) {
  if (repliedTo === undefined) {
    return (
      <blockquote class="faint">
        {mayBeOlder ? (
          <button type="button" class="quote" onClick={onJump}>
            {t.messages.replyToOlder}
          </button>
        ) : (
          t.messages.replyToGone
        )}
      </blockquote>
    )
  }
  const { fromNodeNum, fromNodeId, text } = repliedTo
  return (
    <blockquote>
      <button type="button" class="quote" onClick={onJump} title={t.messages.jump}>
        <strong>{nameOf(fromNodeNum, fromNodeId)}</strong> <bdi>{text}</bdi>
      </button>
    </blockquote>
  )
}

/** The time, and the delivery state or path, in a few words. */
function About({ message }: { message: Message }) {
  const { timestamp, direction, hopsAway, rxSnr, viaMqtt, signed, conflicting, keyDoubt, replyId } = message
  const arrival = [
    viaMqtt ? t.nodes.mqtt : null,
    hopsAway === null ? null : t.nodes.hopsAway(hopsAway),
    rxSnr === null || hopsAway !== 0 ? null : `${decimal(rxSnr, 2)} dB`,
  ].filter((part) => part !== null)
  return (
    <span class="message-about">
      <time dateTime={new Date(timestamp).toISOString()} title={dateTime(timestamp)}>
        {clock(timestamp)}
      </time>
      {signed && (
        <Mark icon="shield" words={replyId === null ? t.messages.signed : t.messages.signedText} tone="good" />
      )}
      {keyDoubt !== null && <Mark icon="warning" words={t.messages.keyDoubts[keyDoubt]} tone="bad" />}
      {conflicting && <Mark icon="warning" words={t.messages.conflicting} tone="bad" />}
      {direction === 'out' ? <Delivery message={message} /> : <span>{arrival.join(' · ')}</span>}
    </span>
  )
}

const DELIVERY_ICONS = {
  waiting: 'clock',
  taken: 'clock',
  queued: 'clock',
  sent: 'check',
  relayed: 'checks',
  delivered: 'checks',
  failed: 'warning',
  unknown: 'clock',
} as const satisfies Record<NonNullable<Message['deliveryState']>, IconName>

/** Errors of packets that no radio ever had. */
const NOT_SENT: ReadonlySet<string | null> = new Set(['NOT_SENT', 'EXPIRED', 'REFUSED'])

function stateName({ deliveryState, routingError }: Message): string {
  const state = deliveryState ?? 'unknown'
  if (state === 'failed' && NOT_SENT.has(routingError)) return t.messages.notSent
  return state === 'unknown' && routingError !== null ? t.messages.unsure : t.messages.state[state]
}

function Delivery({ message }: { message: Message }) {
  const state = message.deliveryState ?? 'unknown'
  return (
    <span class={`delivery ${state}`}>
      <Icon name={DELIVERY_ICONS[state]} />
      {stateName(message)}
    </span>
  )
}

function ActionButton(props: { name: string; icon: IconName; isOpen?: boolean; onClick(): void }) {
  return (
    <button
      type="button"
      class="message-action"
      aria-label={props.name}
      title={props.name}
      aria-expanded={props.isOpen}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  )
}
