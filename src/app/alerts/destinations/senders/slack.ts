import * as z from 'zod'
import { bodyText, type AlertNotification, withoutMentions } from '../../notification.ts'
import { address } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const slackSettings = z.strictObject({ url: address })

/** A longer text becomes several messages. */
const MAX_LENGTH = 4000

/** docs.slack.dev, *Escaping text*: these three characters make mentions and links. */
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** docs.slack.dev, *Sending messages using incoming webhooks*. */
export function toSlack({ url }: z.output<typeof slackSettings>, message: AlertNotification): Sending {
  const head = escaped(`${withoutMentions(message.title)}\n`)
  const text = head + escaped(bodyText(message, MAX_LENGTH - head.length, (part) => escaped(part).length))
  return json(url, { text, mrkdwn: false, unfurl_links: false, unfurl_media: false })
}
