import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** docs.ntfy.sh/publish, *Publish as JSON*: a message has at most 4096 bytes. */
export function toNtfy({ server, topic, token }: SettingsOf<'ntfy'>, message: ToldMessage): Sending {
  const { url, title, told } = message
  const body = {
    topic,
    title: withoutMentions(title),
    message: bodyText({ ...message, url: null }, 1000),
    priority: told === 'fired' || told === 'repeated' ? 4 : 3,
    tags: [told === 'resolved' ? 'white_check_mark' : 'satellite'],
    ...(url === null ? {} : { click: url }),
  }
  return json(`${server}/`, body, token === undefined ? {} : { authorization: `Bearer ${token}` })
}
