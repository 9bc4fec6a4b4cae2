import { connect, type Socket } from 'node:net'

export type Load = {
  /** Answers per second. */
  readonly rate: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>
}

/** Keep-alive connections that each ask again as soon as they are answered, for `seconds`; bounded by both. */
export async function load(
  port: number,
  path: string,
  options: { connections: number; seconds: number; headers?: Record<string, string> },
): Promise<Load> {
  const lines = Object.entries(options.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${lines.join('')}\r\n`)
  const times: number[] = []
  const statuses = new Map<number, number>()
  const end = performance.now() + options.seconds * 1000
  const begun = performance.now()
  const rest = stayAwake()
  await Promise.all(
    Array.from({ length: options.connections }, () =>
      converse(port, request, end, (status, ms) => {
        times.push(ms)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }),
    ),
  )
  const elapsed = (performance.now() - begun) / 1000
  rest()
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { rate: times.length / elapsed, p50: at(0.5), p99: at(0.99), statuses }
}

/**
 * Keeps this process from sleeping between answers. To wake it costs the server, on a virtual machine more than the
 * request itself, and only a server that is slower than this client would pay it.
 */
function stayAwake(): () => void {
  let isAwake = true
  const spin = () => {
    if (isAwake) setImmediate(spin)
  }
  spin()
  return () => {
    isAwake = false
  }
}

function converse(
  port: number,
  request: Buffer,
  end: number,
  onAnswer: (status: number, ms: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let sent = 0
    let head = ''
    let missing = 0
    let status = 0
    const ask = () => {
      if (performance.now() >= end) return socket.end(() => resolve())
      head = ''
      missing = 0
      sent = performance.now()
      socket.write(request)
      return undefined
    }
    const answered = () => {
      onAnswer(status, performance.now() - sent)
      ask()
    }
    socket.on('connect', ask)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      if (missing > 0) {
        missing -= chunk.length
        if (missing <= 0) answered()
        return
      }
      head += chunk.toString('latin1')
      const split = head.indexOf('\r\n\r\n')
      if (split === -1) return
      status = Number(head.slice(9, 12))
      const length = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, split))?.[1]
      missing = Number(length ?? 0) - (head.length - split - 4)
      if (missing <= 0) answered()
    })
  })
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
