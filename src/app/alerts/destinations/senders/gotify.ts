import * as z from 'zod'
import { bodyText, inCodePoints, type AlertNotification, withoutMentions } from '../../notification.ts'
import { server, text } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const gotifySettings = z.strictObject({ server, token: text(200) })

/** gotify.net/docs/pushmsg and gotify.net/docs/msgextras */
export function toGotify({ server, token }: z.output<typeof gotifySettings>, message: AlertNotification): Sending {
  const { notification, title, url } = message
  const click = url === null ? {} : { 'client::notification': { click: { url } } }
  const body = {
    title: withoutMentions(title),
    message: bodyText(message, 4000, inCodePoints),
    priority: notification === 'resolved' ? 2 : 5,
    extras: { 'client::display': { contentType: 'text/plain' }, ...click },
  }
  return json(`${server}/message`, body, { 'x-gotify-key': token })
}
