import { Agent as PlainAgent, type IncomingMessage, request as requestPlain } from 'node:http'
import { Agent as TlsAgent, request as requestTls } from 'node:https'
import type { LookupFunction } from 'node:net'
import { hasCode } from '../../disk/error-code.ts'
import { addressOf, bySystem, type Resolve } from '../../alerts/outbound.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { START_BYTES } from '../pmtiles/header.ts'
import { RegionFailed } from './problems.ts'

/** Which file is read: a server that has another one by now must not be mixed with it. */
export type Identity = {
  readonly url: string
  readonly size: number
  /** Strong, with its quotes; null: the server sends none. */
  readonly etag: string | null
  readonly modified: string | null
}

/** A planet archive that is read over HTTP, over one connection to an address that is resolved once. */
export type Planet = {
  readonly identity: Identity
  /** The first bytes of the file: its header and its root directory. */
  readonly start: Buffer
  /**
   * Exactly these bytes. Throws PlanetChanged, RegionFailed, and `SourceSilent` for what may be over after a pause.
   */
  read(offset: number, length: number): Promise<Buffer>
  close(): void
}

/** The archive is another file than before. */
export class PlanetChanged extends Error {
  override name = 'PlanetChanged'
}

/** No answer, a cut one, or an error that servers have at times. */
export class SourceSilent extends Error {
  override name = 'SourceSilent'
}

export type PlanetNeeds = {
  /** With {date}, or without. */
  readonly template: string
  readonly now: () => number
  readonly signal: AbortSignal
  /** Without a byte for this long, an answer counts as cut, in milliseconds. */
  readonly stallMs?: number
  readonly resolve?: Resolve
}

const STALL_MS = 30_000
/** An answer takes at most this multiple of that time. */
const SLOWEST = 20
/** The days that a name with {date} is tried for, the latest first. */
const DAYS = 8

/** Opens the archive of a template: with {date}, the latest that is there. Throws as `read` does. */
export async function openPlanet(needs: PlanetNeeds): Promise<Planet> {
  const urls = urlsOf(needs)
  for (const [index, url] of urls.entries()) {
    try {
      return await openAt(url, needs)
    } catch (error) {
      const isMissing = error instanceof RegionFailed && error.problem === 'gone'
      if (!isMissing || index === urls.length - 1) throw error
    }
  }
  throw new RegionFailed('gone')
}

