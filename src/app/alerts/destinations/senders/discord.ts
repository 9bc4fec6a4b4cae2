import * as z from 'zod'
import { bodyText, type AlertNotification, withoutMentions } from '../../notification.ts'
import { address } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'

export const discordSettings = z.strictObject({
  url: address.refine(
    (value) => /^https:\/\/(?:(?:ptb|canary)\.)?discord(?:app)?\.com\/api\/webhooks\/\d+\/[\w-]+$/.test(value),
    'the URL of a Discord webhook',
  ),
})

const MAX_LENGTH = 2000

const escaped = (text: string) => text.replaceAll(/[\\*_~`|>#[\]()<]/gu, String.raw`\$&`)

/** discord.com/developers/docs/resources/webhook: at most 2000 characters; nobody is mentioned, no link is shown larger. */
export function toDiscord(
  { url }: z.output<typeof discordSettings>,
  { title, text, url: link }: AlertNotification,
): Sending {
  const head = `**${escaped(withoutMentions(title))}**\n`
  const tail = link === null ? '' : `\n${link}`
  const room = MAX_LENGTH - head.length - tail.length
  const content = head + escaped(bodyText({ text, url: null }, room, (part) => escaped(part).length)) + tail
  return json(url, { content, allowed_mentions: { parse: [] }, flags: 4 })
}
