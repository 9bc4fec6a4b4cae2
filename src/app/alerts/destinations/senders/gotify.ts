import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** gotify.net/docs/pushmsg */
export function toGotify({ server, token }: SettingsOf<'gotify'>, message: ToldMessage): Sending {
  const priority = message.told === 'resolved' ? 2 : 5
  const body = { title: withoutMentions(message.title), message: bodyText(message, 4000), priority }
  return json(`${server}/message`, body, { 'x-gotify-key': token })
}
