import * as z from 'zod'
import type { DestinationKind } from '../../../shared/alerts/destination-kinds.ts'
import type { AlertNotification } from '../notification.ts'
import { type PushNeeds, readPushIdentity } from './push-keys.ts'
import { appriseSettings, toApprise } from './senders/apprise.ts'
import { discordSettings, toDiscord } from './senders/discord.ts'
import { gotifySettings, toGotify } from './senders/gotify.ts'
import { matrixSettings, toMatrix } from './senders/matrix.ts'
import { ntfySettings, toNtfy } from './senders/ntfy.ts'
import { pushoverSettings, toPushover } from './senders/pushover.ts'
import { slackSettings, toSlack } from './senders/slack.ts'
import { telegramSettings, toTelegram } from './senders/telegram.ts'
import { webPushSettings, toWebPush } from './senders/web-push.ts'
import { webhookSettings, toWebhook } from './senders/webhook.ts'
import type { Sending } from '../../base/outgoing/request.ts'

/** Builds the request that delivers a message, from stored settings. */
type Request = (stored: unknown, message: AlertNotification, needs: PushNeeds) => Sending | Promise<Sending>

type Kind = {
  /** A destination as it is stored. */
  readonly settings: z.ZodType<object>
  readonly request: Request
}

const kind = <S extends object>(
  settings: z.ZodType<S>,
  request: (settings: S, message: AlertNotification, needs: PushNeeds) => Sending | Promise<Sending>,
): Kind => ({ settings, request: (stored, message, needs) => request(settings.parse(stored), message, needs) })

/** A destination by e-mail, which is delivered by a mail server and not by a request. */
export const emailSettings = z.strictObject({ address: z.email().max(254) })

export const KINDS: { readonly [K in DestinationKind]: K extends 'email' ? Pick<Kind, 'settings'> : Kind } = {
  web_push: kind(webPushSettings, async (settings, message, needs) =>
    toWebPush(settings, message, await readPushIdentity(needs)),
  ),
  email: { settings: emailSettings },
  webhook: kind(webhookSettings, toWebhook),
  ntfy: kind(ntfySettings, toNtfy),
  gotify: kind(gotifySettings, toGotify),
  discord: kind(discordSettings, toDiscord),
  slack: kind(slackSettings, toSlack),
  telegram: kind(telegramSettings, toTelegram),
  matrix: kind(matrixSettings, toMatrix),
  pushover: kind(pushoverSettings, toPushover),
  apprise: kind(appriseSettings, toApprise),
}
