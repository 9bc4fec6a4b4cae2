import type { SettingsOf } from '../settings.ts'
import { bodyText, inCodePoints, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** github.com/caronc/apprise-api, *Persistent Storage Solution*: `/notify/{key}`. Apprise itself knows how much its services take. */
export function toApprise({ url }: SettingsOf<'apprise'>, message: ToldMessage): Sending {
  const type = message.told === 'resolved' ? 'success' : message.told === 'fired' ? 'warning' : 'info'
  const body = bodyText(message, 4000, inCodePoints)
  return json(url, { title: withoutMentions(message.title), body, type, format: 'text' })
}
