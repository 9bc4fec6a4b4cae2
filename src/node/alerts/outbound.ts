import { type Said, said } from '../../app/words/words.ts'
import { lookup as resolveName } from 'node:dns/promises'
import { request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isIP } from 'node:net'
import { type Outbound, type OutboundRequest, SendFailure } from '../../app/base/outgoing/ports.ts'
import { isPublicAddress } from '../../app/alerts/destinations/public-address.ts'

const TOTAL_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

export const PRIVATE_REFUSED = 'only administrators may use private addresses'

type Address = { readonly address: string; readonly family: number }
export type Resolve = (hostname: string) => Promise<readonly Address[]>

export const bySystem: Resolve = (hostname) => resolveName(hostname, { all: true, verbatim: true })

/** `resolve` and `totalMs`, in milliseconds, are for tests. */
export function openOutbound({
  resolve = bySystem,
  totalMs = TOTAL_MS,
}: { resolve?: Resolve; totalMs?: number } = {}): Outbound {
  const ask = async (to: string, mayBePrivate: boolean, asked: Asked): Promise<Answered> => {
    const signal = AbortSignal.timeout(totalMs)
    try {
      const url = new URL(to)
      const target = await addressOf(url, mayBePrivate, resolve, signal)
      return await exchange(url, target, asked, signal)
    } catch (error) {
      if (error instanceof SendFailure) throw error
      throw new SendFailure(signal.aborted ? 'no answer in time' : wordsFor(error))
    }
  }
  return {
    async send({ url, mayBePrivate, method, headers, body }) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      const { status, retryAfterMs } = await ask(url, mayBePrivate, { method, headers, bytes })
      return { status, retryAfterMs }
    },
    async read(url) {
      const { status, body } = await ask(url, true, { method: 'GET', headers: { accept: 'application/json' } })
      if (body === null) throw new SendFailure('the answer is too large')
      return { status, text: body.toString('utf8') }
    },
  }
}

type Asked = {
  readonly method: OutboundRequest['method'] | 'GET'
  readonly headers: OutboundRequest['headers']
  readonly bytes?: Uint8Array
}
/** `body`: null if it is larger than is read. */
type Answered = { readonly status: number; readonly retryAfterMs: number | null; readonly body: Buffer | null }

/**
 * The only address to connect to. A name with any private address is refused, because otherwise chance would decide
 * which address is used.
 */
export async function addressOf(
  url: URL,
  mayBePrivate: boolean,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<Address> {
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const family = isIP(hostname)
  const found = family === 0 ? await beforeAbort(resolve(hostname), signal) : [{ address: hostname, family }]
  const [first] = found
  if (first === undefined) throw new SendFailure('the host name has no address')
  if (!mayBePrivate && !found.every(({ address }) => isPublicAddress(address))) {
    throw new SendFailure(PRIVATE_REFUSED)
  }
  return first
}

function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true }),
    ),
  ])
}

function exchange(
  url: URL,
  { address, family }: Address,
  { method, headers, bytes }: Asked,
  signal: AbortSignal,
): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>()
  // Always the address that was checked.
  const lookup: LookupFunction = (_hostname, options, done) =>
    options.all === true ? done(null, [{ address, family }]) : done(null, address, family)
  const send = url.protocol === 'https:' ? requestTls : requestPlain
  const outgoing = send(url, {
    method,
    agent: false,
    lookup,
    signal,
    headers: {
      ...headers,
      ...(bytes !== undefined && { 'content-length': bytes.length }),
      'user-agent': 'mesh-monitoring-service',
    },
  })
  outgoing.on('error', reject)
  outgoing.on('response', (answer) => {
    const { statusCode: status = 0 } = answer
    const retryAfterMs = readRetryAfter(answer.headers['retry-after'])
    const chunks: Buffer[] = []
    let size = 0
    answer.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_ANSWER_BYTES) {
        outgoing.destroy()
        resolve({ status, retryAfterMs, body: null })
      } else chunks.push(chunk)
    })
    answer.on('end', () => resolve({ status, retryAfterMs, body: Buffer.concat(chunks) }))
    answer.on('error', reject)
    answer.on('close', () => reject(new Error('closed')))
  })
  outgoing.end(bytes)
  return promise
}

function readRetryAfter(text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now())
}

const WORDS: Readonly<Record<string, Said>> = {
  ENOTFOUND: said('the host name is not known'),
  EAI_AGAIN: said('host names cannot be looked up at the moment'),
  ECONNREFUSED: said('nobody listens there'),
  ECONNRESET: said('the connection was cut'),
  EHOSTUNREACH: said('not reachable'),
  ENETUNREACH: said('not reachable'),
}

/** Only the code of a system error, because its message could quote an address. */
export function wordsFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/.test(code)) return said('its certificate is not trusted').text
  return (WORDS[code] ?? said('the connection failed')).text
}
