import * as z from 'zod'
import { bodyText, inCodePoints, type AlertNotification, withoutMentions } from '../../notification.ts'
import { address } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const appriseSettings = z.strictObject({ url: address })

/**
 * github.com/caronc/apprise-api, *Persistent Storage Solution*: `/notify/{key}`. Apprise itself knows the limits of its
 * services.
 */
export function toApprise({ url }: z.output<typeof appriseSettings>, message: AlertNotification): Sending {
  const type = message.notification === 'resolved' ? 'success' : message.notification === 'fired' ? 'warning' : 'info'
  const body = bodyText(message, 4000, inCodePoints)
  return json(url, { title: withoutMentions(message.title), body, type, format: 'text' })
}
