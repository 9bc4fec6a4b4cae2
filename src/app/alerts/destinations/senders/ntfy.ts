import * as z from 'zod'
import { bodyText, inUtf8, type AlertNotification, withoutMentions } from '../../notification.ts'
import { server, text } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const ntfySettings = z.strictObject({
  server: server.default('https://ntfy.sh'),
  topic: z.string().regex(/^[-\w]{1,64}$/, '1–64 letters, digits, - and _'),
  token: text(200).optional(),
})

/** docs.ntfy.sh/publish, *Publish as JSON*: a message has at most 4096 bytes, or it becomes a file. */
export function toNtfy({ server, topic, token }: z.output<typeof ntfySettings>, message: AlertNotification): Sending {
  const { text, url, title, notification } = message
  const body = {
    topic,
    title: withoutMentions(title),
    message: bodyText({ text, url: null }, 4096, inUtf8),
    priority: notification === 'fired' || notification === 'repeated' ? 4 : 3,
    tags: [notification === 'resolved' ? 'white_check_mark' : 'satellite'],
    ...(url === null ? {} : { click: url }),
  }
  return json(`${server}/`, body, token === undefined ? {} : { authorization: `Bearer ${token}` })
}
