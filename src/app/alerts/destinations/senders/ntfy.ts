import type { SettingsOf } from '../settings.ts'
import { bodyText, inUtf8, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** docs.ntfy.sh/publish, *Publish as JSON*: a message has at most 4096 bytes, or it becomes a file. */
export function toNtfy({ server, topic, token }: SettingsOf<'ntfy'>, message: ToldMessage): Sending {
  const { text, url, title, told } = message
  const body = {
    topic,
    title: withoutMentions(title),
    message: bodyText({ text, url: null }, 4096, inUtf8),
    priority: told === 'fired' || told === 'repeated' ? 4 : 3,
    tags: [told === 'resolved' ? 'white_check_mark' : 'satellite'],
    ...(url === null ? {} : { click: url }),
  }
  return json(`${server}/`, body, token === undefined ? {} : { authorization: `Bearer ${token}` })
}
