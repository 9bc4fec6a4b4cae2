import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { type Channels, useChannels } from '../../state/messages/channels.ts'
import { isSearch, useConversation, type Wanted } from '../../state/messages/conversation.ts'
import { isInRadio, type Message, nameOfId, useNames } from '../../state/mesh/nodes.ts'
import { maySend } from '../../state/mesh/links.ts'
import { muted, setMuted } from '../../state/messages/inbox.ts'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { PrintAll } from '../../parts/list/whole-list.tsx'
import { MessageSearch } from './message-search.tsx'
import { SearchFilters } from './search-filters.tsx'
import './messages.css'
import { href, place, queryNode } from '../../router.ts'
import { readRange } from '../../state/range.ts'
import { can, isAnonymous } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { Composer, type Obstacle } from './composer.tsx'
import { Conversations } from './conversations.tsx'
import { MessageLog } from './log.tsx'
import { MAX_SEARCH } from '../../../shared/limits.ts'

/** Channels and direct conversations, and the one that is open. */
export function MessagesPage() {
  useNames()
  const { query } = place.value
  const wanted = wantedBy(query)
  const channels = useChannels()
  const rest: Rest = { isLeft: useSignal(false), loadNext: useRef(async () => false) }
  const title = wanted.partner === null ? channelTitle(wanted, channels) : nameOfId(wanted.partner)
  return (
    <Page
      title={t.messages.title}
      actions={rest.isLeft.value ? <PrintAll loadNext={() => rest.loadNext.current()} /> : undefined}
      fill
    >
      <div class="chat">
        <Conversations wanted={wanted} channels={channels} />
        <section class="chat-pane" aria-label={title}>
          <header class="chat-head">
            <h2 class="clip" dir="auto" title={title}>
              {wanted.partner !== null && can('nodes', 'read') ? (
                <a href={href(`/nodes/${wanted.partner}`)}>{title}</a>
              ) : (
                title
              )}
            </h2>
            {!isAnonymous.value && (
              <>
                {wanted.channel !== null && <Mute conversation={`channel=${wanted.channel}`} />}
                <MessageSearch channels={channels} />
                <SearchFilters wanted={wanted} />
              </>
            )}
          </header>
          <OpenConversation wanted={wanted} channels={channels} rest={rest} key={JSON.stringify(wanted)} />
        </section>
      </div>
    </Page>
  )
}

/** Whether new messages here are counted. */
function Mute({ conversation }: { conversation: string }) {
  const isMuted = muted.value.has(conversation)
  return (
    <button
      type="button"
      class="button small mute"
      aria-label={isMuted ? t.messages.unmute : t.messages.mute}
      title={t.messages.muteHelp}
      onClick={() => setMuted(conversation, !isMuted)}
    >
      <Icon name={isMuted ? 'muted' : 'bell'} />
      <span class="mute-name">{isMuted ? t.messages.unmute : t.messages.mute}</span>
    </button>
  )
}

/** The highest number of a channel, whether a radio's channel index or heard through MQTT. */
const MAX_CHANNEL = 256 + 4096 * 256 - 1

/** The conversation in the address; invalid ones are ignored. */
function wantedBy(query: URLSearchParams): Wanted {
  const asked = query.get('channel')
  const channel = asked !== null && /^\d{1,7}$/.test(asked) && Number(asked) <= MAX_CHANNEL ? asked : null
  // People without an account have no search.
  if (isAnonymous.value) return { channel, partner: null, q: '', from: null, range: null }
  return {
    channel,
    partner: queryNode(query, 'with'),
    q: query.get('q')?.trim().slice(0, MAX_SEARCH) ?? '',
    from: queryNode(query, 'node') ?? queryNode(query, 'from'),
    range: readRange(query, null).range,
  }
}

function channelTitle({ channel }: Wanted, channels: Channels): string {
  return channel === null ? t.messages.all : channels.name(Number(channel))
}

function mayWrite(): boolean {
  return can('messages', 'write') && maySend('texts')
}

/** Why nothing can be written here; null: it can. */
function obstacleOf({ channel, partner }: Wanted, channels: Channels): Obstacle {
  if (!can('messages', 'write')) return 'readOnly'
  if (!maySend('texts')) return 'noCollector'
  if (partner !== null || channel === null || channels.isOn(Number(channel))) return null
  return isInRadio(Number(channel)) ? 'channelOff' : 'channelElsewhere'
}

/** Texts of the open conversation that are not loaded yet. Printing is offered where no text moves its button away. */
type Rest = { readonly isLeft: Signal<boolean>; readonly loadNext: { current(): Promise<boolean> } }

function OpenConversation({ wanted, channels, rest }: { wanted: Wanted; channels: Channels; rest: Rest }) {
  const conversation = useConversation(wanted)
  useLayoutEffect(() => {
    rest.isLeft.value = conversation.hasOlder
    rest.loadNext.current = conversation.loadNext
  })
  const replyTo = useSignal<Message | null>(null)
  const sentId = useSignal(0)
  const obstacle = obstacleOf(wanted, channels)
  return (
    <>
      <Failure error={conversation.error} retry={conversation.reload} />
      {conversation.problem !== null && (
        <p class="notice" role="alert">
          {conversation.problem}
        </p>
      )}
      <MessageLog
        wanted={wanted}
        conversation={conversation}
        channels={channels}
        onReply={mayWrite() ? (message) => (replyTo.value = message) : null}
        onSent={mayWrite() && !isSearch(wanted) ? conversation.add : null}
        sentId={sentId.value}
      />
      <Composer
        channel={wanted.channel === null ? 0 : Number(wanted.channel)}
        partner={wanted.partner}
        replyTo={replyTo}
        obstacle={obstacle}
        channels={channels}
        onSent={(message) => {
          conversation.add(message)
          sentId.value = message.id
        }}
      />
    </>
  )
}
