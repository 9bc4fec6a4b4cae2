import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { create, toBinary } from '@bufbuild/protobuf'
import { Aedes } from 'aedes'
import { applyChannelKey, hashChannel } from '../../../src/meshtastic/crypto/channel.ts'
import { ServiceEnvelopeSchema } from '../../../src/meshtastic/gen/mqtt_pb.ts'
import { DataSchema, type MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { type ChannelKey, DEFAULT_CHANNEL_KEY } from '../../../src/meshtastic/link/mqtt-envelope.ts'
import { formatNodeId } from '../../../src/meshtastic/node-id.ts'

/** A broker on loopback, with gateways that publish to it. */
export type MqttBroker = {
  readonly url: string
  connections(): number
  publish(topic: string, payload: Uint8Array, retain?: boolean): Promise<void>
  /** Publishes a decoded packet as gateway `gateway` does: encrypted with the default key, on LongFast. */
  publishPacket(packet: MeshPacket, gateway?: number, retain?: boolean): Promise<void>
  /** Hangs up on all clients. */
  kick(): void
  stop(): Promise<void>
}

export type MqttBrokerOptions = {
  readonly port?: number
  readonly login?: { readonly username: string; readonly password: string }
  /** Key and certificate, both in PEM form: the broker uses TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Answers each subscription with a refusal. */
  readonly refusesTopics?: boolean
}

export async function startMqttBroker({
  port = 0,
  login,
  refusesTopics,
  tls,
}: MqttBrokerOptions = {}): Promise<MqttBroker> {
  const broker = await Aedes.createBroker({
    authenticate: (_client, username, password, done) => {
      done(null, login === undefined || (username === login.username && password?.toString() === login.password))
    },
    authorizeSubscribe: (_client, subscription, done) => done(null, refusesTopics === true ? null : subscription),
  })
  const sockets = new Set<Socket>()
  let connections = 0
  const take = (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    broker.handle(socket)
  }
  const server = tls === undefined ? createServer(take) : createTlsServer(tls, take)
  const address = await listen(server, port)
  const publish = (topic: string, payload: Uint8Array, retain = false) =>
    new Promise<void>((resolve, reject) => {
      const packet = { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 0, retain, dup: false } as const
      broker.publish(packet, (error) => (error ? reject(error) : resolve()))
    })
  return {
    url: `${tls === undefined ? 'mqtt' : 'mqtts'}://127.0.0.1:${address}`,
    connections: () => connections,
    publish,
    async publishPacket(packet, gateway = 0xa0cb0001, retain) {
      const topic = `msh/EU_868/2/e/LongFast/${formatNodeId(gateway)}`
      await publish(topic, await envelopeOf(packet, gateway), retain)
    },
    kick() {
      for (const socket of sockets) socket.destroy()
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
      await new Promise<void>((resolve) => {
        broker.close(resolve)
      })
    },
  }
}

/** The ServiceEnvelope of a decoded packet, encrypted with the key of a channel: LongFast with the default one. */
export async function envelopeOf(
  packet: MeshPacket,
  gateway: number,
  { name, key }: ChannelKey = { ...DEFAULT_CHANNEL_KEY, name: 'LongFast' },
): Promise<Uint8Array> {
  const { case: variant, value } = packet.payloadVariant
  if (variant !== 'decoded') throw new TypeError('not a decoded packet')
  const encrypted = await applyChannelKey(key, packet, toBinary(DataSchema, value))
  const closed = {
    ...packet,
    channel: hashChannel(name, key),
    payloadVariant: { case: 'encrypted', value: encrypted },
  } as const
  const envelope = { packet: closed, channelId: name, gatewayId: formatNodeId(gateway) }
  return toBinary(ServiceEnvelopeSchema, create(ServiceEnvelopeSchema, envelope))
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the broker has no port')
  return address.port
}
