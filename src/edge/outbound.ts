import { type Outbound, type OutboundAnswer, SendFailure } from '../app/base/outgoing/ports.ts'
import { isPublicAddress } from '../app/alerts/destinations/public-address.ts'

const TOTAL_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * Requests to addresses that users typed, by the platform's `fetch`. Non-public addresses in the URL, and names that
 * are never public, are refused; a worker can neither resolve other names nor connect to one address of several.
 * Cloudflare's network reaches no private addresses.
 */
export function fetchOutbound(): Outbound {
  return {
    async send({ url, method, headers, body, mayBePrivate }) {
      if (!mayBePrivate && isPrivateHost(new URL(url).hostname)) {
        throw new SendFailure('only administrators may use private addresses')
      }
      const signal = AbortSignal.timeout(TOTAL_MS)
      try {
        const asked: RequestInit = { method, headers, body, redirect: 'manual', signal }
        const answer = await fetch(url, asked)
        await readBounded(answer)
        return { status: answer.status, retryAfterMs: retryAfterOf(answer) }
      } catch {
        throw new SendFailure(signal.aborted ? 'no answer in time' : 'the connection failed')
      }
    },
  }
}

function isPrivateHost(hostname: string): boolean {
  const plain = hostname.replace(/^\[|\]$/g, '')
  const isAddress = plain.includes(':') || /^[\d.]+$/.test(plain)
  return isAddress ? !isPublicAddress(plain) : /(?:^|\.)(?:localhost|local|internal|lan|home\.arpa)\.?$/i.test(plain)
}

async function readBounded({ body }: Response): Promise<void> {
  if (body === null) return
  const reader = body.getReader()
  for (let size = 0; size <= MAX_ANSWER_BYTES;) {
    const { done, value } = await reader.read()
    if (done) return
    size += value.length
  }
  await reader.cancel()
}

function retryAfterOf({ headers }: Response): OutboundAnswer['retryAfterMs'] {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null
}
