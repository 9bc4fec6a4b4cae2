import type { OutboundRequest } from './ports.ts'

/** A request in a service's own form. */
export type Sending = Omit<OutboundRequest, 'mayBePrivate'>

/** JSON by POST. */
export function json(url: string, body: object | string, headers: Readonly<Record<string, string>> = {}): Sending {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { url, method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text }
}
