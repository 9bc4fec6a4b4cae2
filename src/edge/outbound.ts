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
      const { answer } = await ask(url, { method, headers, body })
      return { status: answer.status, retryAfterMs: retryAfterOf(answer) }
    },
    async read(url) {
      const headers = { accept: 'application/json', 'user-agent': 'mesh-monitoring-service' }
      const { answer, text } = await ask(url, { headers })
      if (text === null) throw new SendFailure('the answer is too large')
      return { status: answer.status, text }
    },
  }
}

/** `text`: null if the body is larger than is read. */
async function ask(url: string, asked: RequestInit): Promise<{ answer: Response; text: string | null }> {
  const signal = AbortSignal.timeout(TOTAL_MS)
  try {
    const answer = await fetch(url, { ...asked, redirect: 'manual', signal })
    return { answer, text: await readBounded(answer) }
  } catch {
    throw new SendFailure(signal.aborted ? 'no answer in time' : 'the connection failed')
  }
}

function isPrivateHost(hostname: string): boolean {
  const plain = hostname.replace(/^\[|\]$/g, '')
  const isAddress = plain.includes(':') || /^[\d.]+$/.test(plain)
  return isAddress ? !isPublicAddress(plain) : /(?:^|\.)(?:localhost|local|internal|lan|home\.arpa)\.?$/i.test(plain)
}

async function readBounded({ body }: Response): Promise<string | null> {
  if (body === null) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let size = 0; ;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    size += value.length
    if (size > MAX_ANSWER_BYTES) break
    text += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return null
}

function retryAfterOf({ headers }: Response): OutboundAnswer['retryAfterMs'] {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null
}
