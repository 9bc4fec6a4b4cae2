import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** github.com/caronc/apprise-api, *Persistent Storage Solution*: `/notify/{key}`. */
export function toApprise({ url }: SettingsOf<'apprise'>, message: ToldMessage): Sending {
  const type = message.told === 'resolved' ? 'success' : message.told === 'fired' ? 'warning' : 'info'
  return json(url, { title: withoutMentions(message.title), body: bodyText(message, 4000), type, format: 'text' })
}
