import * as z from 'zod'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import type { NotifiedAlert, AlertNotification } from '../../notification.ts'
import { address } from './fields.ts'
import { json, type Sending } from '../../../base/outgoing/request.ts'
import { signWebhook, webhookSecret } from '../../../base/outgoing/signature.ts'

export const webhookSettings = z.strictObject({ url: address, secret: webhookSecret.optional() })

/** JSON, signed as standardwebhooks.com asks for: `webhook-id`, `webhook-timestamp`, `webhook-signature`. */
export async function toWebhook(
  { url, secret }: z.output<typeof webhookSettings>,
  message: AlertNotification,
): Promise<Sending> {
  const { uid, notification, at, title, text, rule, alerts, total } = message
  const body = JSON.stringify({
    type: `alert.${notification}`,
    timestamp: new Date(at).toISOString(),
    data: { title, text, url: message.url, rule, alerts: alerts.map(shown), total },
  })
  return json(url, body, await signWebhook(secret ?? null, { id: uid, at, body }))
}

function shown({ nodeNum, ...alert }: NotifiedAlert) {
  return { ...alert, nodeNum, nodeId: nodeNum === null ? null : formatNodeId(nodeNum) }
}