function urlsOf({ template, now }: PlanetNeeds): string[] {
  if (!template.includes('{date}')) return [template]
  return Array.from({ length: DAYS }, (_, day) =>
    template.replace('{date}', new Date(now() - day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')),
  )
}

/** Whether a file is one of those that a template stands for. */
export function isFrom(template: string, { url }: Identity): boolean {
  const [before = '', after] = template.split('{date}')
  if (after === undefined) return url === template
  return url.startsWith(before) && url.endsWith(after) && url.length === before.length + DATE_LENGTH + after.length
}

const DATE_LENGTH = '20261128'.length

/** Opens the same file again. Throws PlanetChanged if it is another one. */
export async function reopenPlanet(identity: Identity, needs: PlanetNeeds): Promise<Planet> {
  const planet = await openAt(identity.url, needs).catch((error: unknown) => {
    // Archives of a day are deleted some days later.
    if (error instanceof RegionFailed && error.problem === 'gone') throw new PlanetChanged()
    throw error
  })
  if (isSame(planet.identity, identity)) return planet
  planet.close()
  throw new PlanetChanged()
}

function isSame(a: Identity, b: Identity): boolean {
  return a.size === b.size && a.etag === b.etag && a.modified === b.modified
}

async function openAt(url: string, needs: PlanetNeeds): Promise<Planet> {
  const { signal, stallMs = STALL_MS, resolve = bySystem } = needs
  const to = new URL(url)
  const [Agent, send] = to.protocol === 'https:' ? [TlsAgent, requestTls] : [PlainAgent, requestPlain]
  // The operator chose the address, so it may be private. Each request goes to exactly this one.
  const { address, family } = await addressOf(to, true, resolve, signal).catch((error: unknown) => {
    throw silent(signal, error)
  })
  const lookup: LookupFunction = (_hostname, options, done) =>
    options.all === true ? done(null, [{ address, family }]) : done(null, address, family)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async (first: number, last: number, known: Identity | null): Promise<Answer> => {
    const outgoing = send(to, {
      agent,
      lookup,
      signal,
      headers: {
        range: `bytes=${first}-${last}`,
        'accept-encoding': 'identity',
        'user-agent': 'mesh-monitoring-service',
        ...conditionOf(known),
      },
    })
    try {
      return await answerOf(outgoing, { first, last, url, known, stallMs })
    } catch (error) {
      outgoing.destroy()
      // The server closed the idle connection meanwhile. A new one is no reused one.
      if (outgoing.reusedSocket && hasCode(error, 'ECONNRESET', 'EPIPE')) return ask(first, last, known)
      if (error instanceof RegionFailed || error instanceof PlanetChanged) throw error
      throw silent(signal, error)
    }
  }
  const opened = await ask(0, START_BYTES - 1, null).catch((error: unknown) => {
    agent.destroy()
    throw error
  })
  const { identity } = opened
  return {
    identity,
    start: opened.body,
    read: async (offset, length) => (await ask(offset, offset + length - 1, identity)).body,
    close: () => agent.destroy(),
  }
}

function silent(signal: AbortSignal, error: unknown): unknown {
  return signal.aborted ? signal.reason : new SourceSilent('the planet archive does not answer', { cause: error })
}

/** Weak tags and dates prove less, but a date is what some servers have (RFC 9110, section 13.1.5). */
function conditionOf(known: Identity | null): Record<string, string> {
  const condition = known?.etag ?? known?.modified ?? null
  return condition === null ? {} : { 'if-range': condition }
}

type Answer = { readonly identity: Identity; readonly body: Buffer }
type Asked = {
  readonly first: number
  readonly last: number
  readonly url: string
  readonly known: Identity | null
  readonly stallMs: number
}

function answerOf(outgoing: ReturnType<typeof requestPlain>, asked: Asked): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const stall = setTimeout(() => reject(new Error('no byte in time')), asked.stallMs)
  const drip = setTimeout(() => reject(new Error('too slow')), SLOWEST * asked.stallMs)
  outgoing.on('error', reject)
  outgoing.on('response', (answer) => {
    stall.refresh()
    answer.on('error', reject)
    answer.on('close', () => reject(new Error('cut')))
    try {
      const { identity, length } = checked(answer, asked)
      const chunks: Buffer[] = []
      let size = 0
      answer.on('data', (chunk: Buffer) => {
        stall.refresh()
        size += chunk.length
        if (size > length) reject(new RegionFailed('wrongRange'))
        else chunks.push(chunk)
      })
      answer.on('end', () => {
        if (size === length) resolve({ identity, body: Buffer.concat(chunks) })
        else reject(new RegionFailed('wrongRange'))
      })
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)))
    }
  })
  outgoing.end()
  return promise.finally(() => {
    clearTimeout(stall)
    clearTimeout(drip)
  })
}

/** The file that an answer is a part of, and how long the part must be. */
function checked(answer: IncomingMessage, asked: Asked): { readonly identity: Identity; readonly length: number } {
  const { statusCode: status = 0, headers } = answer
  const { first, last, url, known } = asked
  const { etag = null, 'last-modified': modified = null } = headers
  const strong = etag !== null && /^"[\x21\x23-\x7e]*"$/.test(etag) && etag.length <= 200 ? etag : null
  const date = modified !== null && modified.length <= 100 ? modified : null
  const isOther = known !== null && (known.etag !== strong || known.modified !== date)
  if (status === 429 || status >= 500) throw new SourceSilent(`status ${status}`)
  if (status >= 300 && status < 400) throw new RegionFailed('redirected')
  if (status === 416 || status === 412) throw known === null ? new RegionFailed('gone') : new PlanetChanged()
  if (status >= 400) throw new RegionFailed('gone')
  if (status !== 206) throw isOther ? new PlanetChanged() : new RegionFailed('noRanges')
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw new RegionFailed('noRanges')
  const range = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(headers['content-range'] ?? '')
  if (range === null) throw new RegionFailed('wrongRange')
  const size = Number(range[3])
  if (known !== null && (isOther || size !== known.size)) throw new PlanetChanged()
  // Only the first request may ask for more than there is.
  const end = known === null ? Math.min(last, size - 1) : last
  if (Number(range[1]) !== first || Number(range[2]) !== end || end >= size) throw new RegionFailed('wrongRange')
  return { identity: { url, size, etag: strong, modified: date }, length: end - first + 1 }
}
