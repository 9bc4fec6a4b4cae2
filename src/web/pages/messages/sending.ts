import type { InferRequestType } from 'hono/client'
import { api, ask } from '../../api.ts'
import type { Message } from '../../state/mesh/nodes.ts'

export type NewText = InferRequestType<typeof api.messages.$post>['json']

/** Sends a text; repeated with the same key, it is sent once. Throws `ApiError`. */
export async function sendText(json: NewText, key: string): Promise<Message> {
  const { message } = await ask(api.messages.$post({ json }, { headers: { 'Idempotency-Key': key } }))
  return message
}

export function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}
