import { api, askAs } from '../../api.ts'
import { Age } from '../../parts/age.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Card } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { awaitedName, BROADCAST, type Message, type MessagePage } from '../../state/mesh/nodes.ts'
import { type Channels, useChannels } from '../../state/messages/channels.ts'
import { conversationOf, inbox } from '../../state/messages/inbox.ts'
import { isAnonymous } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'

const SHOWN = 5
/** Some of them may be reactions. */
const LOADED = 30
const POLL_MS = 20_000

/** The latest texts, each with its sender and where it was said. */
export function LatestMessages() {
  return isAnonymous.value ? <Shown /> : <Texts messages={inbox.value} />
}

/** People without an account have no inbox. */
function Shown() {
  const load = () => askAs<MessagePage>(api.messages.$get({ query: { limit: String(LOADED) } }))
  const { data } = useLoad(load, [], POLL_MS, ['message'])
  return <Texts messages={data.value?.messages ?? null} />
}

function Texts({ messages }: { messages: readonly Message[] | null }) {
  const channels = useChannels()
  const texts = messages?.filter(({ emoji }) => !emoji)
  const steady = useSteady('texts', texts ?? [], idOf)
  return (
    <Card
      title={t.dashboard.recentMessages}
      actions={
        <a class="button small" href={href('/messages')}>
          {t.dashboard.allMessages}
        </a>
      }
    >
      {texts?.length === 0 && <p class="faint">{t.messages.none}</p>}
      <SteadyList steady={steady}>
        <ul class={texts === undefined ? 'rows-awaited' : 'rows tight'}>
          {steady.rows.slice(0, SHOWN).map((message) => (
            <TextRow message={message} channels={channels} key={message.id} />
          ))}
        </ul>
      </SteadyList>
    </Card>
  )
}

const idOf = ({ id }: Message) => id

function TextRow({ message, channels }: { message: Message; channels: Channels }) {
  const { fromNodeNum, fromNodeId, timestamp, text } = message
  const sender = awaitedName(fromNodeNum, fromNodeId)
  const where = whereOf(message, channels)
  return (
    <li>
      <div class="grow">
        <div class="faint">
          {sender === null ? <Awaited /> : <bdi>{sender}</bdi>}
          {' · '}
          <a href={href(`/messages?${conversationOf(message)}`)}>{where === null ? <Awaited /> : where}</a>
          {' · '}
          <Age at={timestamp} />
        </div>
        <div class="pre short">
          <bdi>{text}</bdi>
        </div>
      </div>
    </li>
  )
}

/** The place of a name that will be known in a moment. */
function Awaited() {
  return (
    <span class="awaited-name" role="img" aria-label={t.common.loading}>
      {'\u2007'.repeat(12)}
    </span>
  )
}

/** Null: the name is loading. */
function whereOf({ toNodeNum, toNodeId, channel }: Message, channels: Channels): string | null {
  if (toNodeNum === BROADCAST) return t.dashboard.onChannel(channels.name(channel))
  const recipient = awaitedName(toNodeNum, toNodeId)
  return recipient === null ? null : t.dashboard.directTo(recipient)
}
