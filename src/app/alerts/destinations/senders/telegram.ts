import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

/** core.telegram.org/bots/api#sendmessage: at most 4096 characters; without a parse mode the text is plain. */
export function toTelegram({ server, token, chat }: SettingsOf<'telegram'>, message: ToldMessage): Sending {
  const text = `${withoutMentions(message.title)}\n${bodyText(message, 3500)}`
  return json(`${server}/bot${token}/sendMessage`, { chat_id: chat, text, link_preview_options: { is_disabled: true } })
}
