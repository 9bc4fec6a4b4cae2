import type { SettingsOf } from '../settings.ts'
import { bodyText, inUtf8, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** An event has at most 65,536 bytes, with signatures and what JSON escapes. */
const MOST = 16_000

/** spec.matrix.org, *Sending events to a room*: the transaction id makes a repeat the same message. */
export function toMatrix({ server, room, token }: SettingsOf<'matrix'>, message: ToldMessage): Sending {
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.room.message/${message.uid}`
  const body = `${withoutMentions(message.title)}\n${bodyText(message, MOST, inUtf8)}`
  const sending = json(
    server + path,
    { msgtype: 'm.text', body, 'm.mentions': {} },
    { authorization: `Bearer ${token}` },
  )
  return { ...sending, method: 'PUT' }
}
