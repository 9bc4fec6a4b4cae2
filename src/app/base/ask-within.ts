/** The maximum number of bytes read from a response. A provider's responses are small. */
const MAX_BYTES = 256 * 1024

/** `json` is undefined if the body `text` is not JSON; `date` is the provider's time, if it sent one. */
export type ProviderAnswer =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly json: unknown
      readonly text: string
      readonly date: number | null
    }
  | { readonly kind: 'none'; readonly why: string }

/**
 * Sends one request to the provider. Follows no redirect, takes at most `timeoutMs` altogether, and reads at most 256
 * KB of the body. Never throws; `why` is a word that may be logged.
 */
export type AskProvider = (url: string, init: RequestInit, timeoutMs: number) => Promise<ProviderAnswer>

/** All requests made through the result end `totalMs` from now, regardless of their own time limits. */
export function askWithin(totalMs: number): AskProvider {
  const whole = AbortSignal.timeout(totalMs)
  return (url, init, timeoutMs) => exchange(url, init, AbortSignal.any([whole, AbortSignal.timeout(timeoutMs)]))
}

async function exchange(url: string, init: RequestInit, signal: AbortSignal): Promise<ProviderAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    const text = await readBounded(response, signal)
    return text === null
      ? { kind: 'none', why: 'too_large' }
      : { kind: 'answer', status: response.status, json: parseJson(text), text, date: dateOf(response) }
  } catch (error) {
    return { kind: 'none', why: signal.aborted ? 'timeout' : networkError(error) }
  }
}

function dateOf({ headers }: Response): number | null {
  const date = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(date) ? null : date
}

/** The body as text; null when it is too large. */
async function readBounded({ body }: Response, signal: AbortSignal): Promise<string | null> {
  if (body === null) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  try {
    for (;;) {
      const { done, value } = await beforeAbort(reader.read(), signal)
      if (done) return text + decoder.decode()
      size += value.byteLength
      if (size > MAX_BYTES) return null
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    // Not awaited, because a provider that stalls would stall the cancellation as well.
    reader.cancel().catch(() => {})
  }
}

// Not every runtime stops reading the body when the signal of its fetch is aborted.
async function beforeAbort<T>(reading: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Error('timeout'))
  })
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([reading, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the text, which may hold a token.
    return undefined
  }
}

/** The system's own code, such as ECONNREFUSED; the message could quote an address or a body. */
function networkError(error: unknown): string {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if ('code' in e && typeof e.code === 'string' && /^[A-Z][A-Z0-9_]{1,40}$/.test(e.code)) return e.code
  }
  return 'network'
}
