import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { SendFailure } from '../../../../app/base/outgoing/ports.ts'
import { addressOf, bySystem, PRIVATE_REFUSED, type Resolve, wordsFor } from '../../../alerts/outbound.ts'
import { letGo } from '../../folder/let-go.ts'
import { CopyFailure, type Problem } from './problems.ts'

/** A transfer without progress for this long is ended. */
const STALL_MS = 60_000
/** How long a place may think about what it has received: it may have to put many parts together. */
const ANSWER_MS = 300_000
/** On average over that time. A place that sends or takes less holds up all copies. */
const LEAST_BYTES_PER_S = 512
const MAX_TEXT_BYTES = 2 * 2 ** 20

export type Timings = { readonly stallMs: number; readonly answerMs: number }
export const TIMINGS: Timings = { stallMs: STALL_MS, answerMs: ANSWER_MS }

/** Where all requests to a place go: the rule for outgoing requests holds for each of them. */
export type Server = {
  readonly isOwnNetwork: boolean
  readonly ca: string | null
  readonly resolve?: Resolve
  readonly timings?: Timings
  readonly signal?: AbortSignal
}

export type Asked = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Its length is in the headers. */
  readonly body?: Readable | string
}

export type Answer = {
  readonly status: number
  readonly header: (name: string) => string | null
  /** The body as it arrives; reading it to its end or destroying it ends the request. */
  readonly body: IncomingMessage
  /** For how long it may arrive if it is read as text. */
  readonly textMs: number
}

/**
 * One request. The name is resolved once, and the connection goes to exactly that address; redirects are not followed.
 * Throws `SendFailure`.
 */
export async function ask(server: Server, { method, url, headers, body }: Asked): Promise<Answer> {
  const { stallMs, answerMs } = server.timings ?? TIMINGS
  const to = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  let outgoing: ClientRequest | null = null
  try {
    const { address, family } = await findAddress(server, to, stallMs)
    const lookup: LookupFunction = (_hostname, options, done) =>
      options.all === true ? done(null, [{ address, family }]) : done(null, address, family)
    const isTls = to.protocol === 'https:'
    const sent = (isTls ? requestTls : requestPlain)(to, {
      method,
      agent: false,
      lookup,
      headers: {
        ...headers,
        ...(typeof body === 'string' && { 'content-length': String(Buffer.byteLength(body)) }),
        'user-agent': 'mesh-monitoring-service',
      },
      ...(isTls && server.ca !== null && { ca: server.ca }),
      ...(server.signal !== undefined && { signal: server.signal }),
    })
    outgoing = sent
    // After the parser, which has copied what is in it.
    sent.on('socket', (socket) => socket.on('data', letGo))
    let received: IncomingMessage | null = null
    const stall = () => (received ?? sent).destroy(new CopyFailure('stalled', true))
    sent.setTimeout(stallMs, stall)
    const moved = () => (received === null ? sent.socket?.bytesWritten : sent.socket?.bytesRead) ?? 0
    let before = 0
    const pace = setInterval(() => {
      if (moved() - before < (LEAST_BYTES_PER_S * answerMs) / 1000) stall()
      before = moved()
    }, answerMs)
    const beginPhase = () => {
      before = moved()
      pace.refresh()
    }
    sent.on('close', () => clearInterval(pace))
    // Everything was sent: from now on the place may take its time.
    sent.on('finish', () => {
      sent.setTimeout(answerMs, stall)
      beginPhase()
    })
    sent.on('error', reject)
    sent.on('response', (incoming) => {
      sent.setTimeout(stallMs, stall)
      received = incoming
      beginPhase()
      const { statusCode: status = 0 } = incoming
      const header = (name: string) => {
        const value = incoming.headers[name]
        return typeof value === 'string' ? value : null
      }
      // Read by nobody, or ended by the timeout: must not end the process.
      incoming.on('error', () => {})
      resolve({ status, header, body: incoming, textMs: answerMs })
    })
    if (body === undefined || typeof body === 'string') sent.end(body)
    // An early answer, such as a refusal, wins over the end of the connection that follows it.
    else pour(body, sent).catch((error: unknown) => setImmediate(() => reject(error)))
    return await promise
  } catch (error) {
    outgoing?.destroy()
    throw asFailure(error)
  }
}

/** Sends a file piece by piece, each once the system has the one before. */
async function pour(body: Readable, sent: ClientRequest): Promise<void> {
  sent.on('close', () => body.destroy())
  for await (const piece of body) {
    await new Promise<void>((resolve, reject) => {
      sent.write(piece, (error) => (error instanceof Error ? reject(error) : resolve()))
    })
    letGo(piece)
  }
  sent.end()
}

async function findAddress(server: Server, url: URL, stallMs: number) {
  const signal = AbortSignal.timeout(stallMs)
  try {
    return await addressOf(url, server.isOwnNetwork, server.resolve ?? bySystem, signal)
  } catch (error) {
    if (error instanceof SendFailure && error.message === PRIVATE_REFUSED) throw new CopyFailure('ownNetwork')
    throw error
  }
}

/** The body as text. Throws `SendFailure`, and `ifLonger` for more than 2 MiB. */
export async function textOf(
  { body, textMs = ANSWER_MS }: { readonly body: Readable; readonly textMs?: number },
  ifLonger: Problem = 'unknown',
): Promise<string> {
  const deadline = setTimeout(() => body.destroy(new CopyFailure('stalled', true)), textMs)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > MAX_TEXT_BYTES) throw new CopyFailure(ifLonger)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  } catch (error) {
    throw asFailure(error)
  } finally {
    clearTimeout(deadline)
    body.destroy()
  }
}

/** Ends a request whose answer needs no reading. */
export function leave({ body }: Answer): void {
  body.destroy()
}

/** nodejs.org/api/tls.html, "X509 certificate error codes"; the first that fits. */
const TLS_PROBLEMS: readonly (readonly [codes: RegExp, problem: Problem])[] = [
  [/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, 'expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'otherName'],
  [/^(?:EPROTO|ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG))$/, 'noTls'],
  [/CERT|SELF_SIGNED|UNABLE_TO/, 'untrusted'],
]

export function asFailure(error: unknown): SendFailure {
  if (error instanceof SendFailure) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE') {
    return new CopyFailure('cut', true)
  }
  // Of the parser: such as headers without end.
  if (code.startsWith('HPE_')) return new CopyFailure('unknown')
  const ofTls = TLS_PROBLEMS.find(([codes]) => codes.test(code))
  return ofTls === undefined ? new SendFailure(wordsFor(error)) : new CopyFailure(ofTls[1])
}
