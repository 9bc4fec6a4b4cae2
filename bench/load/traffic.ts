import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { createFrameDecoder, encodeFrame } from '../../src/meshtastic/link/framing.ts'
import { UserSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../src/meshtastic/gen/position_pb.ts'
import { FromRadioSchema, type ToRadio, ToRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import { createSeededRandom } from '../../src/node/radio/demo/seeded-random.ts'
import { textOf } from '../texts.ts'
import { TelemetrySchema } from '../../src/meshtastic/gen/telemetry_pb.ts'

/** Before the time at the end of each text. */
export const SENT_AT = 'sent at '

/** Traffic of one kind, or a mesh's usual mixture: as many telemetry and position packets as texts and node infos. */
export type Kind = 'texts' | 'positions' | 'telemetry' | 'mixture'

const FIRST_NODE = 3_000_000_000

export const nodeNumOf = (n: number): number => FIRST_NODE + n * 7919

/** A frame of the stream protocol around a FromRadio. */
export function frame(payloadVariant: MessageInitShape<typeof FromRadioSchema>['payloadVariant']): Uint8Array {
  return encodeFrame(
    toBinary(FromRadioSchema, create(FromRadioSchema, payloadVariant === undefined ? {} : { payloadVariant })),
  )
}

/** What a radio that knows `nodes` nodes sends on connecting, `at` milliseconds since the epoch. */
export function handshakeFrames(nodes: number, nonce: number, at = Date.now()): Uint8Array[] {
  const seconds = Math.floor(at / 1000)
  return [
    frame({ case: 'myInfo', value: { myNodeNum: nodeNumOf(0), nodedbCount: nodes } }),
    frame({ case: 'metadata', value: { firmwareVersion: '2.8.0.bench', hwModel: 43 } }),
    frame({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
    ...Array.from({ length: nodes }, (_, n) =>
      frame({
        case: 'nodeInfo',
        value: {
          num: nodeNumOf(n),
          user: { longName: `Node number ${n}`, shortName: `${n}`, hwModel: 43, publicKey: new Uint8Array(32).fill(n) },
          position: {
            latitudeI: 520_000_000 + n * 1000,
            longitudeI: 130_000_000 + n * 700,
            altitude: 30,
            time: seconds - n,
          },
          deviceMetrics: {
            batteryLevel: n % 101,
            voltage: 3.9,
            channelUtilization: 7.5,
            airUtilTx: 1.25,
            uptimeSeconds: n,
          },
          lastHeard: seconds - n,
          snr: 5.25,
          hopsAway: n % 5,
        },
      }),
    ),
    frame({ case: 'configCompleteId', value: nonce }),
  ]
}

/** Which of `nodes` nodes sends the packet with this id: never the first, which is the radio. */
export const senderOf = (id: number, nodes: number): number => 1 + scatter(id, nodes - 1)

/** A packet with the id `id` of one of `nodes` nodes, heard `at` milliseconds since the epoch. */
export function packetFrame(kind: Kind, id: number, nodes: number, at: number): Uint8Array {
  const seconds = Math.floor(at / 1000)
  const n = senderOf(id, nodes)
  return frame({
    case: 'packet',
    value: {
      from: nodeNumOf(n),
      to: 0xffffffff,
      id,
      rxTime: seconds,
      rxSnr: 6.25,
      rxRssi: -70 - (id % 40),
      hopStart: 5,
      hopLimit: 5 - (id % 4),
      payloadVariant: { case: 'decoded', value: dataOf(kind, { id, n, time: seconds }) },
    },
  })
}

/** A number below `count`, the same sequence each time: the nodes of a mesh do not take turns. */
function scatter(id: number, count: number): number {
  return Math.floor(createSeededRandom(id)() * count)
}

/** `n`: its sender. */
type About = { readonly id: number; readonly n: number; readonly time: number }

function dataOf(kind: Kind, about: About): { portnum: PortNum; payload: Uint8Array } {
  const { id, time } = about
  switch (kind) {
    case 'texts':
      return {
        portnum: PortNum.TEXT_MESSAGE_APP,
        payload: new TextEncoder().encode(`${textOf(id)} ${SENT_AT}${Date.now()}`),
      }
    case 'positions': {
      const place = { latitudeI: 520_000_000 + id, longitudeI: 130_000_000 - id, altitude: 34, precisionBits: 32, time }
      return { portnum: PortNum.POSITION_APP, payload: toBinary(PositionSchema, create(PositionSchema, place)) }
    }
    case 'telemetry': {
      const value = {
        batteryLevel: id % 101,
        voltage: 3.7,
        channelUtilization: 7.5,
        airUtilTx: 1.25,
        uptimeSeconds: id,
      }
      const variant = { case: 'deviceMetrics', value } as const
      return {
        portnum: PortNum.TELEMETRY_APP,
        payload: toBinary(TelemetrySchema, create(TelemetrySchema, { time, variant })),
      }
    }
    case 'mixture':
      return mixtureOf(about)
    default:
      return kind satisfies never
  }
}

function mixtureOf(about: About): { portnum: PortNum; payload: Uint8Array } {
  const place = about.id % 8
  if (place < 4) return dataOf('telemetry', about)
  if (place < 6) return dataOf('positions', about)
  if (place === 6) return dataOf('texts', about)
  // The names that it has had since the handshake: nodes repeat them for hours and change them hardly ever.
  const user = create(UserSchema, { longName: `Node number ${about.n}`, shortName: `${about.n}`, hwModel: 43 })
  return { portnum: PortNum.NODEINFO_APP, payload: toBinary(UserSchema, user) }
}

/** A radio on loopback that knows this many nodes and reports all of them to each client. */
export async function startRadio(nodes: number) {
  let client: Socket | null = null
  const server = createServer((socket) => {
    client?.destroy()
    client = socket
    socket.setNoDelay(true).on('error', () => socket.destroy())
    const decoder = createFrameDecoder(decodeToRadio)
    socket.on('data', (bytes) => {
      for (const { message } of decoder.push(bytes, 0)) {
        if (message.case === 'wantConfigId') socket.write(Buffer.concat(handshakeFrames(nodes, message.value)))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  let id = 0
  return {
    port: address.port,
    /** Sends this many packets of the usual mixture a second, at an even pace; returns their number. */
    async stream(packetsASecond: number, seconds: number): Promise<number> {
      const begun = performance.now()
      const all = packetsASecond * seconds
      for (let sent = 0; sent < all; await wait(5)) {
        const due = Math.min(all, ((performance.now() - begun) / 1000) * packetsASecond)
        for (; sent < due; sent++) client?.write(packetFrame('mixture', ++id, nodes, Date.now()))
      }
      return all
    },
    async close() {
      client?.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A message from a client; null for bytes that are not a message. */
function decodeToRadio(payload: Uint8Array): ToRadio['payloadVariant'] | null {
  try {
    return fromBinary(ToRadioSchema, payload).payloadVariant
  } catch {
    return null
  }
}
