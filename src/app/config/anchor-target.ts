import * as z from 'zod'
import { parseHostPort } from './host-port.ts'
import { isPrivateUrl } from './secure-url.ts'

/** The default ports: RFC 5426 and 5425; for TCP that of the BSD syslog, as RFC 6587 has none. */
const SYSLOG_PORTS = { udp: 514, tcp: 514, tls: 6514 } as const
const SYSLOG = /^syslog\+(udp|tcp|tls):\/\/([^\s/?#@]+)\/?$/

export type SyslogTarget = {
  readonly kind: 'syslog'
  readonly transport: keyof typeof SYSLOG_PORTS
  readonly host: string
  readonly port: number
}

/** Where the audit log is anchored. */
export type AnchorTarget =
  | { readonly kind: 'webhook'; readonly url: string }
  | SyslogTarget
  | { readonly kind: 'mail'; readonly address: string }

/** The value of AUDIT_ANCHOR_URL; null: invalid. */
export function parseAnchorTarget(text: string): AnchorTarget | null {
  if (text.length > 2048) return null
  if (/^https?:/.test(text)) return isPrivateUrl(text) && !/[#\s]/.test(text) ? { kind: 'webhook', url: text } : null
  if (text.startsWith('mailto:')) {
    const address = z.email().max(254).safeParse(text.slice('mailto:'.length))
    return address.success ? { kind: 'mail', address: address.data } : null
  }
  const [, transport, at = ''] = SYSLOG.exec(text) ?? []
  if (transport !== 'udp' && transport !== 'tcp' && transport !== 'tls') return null
  const found = parseHostPort(/:\d+$/.test(at) && !/^[^[]*:.*:/.test(at) ? at : `${at}:${SYSLOG_PORTS[transport]}`)
  return found === null ? null : { kind: 'syslog', transport, ...found }
}
