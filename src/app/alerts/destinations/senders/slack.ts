import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** docs.slack.dev, *Escaping text*: these three characters make mentions and links. */
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** docs.slack.dev, *Sending messages using incoming webhooks*. */
export function toSlack({ url }: SettingsOf<'slack'>, message: ToldMessage): Sending {
  return json(url, { text: escaped(`${withoutMentions(message.title)}\n${bodyText(message, 2500)}`), mrkdwn: false })
}
