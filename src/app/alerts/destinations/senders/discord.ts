import type { SettingsOf } from '../settings.ts'
import { bodyText, type ToldMessage, withoutMentions } from '../../outbox/told-message.ts'
import { json, type Sending } from './sending.ts'

const escaped = (text: string) => text.replaceAll(/[\\*_~`|>#[\]()<]/gu, String.raw`\$&`)

/** discord.com/developers/docs/resources/webhook: at most 2000 characters; nobody is mentioned. */
export function toDiscord({ url }: SettingsOf<'discord'>, message: ToldMessage): Sending {
  // An escape takes two characters.
  const text = escaped(bodyText({ ...message, url: null }, 850))
  const content = [
    `**${escaped(withoutMentions(message.title))}**`,
    text,
    ...(message.url === null ? [] : [message.url]),
  ]
  return json(url, { content: content.join('\n').slice(0, 2000), allowed_mentions: { parse: [] }, flags: 4 })
}
