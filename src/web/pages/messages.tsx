import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useConversation, type Wanted } from '../conversation.ts'
import { type Message, nameOfId, useNodes } from '../mesh.ts'
import { SearchBox } from '../parts/field.tsx'
import { Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { href, place, setQuery } from '../router.ts'
import { can, has } from '../session.ts'
import { t } from '../strings.ts'
import { Composer } from './composer.tsx'
import { type Channels, Conversations, useChannels } from './conversations.tsx'
import { MessageLog } from './message-log.tsx'

const PAUSE_MS = 250

/** Channels and direct conversations, and the one that is open. */
export function MessagesPage() {
  useNodes()
  const { query } = place.value
  const wanted: Wanted = {
    channel: query.get('channel'),
    partner: query.get('with'),
    q: query.get('q')?.trim() ?? '',
  }
  const channels = useChannels()
  const title = wanted.partner === null ? channelTitle(wanted, channels) : nameOfId(wanted.partner)
  return (
    <Page title={t.messages.title} fill>
      <div class="chat">
        <Conversations wanted={wanted} channels={channels} />
        <section class="chat-pane" aria-label={title}>
          <header class="chat-head">
            <h2 class="clip">
              {wanted.partner !== null && can('nodes', 'read') ? (
                <a href={href(`/nodes/${wanted.partner}`)}>{title}</a>
              ) : (
                title
              )}
            </h2>
            <Search q={wanted.q} />
          </header>
          <OpenConversation wanted={wanted} channels={channels} key={JSON.stringify(wanted)} />
        </section>
      </div>
    </Page>
  )
}

function channelTitle({ channel }: Wanted, channels: Channels): string {
  return channel === null ? t.messages.all : channels.name(Number(channel))
}

function OpenConversation({ wanted, channels }: { wanted: Wanted; channels: Channels }) {
  const conversation = useConversation(wanted)
  const replyTo = useSignal<Message | null>(null)
  const mayWrite = can('messages', 'write') && has('radio')
  return (
    <>
      <Failure error={conversation.error} retry={conversation.reload} />
      <MessageLog
        wanted={wanted}
        conversation={conversation}
        channels={channels}
        onReply={mayWrite ? (message) => (replyTo.value = message) : null}
      />
      <Composer
        channel={wanted.channel === null ? 0 : Number(wanted.channel)}
        partner={wanted.partner}
        replyTo={replyTo}
        mayWrite={mayWrite}
        channels={channels}
        onSent={conversation.add}
      />
    </>
  )
}

function Search({ q }: { q: string }) {
  const typed = useSignal(q)
  useEffect(() => {
    const timer = setTimeout(() => {
      if (typed.value.trim() !== q) setQuery({ q: typed.value.trim() })
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [typed.value])
  // Another conversation begins without the text that was looked for in the last one.
  useEffect(() => {
    if (q === '') typed.value = ''
  }, [q])
  return (
    <SearchBox
      label={t.messages.searchLabel}
      hint={t.messages.searchHint}
      value={typed.value}
      onInput={(text) => (typed.value = text)}
    />
  )
}
