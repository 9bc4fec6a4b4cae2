import * as z from 'zod'
import type { Waiting } from '../../app/mesh/ingest/outbox.ts'

/** The outcome of a delivery. */
export type Verdict =
  /** Stored, except the items in `rejected`, by index. `date`: the target's clock. */
  | {
      readonly kind: 'delivered'
      readonly rejected: readonly { readonly index: number; readonly reason: string }[]
      readonly date: number | null
    }
  /** The target, or a proxy before it, refuses a body of this size. */
  | { readonly kind: 'too-large' }
  /** The target does not understand it. */
  | { readonly kind: 'invalid' }
  /** Needs a change of the configuration. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number | null }

export type Target = {
  readonly url: string
  readonly token: string
  /** Goes before the names of the sources. */
  readonly name: string | null
}

const TIMEOUT_MS = 30_000
const MAX_ANSWER_BYTES = 256 * 1024

const answerSchema = z.object({
  accepted: z.int(),
  rejected: z.array(z.object({ index: z.int().min(0), reason: z.string().max(100) })).max(500),
})

const problemSchema = z.object({ code: z.string() })

/**
 * Delivers rows of one source; `now` in milliseconds. Never throws. The token is sent to the target only, never to the
 * destination of a redirect.
 */
export async function deliver(
  target: Target,
  rows: readonly Waiting[],
  { now, closing }: { readonly now: number; readonly closing: AbortSignal },
): Promise<Verdict> {
  const body = JSON.stringify({
    source: nameSource(target, rows[0]?.source ?? ''),
    packets: rows.map(({ data, receivedAt, replayed, gateway, identity }) => ({
      data,
      // A later time means that this clock was wrong when the packet arrived and has been corrected. The target can
      // date the packet better.
      ...(receivedAt <= now && { receivedAt }),
      replayed,
      ...(gateway !== null && { gateway }),
      ...(identity !== null && { identity }),
    })),
  })
  try {
    const response = await fetch(`${target.url}/api/ingest`, {
      method: 'POST',
      redirect: 'manual',
      headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    const text = await readBounded(response)
    return response.status === 200 ? readAnswer(response.headers, text, rows.length) : judge(response, text)
  } catch (error) {
    return { kind: 'failed', reason: explain(error), retryAfterMs: null }
  }
}

/** The name of a source at the target. */
export function nameSource({ name }: Target, source: string): string {
  return name === null ? source : `${name}/${source}`
}

/** The text of an answer; null: it is too long. */
export async function readBounded({ body }: Response): Promise<string | null> {
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    // Leaving the loop cancels the rest.
    if (size > MAX_ANSWER_BYTES) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const NOT_THIS_SERVICE = 'the target answers, but does not seem to be this service'

/** A 200 only counts with an outcome for each item: a hotel network's sign-in page is a 200 too. */
function readAnswer(headers: Headers, text: string | null, items: number): Verdict {
  const parsed = answerSchema.safeParse(text === null ? null : parseJson(text))
  if (!parsed.success || parsed.data.accepted + parsed.data.rejected.length !== items) {
    return { kind: 'failed', reason: NOT_THIS_SERVICE, retryAfterMs: null }
  }
  const date = Date.parse(headers.get('date') ?? '')
  return { kind: 'delivered', rejected: parsed.data.rejected, date: Number.isNaN(date) ? null : date }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function judge({ status, headers }: Response, text: string | null): Verdict {
  switch (status) {
    case 400:
    case 422:
      return { kind: 'invalid' }
    case 401:
      return { kind: 'refused', reason: 'the target does not know the token (401)' }
    case 403:
      return { kind: 'refused', reason: 'the token may not deliver: it needs the scope ingest (403)' }
    case 409:
      return { kind: 'refused', reason: readCode(text) === 'too_many_sources' ? TOO_MANY : TAKEN }
    case 413:
      return { kind: 'too-large' }
    case 408:
    case 425:
    case 429:
      return { kind: 'failed', reason: `the target asks to wait (${status})`, retryAfterMs: readRetryAfter(headers) }
    default:
      if (status >= 500 && status !== 501) {
        return {
          kind: 'failed',
          reason: `the target reports an error (${status})`,
          retryAfterMs: readRetryAfter(headers),
        }
      }
      return { kind: 'refused', reason: `${NOT_THIS_SERVICE} (${status})` }
  }
}

const TAKEN = 'a radio of the target, or a collector of somebody else, already has this name (409)'
const TOO_MANY = 'the target already has the maximum number of radios and brokers of collectors (409)'

function readCode(text: string | null): string | null {
  return problemSchema.safeParse(text === null ? null : parseJson(text)).data?.code ?? null
}

/** Only seconds are read, because a date of another clock is of no use. */
function readRetryAfter(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? ''
  return /^\d{1,5}$/.test(text) ? Number(text) * 1000 : null
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return 'the target cannot be reached'
  if (error.name === 'TimeoutError') return 'the target does not answer in time'
  const code = error.cause instanceof Error && 'code' in error.cause ? String(error.cause.code) : error.name
  return `the target cannot be reached (${code})`
}
