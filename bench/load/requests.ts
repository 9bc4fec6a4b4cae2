import { connect, type Socket } from 'node:net'

export type Load = {
  readonly answers: number
  /** Answers per second. */
  readonly rate: number
  /** Bytes of the bodies. */
  readonly bytes: number
}

/** One request of a run: its path, for the n-th request, and its headers, for each connection. */
export type Asking = {
  readonly path: string | ((n: number) => string)
  readonly headers?: Record<string, string>
  /** One for each user; connections share them evenly. */
  readonly cookies?: readonly string[]
  /** Status of every answer; 200 unless given. */
  readonly status?: number
}

/**
 * Keep-alive connections that each repeat the request as soon as it is answered, for `seconds`; bounded by both. Throws
 * at an answer of another status.
 */
export async function load(
  port: number,
  asking: Asking,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Load> {
  const counts = { answers: 0, bytes: 0 }
  let sent = 0
  const end = performance.now() + seconds * 1000
  const begun = performance.now()
  const rest = stayAwake()
  await Promise.all(
    Array.from({ length: connections }, (_, n) => {
      const cookie = asking.cookies?.[n % asking.cookies.length]
      const headers = { ...asking.headers, ...(cookie === undefined ? {} : { cookie }) }
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const next = () => {
        const path = typeof asking.path === 'string' ? asking.path : asking.path(sent++)
        return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${lines.join('')}\r\n`
      }
      return converse(port, next, end, (status, bytes) => {
        if (status !== (asking.status ?? 200)) throw new Error(`${String(asking.path)}: status ${status}`)
        counts.answers++
        counts.bytes += bytes
      })
    }),
  ).finally(rest)
  return { ...counts, rate: counts.answers / ((performance.now() - begun) / 1000) }
}

/**
 * Keeps this process from sleeping between answers. Waking it costs the server, on a virtual machine more than the
 * request itself, and only a server slower than this client would pay for it.
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
  next: () => string,
  end: number,
  onAnswer: (status: number, bytes: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let head = ''
    let missing = 0
    let length = 0
    let status = 0
    const ask = () => {
      if (performance.now() >= end) return socket.end(() => resolve())
      head = ''
      missing = 0
      socket.write(next(), 'latin1')
      return undefined
    }
    const answered = () => {
      onAnswer(status, length)
      ask()
    }
    socket.on('connect', ask)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      try {
        if (missing > 0) {
          missing -= chunk.length
          if (missing <= 0) answered()
          return
        }
        head += chunk.toString('latin1')
        const split = head.indexOf('\r\n\r\n')
        if (split === -1) return
        status = Number(head.slice(9, 12))
        const told = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, split))?.[1]
        if (told === undefined && status !== 304) throw new Error(`an answer without a length: ${head.slice(0, split)}`)
        length = Number(told ?? 0)
        missing = length - (head.length - split - 4)
        if (missing <= 0) answered()
      } catch (error) {
        socket.destroy()
        reject(error)
      }
    })
  })
}
