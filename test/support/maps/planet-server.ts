import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { portOf } from '../servers/port-of.ts'

type Range = {
  readonly path: string
  readonly first: number
  readonly last: number
  readonly ifRange: string | null
}

/** Answers a request itself, and returns true. */
export type Lie = (answer: ServerResponse, range: Range, honest: () => void) => void

export type PlanetServer = {
  readonly url: string
  /** All requested ranges so far. */
  readonly asked: Range[]
  /** The file that it serves. */
  bytes: Buffer
  /** Paths that are there; null: all. */
  paths: readonly string[] | null
  /** Instead of the honest answer. */
  lie: Lie | null
  close(): Promise<void>
}

/** Serves ranges of a file as a web server does, until it is told to lie. */
export async function startPlanetServer(bytes: Buffer): Promise<PlanetServer> {
  const server = createServer((request, answer) => {
    const range = rangeOf(request)
    if (range === null) return end(answer, 400)
    state.asked.push(range)
    if (state.paths !== null && !state.paths.includes(range.path)) return end(answer, 404)
    const honest = () => serve(answer, state.bytes, range)
    if (state.lie === null) honest()
    else state.lie(answer, range, honest)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const state: PlanetServer = {
    url: `http://127.0.0.1:${portOf(server)}`,
    asked: [],
    bytes,
    paths: null,
    lie: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return state
}

export function etagOf(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}"`
}

function rangeOf({ headers, url: path = '' }: IncomingMessage): Range | null {
  const match = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '')
  const ifRange = headers['if-range']
  return match === null
    ? null
    : { path, first: Number(match[1]), last: Number(match[2]), ifRange: typeof ifRange === 'string' ? ifRange : null }
}

function serve(answer: ServerResponse, bytes: Buffer, { first, last, ifRange }: Range): void {
  const etag = etagOf(bytes)
  if (ifRange !== null && ifRange !== etag) return end(answer, 200, { etag }, bytes)
  const part = bytes.subarray(first, last + 1)
  const range = `bytes ${first}-${first + part.length - 1}/${bytes.length}`
  end(answer, 206, { etag, 'content-range': range }, part)
}

export function end(answer: ServerResponse, status: number, headers: Record<string, string> = {}, body?: Buffer): void {
  answer.writeHead(status, { ...(body !== undefined && { 'content-length': body.length }), ...headers })
  answer.end(body)
}
