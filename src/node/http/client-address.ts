import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { Context } from 'hono'
import type { Log } from '../../app/base/log.ts'

type Request = { readonly incoming: IncomingMessage }

/**
 * Addresses whose forwarding headers are trusted. Throws a TypeError naming an entry that is not an address or CIDR.
 */
export function parseTrustedProxies(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits, more] = entry.split('/')
    const family = isIP(address)
    const size = family === 6 ? 128 : 32
    const prefix = bits === undefined ? size : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    if (family === 0 || more !== undefined || prefix < 0 || prefix > size) throw new TypeError(entry)
    list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * Client address, origin and authenticated user of a request. Only trusted proxies may set X-Forwarded-For, -Proto,
 * -Host and `userHeader`. Warns once, about the first other address that sends X-Forwarded-For.
 */
export function createAddressing(entries: readonly string[], log: Pick<Log, 'warn'>, userHeader: string | null = null) {
  const trusted = parseTrustedProxies(entries)
  const isTrusted = (ip: string) => entries.length > 0 && trusted.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
  let hasWarned = false
  const warnOf = (peer: string, { headers }: IncomingMessage) => {
    if (headers['x-forwarded-for'] === undefined) return
    hasWarned = true
    log.warn(
      'X-Forwarded-For is ignored from an address outside TRUSTED_PROXIES; if this is your proxy, all clients behind it count as one',
      { address: peer },
    )
  }
  return {
    clientIp: (c: Context): string | null => {
      const { incoming } = requestOf(c)
      const peer = peerOf(incoming)
      if (peer === null) return null
      if (!isTrusted(peer)) {
        if (!hasWarned) warnOf(peer, incoming)
        return peer
      }
      // Takes the right-most hop that is not one of our proxies, because the client can forge everything to the left of
      // it.
      const hops = headerList(incoming, 'x-forwarded-for').map(plainAddress)
      let client = peer
      for (const hop of hops.toReversed()) {
        if (hop === null) break
        client = hop
        if (!isTrusted(hop)) break
      }
      return client
    },
    proxyUser: (c: Context): string | null => {
      if (userHeader === null) return null
      const { incoming } = requestOf(c)
      const peer = peerOf(incoming)
      return peer !== null && isTrusted(peer) ? onlyHeader(incoming, userHeader) : null
    },
    origin: (c: Context): string => {
      const { incoming } = requestOf(c)
      const peer = peerOf(incoming)
      const host = incoming.headers.host ?? 'localhost'
      if (peer === null || !isTrusted(peer)) return originOf('http', host)
      const scheme = headerList(incoming, 'x-forwarded-proto').at(-1)?.toLowerCase() === 'https' ? 'https' : 'http'
      return originOf(scheme, headerList(incoming, 'x-forwarded-host').at(-1) ?? host)
    },
  }
}

/** The address that a request came from, possibly a trusted proxy's; null if it has none. */
export function peerAddress(c: Context): string | null {
  return requestOf(c).incoming.socket.remoteAddress ?? null
}

/** The bindings of a request that another process received from `peer`. Header names are in lower case. */
export function addressedBy(peer: string | null, headers: Readonly<Record<string, string>>): object {
  return { incoming: { socket: { remoteAddress: peer ?? undefined }, headers } }
}

// The address of a connection never changes, and each request needs it.
const peers = new WeakMap<Socket, string | null>()

function peerOf({ socket }: IncomingMessage): string | null {
  const known = peers.get(socket)
  if (known !== undefined) return known
  const address = plainAddress(socket.remoteAddress)
  peers.set(socket, address)
  return address
}

let latest = { written: '', origin: '' }

// In the form of an Origin header: lower case, without the default port of the scheme.
function originOf(scheme: string, host: string): string {
  const written = `${scheme}://${host}`
  // Nearly all requests have the same host.
  if (latest.written !== written) {
    latest = { written, origin: URL.canParse(written) ? new URL(written).origin : written }
  }
  return latest.origin
}

// The bindings that @hono/node-server gives to each request; absent when a test calls the app directly.
function requestOf(c: Context): Request {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return c.env as Request
}

/**
 * The value of a header that occurs exactly once. Null also if another header is spelled almost the same: a proxy may
 * remove a client's `Remote-User` but not its `Remote_User`, and nothing shows which of the two came from the proxy.
 */
function onlyHeader({ headers, rawHeaders }: Partial<IncomingMessage>, name: string): string | null {
  const wanted = name.toLowerCase()
  // A request from another process has no `rawHeaders`.
  const names = rawHeaders?.filter((_, index) => index % 2 === 0) ?? Object.keys(headers ?? {})
  const alike = names.filter((each) => each.toLowerCase().replaceAll(/[_.]/g, '-') === wanted)
  if (alike.length !== 1 || alike[0]?.toLowerCase() !== wanted) return null
  const value = headers?.[wanted]
  const text = typeof value === 'string' ? Buffer.from(value, 'latin1').toString('utf8').trim() : ''
  return text === '' || text.includes('\ufffd') ? null : text
}

function headerList(incoming: IncomingMessage, name: string): string[] {
  const value = incoming.headers[name]
  const text = Array.isArray(value) ? value.join(',') : (value ?? '')
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** An address without port, brackets, zone or IPv4-in-IPv6 wrapping; null for other texts. */
export function plainAddress(text: string | undefined): string | null {
  const bare = (text ?? '')
    .replace(/^\[(.*)\](?::\d+)?$/, '$1')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/i, '')
  const address = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(bare) ? bare.replace(/:\d+$/, '') : bare
  return isIP(address) === 0 ? null : address
}
