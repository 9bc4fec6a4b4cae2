import { once } from 'node:events'
import { createConnection } from 'node:net'
import { MeshDevice, Protobuf, Types, Utils } from '@meshtastic/core'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { type AppPort, PRIVATE_KEY, startAppPort } from '../../../support/radio/app-port.ts'
import { FAR, OWN, until } from '../../../support/radio/service.ts'

// Meshtastic's own client, unchanged: a development tool (GPL), no part of the product.

let port: AppPort
afterEach(() => port.stop())

/** The client's package has no types of its messages. */
type Section = { readonly payloadVariant: { readonly case?: string; readonly value?: unknown } }

async function connectOfficial() {
  const socket = createConnection({ port: port.info().port, host: '127.0.0.1' })
  await once(socket, 'connect')
  const fromSocket = new ReadableStream<Uint8Array>({
    start(controller) {
      socket.on('data', (bytes) => controller.enqueue(bytes))
      socket.on('close', () => controller.close())
    },
  })
  const toSocket = new WritableStream<Uint8Array>({ write: (bytes) => void socket.write(bytes) })
  const toDevice = Utils.toDeviceStream()
  void toDevice.readable.pipeTo(toSocket)
  const fromDevice: ReadableStream<Types.DeviceOutput> = fromSocket.pipeThrough(Utils.fromDeviceStream())
  const transport = {
    toDevice: toDevice.writable,
    fromDevice,
    disconnect: async () => void socket.destroy(),
  }
  onTestFinished(() => void socket.destroy())
  const client = new MeshDevice(transport, 4711)
  client.log.settings.minLevel = 7
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const seen = {
    nodes: [] as number[],
    channels: [] as number[],
    configs: [] as string[],
    modules: [] as string[],
    own: 0,
  }
  client.events.onMyNodeInfo.subscribe(({ myNodeNum }: { myNodeNum: number }) => void (seen.own = myNodeNum))
  client.events.onNodeInfoPacket.subscribe(({ num }: { num: number }) => void seen.nodes.push(num))
  client.events.onChannelPacket.subscribe(({ role }: { role: number }) => void seen.channels.push(role))
  client.events.onConfigPacket.subscribe(
    ({ payloadVariant }: Section) => void seen.configs.push(String(payloadVariant.case)),
  )
  client.events.onModuleConfigPacket.subscribe(
    ({ payloadVariant }: Section) => void seen.modules.push(String(payloadVariant.case)),
  )
  const configured = new Promise<void>((resolve) => {
    client.events.onDeviceStatus.subscribe((status: Types.DeviceStatusEnum) => {
      if (status === Types.DeviceStatusEnum.DeviceConfigured) resolve()
    })
  })
  void client.configure().catch(() => {})
  await configured
  return { client, seen, socket }
}

describe('the official JavaScript client', () => {
  it('completes its handshake', async () => {
    port = await startAppPort()
    const { seen } = await connectOfficial()
    expect(seen).toMatchObject({
      own: OWN,
      channels: [1, 2, 0, 0, 0, 0, 0, 0],
      configs: ['device', 'network', 'lora', 'bluetooth', 'security'],
      modules: ['mqtt', 'telemetry'],
    })
    expect(seen.nodes).toHaveLength(3)
  })

  it('sends a text and gets its acknowledgement', async () => {
    port = await startAppPort()
    const { client } = await connectOfficial()
    port.onPacket(({ id }) => port.answers(id, 0, FAR))
    const id = await client.sendText('hello from the app', FAR, true)
    expect(await port.sent()).toMatchObject({ id, to: FAR, wantAck: true })
    await until(() =>
      expect(port.store.sqlite.prepare('select text, sent_by, delivery_state s from messages').all()).toStrictEqual([
        { text: 'hello from the app', sent_by: 'admin', s: 'delivered' },
      ]),
    )
  })

  it('hears a text', async () => {
    port = await startAppPort()
    const { client } = await connectOfficial()
    const heard = new Promise((resolve) => {
      client.events.onMessagePacket.subscribe(resolve)
    })
    const payload = new TextEncoder().encode('from afar')
    port.hears({
      from: FAR,
      to: 0xffffffff,
      id: 3,
      rxRssi: -70,
      payloadVariant: { case: 'decoded', value: { portnum: PortNum.TEXT_MESSAGE_APP, payload } },
    })
    expect(await heard).toMatchObject({ from: FAR, data: 'from afar' })
  })

  it('traces a route', async () => {
    port = await startAppPort()
    const { client } = await connectOfficial()
    const traced = new Promise((resolve) => {
      client.events.onTraceRoutePacket.subscribe(resolve)
    })
    port.onPacket(({ id }) => {
      port.answers(id)
      const value = { portnum: PortNum.TRACEROUTE_APP, payload: Uint8Array.of(0x12, 1, 8), requestId: id }
      port.hears({ from: FAR, to: OWN, id: 98, rxRssi: -70, payloadVariant: { case: 'decoded', value } })
    })
    await client.traceRoute(FAR)
    expect(await traced).toMatchObject({ from: FAR, data: { snrTowards: [8] } })
  })

  it('reads the configuration, without the private key', async () => {
    port = await startAppPort()
    const { client } = await connectOfficial()
    const read = new Promise<Section>((resolve) => {
      client.events.onConfigPacket.subscribe(resolve)
    })
    await client.getConfig(Protobuf.Admin.AdminMessage_ConfigType.SECURITY_CONFIG)
    const { payloadVariant } = await read
    expect(payloadVariant.case).toBe('security')
    expect(payloadVariant.value).not.toMatchObject({ privateKey: PRIVATE_KEY })
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('is told that it may not change the configuration, and changes it where it may', async () => {
    port = await startAppPort()
    const { client, socket } = await connectOfficial()
    await expect(
      client.setOwner(Object({ $typeName: 'meshtastic.User', longName: 'Mine', shortName: 'M' })),
    ).rejects.toMatchObject({ error: 33 })
    await expect(client.factoryResetDevice()).rejects.toMatchObject({ error: 33 })
    expect(port.packetsSent()).toStrictEqual([])
    socket.destroy()
    await port.stop()
    port = await startAppPort({ mayConfigure: true })
    port.onPacket(({ id }) => port.answers(id))
    const other = await connectOfficial()
    await other.client.setOwner(Object({ $typeName: 'meshtastic.User', longName: 'Mine', shortName: 'M' }))
    expect(port.requests()).toMatchObject([{ request: 'set_owner', outcome: 'passed' }])
  })
})
