import { type BlockList, createServer, isIP, type Socket } from 'node:net'
import { isEverywhere, isMapped } from '../../../app/connections/virtual-node-options.ts'
import { createTimer, type Clock } from '../../clock.ts'
import { parseTrustedProxies, plainAddress } from '../../http/client-address.ts'

/** Connections in this time, from all and from one address: apps that reconnect need a few. */
const RATE_MS = 10_000
const MAX_CONNECTS = 60
const MAX_CONNECTS_OF_ONE = 15
/** When a port that is taken is tried again. */
const RETRY_MS = 10_000

export type AppListener = {
  /** The port in use; null: not listening. */
  port(): number | null
  /** Why it does not listen; null: it does, or is about to. */
  problem(): string | null
  /** Why connections were refused lately, and how many since this was called last. */
  takeRefused(): ReadonlyMap<string, number>
  close(): Promise<void>
}

type Options = {
  readonly host: string
  readonly port: number
  readonly allowedNetworks: readonly string[]
  readonly clock: Clock
  /** Takes a connection that is allowed. */
  readonly onApp: (socket: Socket, address: string) => void
  /** It listens now, or has a problem. */
  readonly onState: () => void
}

/**
 * Listens for apps. Throws `RangeError` for every address of this machine without a list of networks, and for an IPv4
 * address that is written as an IPv6 one.
 */
export function listenForApps({ host, port, allowedNetworks, clock, onApp, onState }: Options): AppListener {
  if (isEverywhere(host) && allowedNetworks.length === 0) {
    throw new RangeError('A port on every address of this machine needs the networks that may connect')
  }
  if (isMapped(host)) throw new RangeError('An IPv4 address is written as such')
  const allowed = allowedNetworks.length === 0 ? null : parseTrustedProxies(allowedNetworks)
  const rate = createConnectRate(clock)
  const retry = createTimer(clock)
  const sockets = new Set<Socket>()
  const refused = new Map<string, number>()
  let problem: string | null = null
  let isClosed = false
  const refuse = (socket: Socket, why: string) => {
    socket.destroy()
    refused.set(why, (refused.get(why) ?? 0) + 1)
  }
  const server = createServer((socket) => {
    // Before anything else: an error without a listener would end the process.
    socket.on('error', () => socket.destroy())
    const address = plainAddress(socket.remoteAddress)
    if (address === null || isClosed) return void socket.destroy()
    if (!isAllowed(allowed, address)) return refuse(socket, 'from another network')
    if (!rate.admits(address)) return refuse(socket, 'too many connections')
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    onApp(socket, address)
  })
  const listen = () => server.listen({ host, port, exclusive: true })
  server.on('listening', () => {
    problem = null
    onState()
  })
  server.on('error', (error: NodeJS.ErrnoException) => {
    problem = explain(error, host, port)
    if (!isClosed && !server.listening) retry.start(RETRY_MS, listen)
    onState()
  })
  listen()
  return {
    port() {
      const address = server.address()
      return typeof address === 'object' && address !== null ? address.port : null
    },
    problem: () => problem,
    takeRefused() {
      const taken = new Map(refused)
      refused.clear()
      return taken
    },
    close() {
      isClosed = true
      retry.stop()
      for (const socket of sockets) socket.destroySoon()
      return new Promise((resolve) => {
        server.close(() => resolve())
      })
    },
  }
}

function isAllowed(allowed: BlockList | null, address: string): boolean {
  return allowed === null || allowed.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function createConnectRate(clock: Clock) {
  let since = clock.now()
  let all = 0
  const byAddress = new Map<string, number>()
  return {
    admits(address: string): boolean {
      const now = clock.now()
      if (now - since >= RATE_MS || now < since) {
        since = now
        all = 0
        byAddress.clear()
      }
      const ofOne = (byAddress.get(address) ?? 0) + 1
      if (all >= MAX_CONNECTS || ofOne > MAX_CONNECTS_OF_ONE) return false
      all += 1
      byAddress.set(address, ofOne)
      return true
    },
  }
}

function explain({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `another program uses port ${port}`
    case 'EADDRNOTAVAIL':
      return `this machine does not have the address ${host}`
    case 'EACCES':
      return `the service may not use port ${port}: choose one from 1024`
    default:
      return message
  }
}
