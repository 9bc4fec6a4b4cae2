import { SendFailure } from '../../base/outgoing/ports.ts'
import { json } from '../../base/outgoing/request.ts'
import { signWebhook } from '../../base/outgoing/signature.ts'
import { sha256Hex } from '../../base/crypto.ts'
import type { Ports } from '../../base/context.ts'
import { type AnchorItem, textOf } from './line.ts'
import { syslogMessage } from './syslog.ts'
import type { AnchorTarget } from '../../config/anchor-target.ts'

export type DeliveryNeeds = Pick<Ports, 'config' | 'outbound' | 'mail' | 'syslog' | 'now'>

/** Delivers all items, or throws `SendFailure`. Some may have arrived even then. */
export async function deliverItems(
  needs: DeliveryNeeds,
  target: AnchorTarget,
  items: readonly AnchorItem[],
): Promise<void> {
  const texts = items.map(textOf)
  const id = `msg_${sha256Hex(texts.join('\n')).slice(0, 32)}`
  switch (target.kind) {
    case 'webhook':
      return toWebhook(needs, target.url, { id, items })
    case 'syslog': {
      if (needs.syslog === null) throw new SendFailure('this runtime cannot reach a syslog server')
      const { PUBLIC_URL } = needs.config
      const host = PUBLIC_URL === null ? null : new URL(PUBLIC_URL).hostname
      return needs.syslog.send(
        target,
        items.map((item) => syslogMessage(item, host)),
      )
    }
    case 'mail': {
      if (needs.mail === null) throw new SendFailure('SMTP_URL is not set, or this runtime cannot send e-mail')
      const subject = `Audit log of ${needs.config.PUBLIC_URL ?? 'the mesh monitoring service'}: ${describe(items)}`
      return needs.mail.send({ to: target.address, subject, text: `${texts.join('\n')}\n`, id })
    }
  }
}

function describe(items: readonly AnchorItem[]): string {
  const entries = items.filter(({ kind }) => kind === 'entry').length
  if (entries === 0) return 'anchor'
  const counted = entries === 1 ? '1 entry' : `${entries} entries`
  return entries < items.length ? `anchor and ${counted}` : counted
}

async function toWebhook(
  { config, outbound, now }: DeliveryNeeds,
  url: string,
  { id, items }: { readonly id: string; readonly items: readonly AnchorItem[] },
): Promise<void> {
  if (outbound === null) throw new SendFailure('this runtime cannot send requests')
  const at = now()
  const body = JSON.stringify({
    type: 'audit.anchored',
    timestamp: new Date(at).toISOString(),
    data: { items: items.map(shown) },
  })
  const headers = await signWebhook(config.AUDIT_ANCHOR_SECRET, { id, at, body })
  // The operator chose the target by an environment variable, so it may be private.
  const { status } = await outbound.send({ ...json(url, body, headers), mayBePrivate: true })
  if (status < 200 || status > 299) throw new SendFailure(`answered ${status}`)
}

function shown(item: AnchorItem): object {
  const line = textOf(item)
  if (item.kind === 'entry') return { type: 'entry', entry: JSON.parse(line) }
  const { time, id, hash } = item.anchor
  return { type: 'anchor', line, time: new Date(time).toISOString(), id, hash }
}
