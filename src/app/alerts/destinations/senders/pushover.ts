import * as z from 'zod'
import { bodyText, inCodePoints, type AlertNotification, withoutMentions } from '../../notification.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const pushoverSettings = z.strictObject({
  user: z.string().regex(/^[A-Za-z0-9]{20,40}$/),
  token: z.string().regex(/^[A-Za-z0-9]{20,40}$/),
})

/** pushover.net/api: a message has at most 1024 characters, a title 250, a URL 512. */
export function toPushover({ user, token }: z.output<typeof pushoverSettings>, message: AlertNotification): Sending {
  const { text, url, title } = message
  const link = url === null || url.length > 512 ? {} : { url }
  return json('https://api.pushover.net/1/messages.json', {
    token,
    user,
    title: withoutMentions(title),
    message: bodyText({ text, url: null }, 1024, inCodePoints),
    ...link,
  })
}
