import * as z from 'zod'
import { bodyText, inUtf16, type AlertNotification, withoutMentions } from '../../notification.ts'
import { server } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const telegramSettings = z.strictObject({
  token: z.string().regex(/^\d{1,20}:[\w-]{10,100}$/, 'the token of a bot'),
  chat: z.string().regex(/^(?:-?\d{1,20}|@\w{1,64})$/, 'the id of a chat, or @name'),
  server: server.default('https://api.telegram.org'),
})

/** Counted in UTF-16, as its entities are. */
const MAX_LENGTH = 4096

/** core.telegram.org/bots/api#sendmessage: at most 4096 characters; without a parse mode the text is plain. */
export function toTelegram(
  { server, token, chat }: z.output<typeof telegramSettings>,
  message: AlertNotification,
): Sending {
  const head = `${withoutMentions(message.title)}\n`
  const text = head + bodyText(message, MAX_LENGTH - head.length, inUtf16)
  return json(`${server}/bot${token}/sendMessage`, { chat_id: chat, text, link_preview_options: { is_disabled: true } })
}
