import * as z from 'zod'
import { bodyText, inUtf8, type AlertNotification, withoutMentions } from '../../notification.ts'
import { server, text } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const matrixSettings = z.strictObject({
  server,
  room: z
    .string()
    .max(255)
    .regex(/^![\x21-\x7e]+$/, 'the id of a room, such as !abc:example.org'),
  token: text(1000),
})

/** An event has at most 65,536 bytes, including signatures and JSON escapes. */
const MAX_LENGTH = 16_000

/** spec.matrix.org, *Sending events to a room*: the transaction id makes a repeat the same message. */
export function toMatrix(
  { server, room, token }: z.output<typeof matrixSettings>,
  message: AlertNotification,
): Sending {
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.room.message/${message.uid}`
  const body = `${withoutMentions(message.title)}\n${bodyText(message, MAX_LENGTH, inUtf8)}`
  const sending = json(
    server + path,
    { msgtype: 'm.text', body, 'm.mentions': {} },
    { authorization: `Bearer ${token}` },
  )
  return { ...sending, method: 'PUT' }
}
