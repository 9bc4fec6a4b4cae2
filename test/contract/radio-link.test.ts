import type { MeshPacket } from '../../src/meshtastic/gen/packet_pb.ts'
import { createLink } from '../../src/node/radio/link.ts'
import { createMqttLink } from '../../src/node/radio/mqtt/mqtt.ts'
import { connectHttp } from '../../src/node/radio/transports/http.ts'
import { connectSerial } from '../../src/node/radio/transports/serial.ts'
import { connectTcp } from '../../src/node/radio/transports/tcp.ts'
import { freePort } from '../support/servers/free-port.ts'
import { startHttpDevice } from '../support/radio/http-device.ts'
import { startMqttBroker } from '../support/radio/mqtt-broker.ts'
import { fromRadio, startRadioDevice } from '../support/radio/device.ts'
import { startSerialLine } from '../support/radio/serial-line.ts'
import type { LinkEvents } from '../support/radio/watched-link.ts'
import { radioLinkContract } from './radio-link.ts'

const QUICK = { backoffFirstMs: 2, backoffMaxMs: 4 }

const lonelyPort = await freePort()

const tcpLink = (port: number) => (events: LinkEvents) =>
  createLink({
    name: 'radio',
    kind: 'tcp',
    connect: connectTcp({ host: '127.0.0.1', port }),
    timings: QUICK,
    ...events,
  })

radioLinkContract('TCP', 'tcp', {
  async startPeer() {
    const device = await startRadioDevice()
    const peer = {
      send: (value: MeshPacket) => device.send(fromRadio({ case: 'packet', value })),
      sendNoise: (bytes: Uint8Array) => device.sendRaw(bytes),
      hangUp: () => device.kick(),
      stop: () => device.stop(),
    }
    return { peer, makeLink: tcpLink(device.port) }
  },
  makeLonelyLink: tcpLink(lonelyPort),
})

const serialLink = (device: string) => (events: LinkEvents) =>
  createLink({ name: 'radio', kind: 'serial', connect: connectSerial({ device }), timings: QUICK, ...events })

radioLinkContract('serial', 'serial', {
  lost: /^the radio was unplugged, or closed the connection$|^there is no such serial device/,
  lonely: /^there is no such serial device: plug it in/,
  async startPeer() {
    const device = await startRadioDevice()
    const line = await startSerialLine(device.port)
    const peer = {
      send: (value: MeshPacket) => device.send(fromRadio({ case: 'packet', value })),
      sendNoise: (bytes: Uint8Array) => device.sendRaw(bytes),
      hangUp: () => device.kick(),
      async stop() {
        await line.stop()
        await device.stop()
      },
    }
    return { peer, makeLink: serialLink(line.device) }
  },
  makeLonelyLink: serialLink('/dev/serial/by-id/usb-of-nobody'),
})

const httpLink = (url: string) => (events: LinkEvents) =>
  createLink({
    name: 'radio',
    kind: 'http',
    connect: connectHttp({ url, fingerprint: null, pollMs: 2 }),
    timings: QUICK,
    ...events,
  })

radioLinkContract('HTTP', 'http', {
  async startPeer() {
    const device = await startRadioDevice()
    const web = await startHttpDevice(device.port)
    const peer = {
      send: (value: MeshPacket) => device.send(fromRadio({ case: 'packet', value })),
      sendNoise: (bytes: Uint8Array) => device.sendRaw(bytes),
      hangUp: () => web.hangUp(),
      async stop() {
        await web.stop()
        await device.stop()
      },
    }
    return { peer, makeLink: httpLink(web.url) }
  },
  makeLonelyLink: httpLink(`http://127.0.0.1:${lonelyPort}`),
})

const mqttLink = (url: string) => (events: LinkEvents) =>
  createMqttLink({ name: 'broker', url, topics: ['msh/#'], keys: [], timings: QUICK, ...events })

radioLinkContract('MQTT', 'mqtt', {
  async startPeer() {
    const broker = await startMqttBroker()
    const peer = {
      send: (packet: MeshPacket) => broker.publishPacket(packet),
      sendNoise: (bytes: Uint8Array) => broker.publish('msh/EU_868/2/e/LongFast/!a0cb0001', bytes),
      hangUp: () => broker.kick(),
      stop: () => broker.stop(),
    }
    return { peer, makeLink: mqttLink(broker.url) }
  },
  makeLonelyLink: mqttLink(`mqtt://127.0.0.1:${lonelyPort}`),
})
