import type { SettingsOf } from '../settings.ts'
import { bodyText, inCodePoints, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** gotify.net/docs/pushmsg and gotify.net/docs/msgextras */
export function toGotify({ server, token }: SettingsOf<'gotify'>, message: ToldMessage): Sending {
  const { told, title, url } = message
  const click = url === null ? {} : { 'client::notification': { click: { url } } }
  const body = {
    title: withoutMentions(title),
    message: bodyText(message, 4000, inCodePoints),
    priority: told === 'resolved' ? 2 : 5,
    extras: { 'client::display': { contentType: 'text/plain' }, ...click },
  }
  return json(`${server}/message`, body, { 'x-gotify-key': token })
}
