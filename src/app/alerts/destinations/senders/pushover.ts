import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** pushover.net/api: a message has at most 1024 characters, a title 250. */
export function toPushover({ user, token }: SettingsOf<'pushover'>, message: ToldMessage): Sending {
  const { url, title } = message
  const text = bodyText({ ...message, url: null }, 1000)
  const link = url === null ? {} : { url: url.slice(0, 512) }
  return json('https://api.pushover.net/1/messages.json', {
    token,
    user,
    title: withoutMentions(title),
    message: text,
    ...link,
  })
}
