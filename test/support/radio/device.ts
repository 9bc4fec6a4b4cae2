import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { createFrameDecoder, encodeFrame } from '../../../src/meshtastic/link/framing.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { type FromRadio, FromRadioSchema, type ToRadio, ToRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'

export type FromRadioVariant = NonNullable<
  Exclude<MessageInitShape<typeof FromRadioSchema>, FromRadio>['payloadVariant']
>

/** The payload of a frame from the radio. */
export function fromRadio(payloadVariant: FromRadioVariant): Uint8Array {
  return toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant }))
}

export type RadioDeviceOptions = {
  /** Payloads that answer `want_config_id`, config_complete included; default: a small handshake of node 1. */
  readonly handshake?: (nonce: number) => readonly Uint8Array[]
  /** Writes each byte in a separate TCP packet. */
  readonly byteByByte?: boolean
  /** Hangs up on nobody: a client that is replaced by another one may continue to write. */
  readonly keepsClients?: boolean
  /** Accepts each packet after acknowledging it into the queue. */
  readonly onPacket?: (packet: MeshPacket) => void
}

/**
 * A radio on loopback: a TCP server that speaks the stream protocol to one client and disconnects it for the next one.
 */
export type RadioDevice = {
  readonly port: number
  /** All messages from clients so far, in order. */
  readonly received: readonly ToRadio[]
  /** All raw bytes from clients so far. */
  receivedBytes(): Uint8Array
  connections(): number
  /** The next message with this variant, including any since the last call for it. */
  next(variant: NonNullable<ToRadio['payloadVariant']['case']>): Promise<ToRadio>
  /** Sends FromRadio payloads, one frame each, to the current client, or to the next one after its handshake. */
  send(...payloads: readonly Uint8Array[]): void
  /** Sends bytes unchanged: debug text, noise, half frames. */
  sendRaw(bytes: Uint8Array): void
  /** Hangs up on the current client. */
  kick(): void
  /** Loses its clients and stops listening: new clients are refused. */
  switchOff(): Promise<void>
  /** Listens again, on the same port. */
  switchOn(): Promise<void>
  /** Starts or stops hanging up on new clients. */
  refuse(isRefusing: boolean): void
  /** Runs something once everything sent is on its way. */
  afterWritten(run: () => void): void
  /** Resolves when no client is connected. */
  untilClosed(): Promise<void>
  /** Stays connected and falls silent, or talks again. */
  setSilent(isSilent: boolean): void
  stop(): Promise<void>
}

export async function startRadioDevice(options: RadioDeviceOptions = {}): Promise<RadioDevice> {
  const handshake = options.handshake ?? smallHandshake
  const log = createMessageLog()
  const clients = new Set<Socket>()
  let allClosed: () => void = () => {}
  let client: Socket | null = null
  let connections = 0
  let isSilent = false
  let isRefusing = false

  /** Waits for the next client: the firmware also keeps what it hears while nobody is connected. */
  let unsent: Uint8Array[] = []
  const sendRaw = (bytes: Uint8Array) => {
    if (isSilent) return
    if (client === null || client.destroyed) {
      unsent.push(bytes)
      return
    }
    if (options.byteByByte !== true) client.write(bytes)
    else for (const byte of bytes) client.write(Uint8Array.of(byte))
  }
  const send = (...payloads: readonly Uint8Array[]) => {
    for (const payload of payloads) sendRaw(encodeFrame(payload))
  }
  const answer = (message: ToRadio) => {
    const { case: variant, value } = message.payloadVariant
    if (variant === 'wantConfigId') {
      send(...handshake(value))
      const waiting = unsent
      unsent = []
      for (const bytes of waiting) sendRaw(bytes)
    }
    if (variant === 'heartbeat') send(queueStatus())
    if (variant !== 'packet') return
    send(queueStatus(value.id))
    options.onPacket?.(value)
  }
  const server = createServer((socket) => {
    if (isRefusing) {
      socket.destroy()
      return
    }
    if (options.keepsClients !== true) client?.destroy()
    client = socket
    clients.add(socket)
    socket.on('close', () => {
      clients.delete(socket)
      if (clients.size === 0) allClosed()
    })
    connections += 1
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    const decoder = createFrameDecoder(readToRadio)
    socket.on('data', (bytes) => {
      log.addBytes(bytes)
      for (const { message } of decoder.push(bytes, 0)) {
        log.add(message)
        answer(message)
      }
    })
  })
  const port = await listen(server)
  const stop = async () => {
    for (const socket of clients) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return {
    port,
    received: log.messages,
    receivedBytes: log.bytes,
    next: log.next,
    connections: () => connections,
    send,
    sendRaw,
    kick: () => client?.destroy(),
    switchOff: stop,
    async switchOn() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    refuse(value) {
      isRefusing = value
    },
    afterWritten(run) {
      if (client === null) run()
      else client.write('', run)
    },
    untilClosed: () =>
      new Promise((resolve) => {
        allClosed = resolve
        if (clients.size === 0) resolve()
      }),
    setSilent(value) {
      isSilent = value
    },
    stop,
  }
}

function createMessageLog() {
  const messages: ToRadio[] = []
  const unread: ToRadio[] = []
  const chunks: Uint8Array[] = []
  const waiting = new Set<() => void>()
  const take = (variant: ToRadio['payloadVariant']['case']) => {
    const index = unread.findIndex(({ payloadVariant }) => payloadVariant.case === variant)
    return index === -1 ? null : (unread.splice(index, 1)[0] ?? null)
  }
  return {
    messages,
    bytes: () => Uint8Array.from(chunks.flatMap((chunk) => [...chunk])),
    addBytes: (chunk: Uint8Array) => chunks.push(chunk),
    add(message: ToRadio) {
      messages.push(message)
      unread.push(message)
      for (const wake of waiting) wake()
    },
    next: (variant: NonNullable<ToRadio['payloadVariant']['case']>) =>
      new Promise<ToRadio>((resolve) => {
        const wake = () => {
          const message = take(variant)
          if (message === null) return
          waiting.delete(wake)
          resolve(message)
        }
        waiting.add(wake)
        wake()
      }),
  }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the device has no port')
  return address.port
}

function readToRadio(payload: Uint8Array): ToRadio | null {
  try {
    return fromBinary(ToRadioSchema, payload)
  } catch {
    return null
  }
}

/** The answer to a heartbeat, or to a packet that was sent. */
export function queueStatus(meshPacketId = 0): Uint8Array {
  return fromRadio({ case: 'queueStatus', value: { free: 15, maxlen: 16, meshPacketId } })
}

/** My-info, metadata, one channel, two nodes, config_complete. */
export function smallHandshake(nonce: number, rebootCount = 0): Uint8Array[] {
  return [
    fromRadio({ case: 'myInfo', value: { myNodeNum: 0xa0cb0001, nodedbCount: 2, rebootCount } }),
    fromRadio({ case: 'metadata', value: { firmwareVersion: '2.8.0.test', hwModel: 43, role: 2 } }),
    fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
    fromRadio({ case: 'nodeInfo', value: { num: 0xa0cb0001, user: { longName: 'Test Radio', shortName: 'TR' } } }),
    fromRadio({ case: 'nodeInfo', value: { num: 0xa0cb0002, user: { longName: 'Far Hill', shortName: 'FH' } } }),
    fromRadio({ case: 'configCompleteId', value: nonce }),
  ]
}
