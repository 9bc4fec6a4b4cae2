import type { SettingsOf } from '../settings.ts'
import { bodyText, inUtf16, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** Counted in UTF-16, as its entities are. */
const MOST = 4096

/** core.telegram.org/bots/api#sendmessage: at most 4096 characters; without a parse mode the text is plain. */
export function toTelegram({ server, token, chat }: SettingsOf<'telegram'>, message: ToldMessage): Sending {
  const head = `${withoutMentions(message.title)}\n`
  const text = head + bodyText(message, MOST - head.length, inUtf16)
  return json(`${server}/bot${token}/sendMessage`, { chat_id: chat, text, link_preview_options: { is_disabled: true } })
}
