import { readFileSync } from 'node:fs'
import { connectHttp } from '../../src/node/radio/transports/http.ts'
import { connectSerial } from '../../src/node/radio/transports/serial.ts'
import { connectTcp } from '../../src/node/radio/transports/tcp.ts'
import { startHttpDevice } from '../support/radio/http-device.ts'
import { startSerialLine } from '../support/radio/serial-line.ts'
import { radioTransportContract } from './radio-transport.ts'

const pem = (name: string) => readFileSync(new URL(`../node/fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
const tls = { key: pem('broker-key'), cert: pem('broker') }

radioTransportContract('TCP', {
  gone: /^the radio (closed|reset) the connection$/,
  open: async (device) => ({
    connect: connectTcp({ host: '127.0.0.1', port: device.port }),
    unplug: device.switchOff,
    plug: device.switchOn,
    untilClosed: device.untilClosed,
    stop: async () => {},
  }),
})

radioTransportContract('serial port', {
  gone: /^the radio was unplugged, or closed the connection$/,
  async open(device) {
    const line = await startSerialLine(device.port)
    return { ...line, connect: connectSerial(line) }
  },
})

radioTransportContract('HTTP', {
  gone: /^the radio (reset the connection|refuses connections)/,
  async open(device) {
    const web = await startHttpDevice(device.port)
    const connect = connectHttp({ url: web.url, fingerprint: null, pollMs: 2 })
    return { ...web, connect, unplug: web.switchOff, plug: web.switchOn }
  },
})

radioTransportContract('HTTPS', {
  gone: /^the radio (reset the connection|refuses connections)/,
  async open(device) {
    const web = await startHttpDevice(device.port, tls)
    const connect = connectHttp({ url: web.url, fingerprint: null, pollMs: 2 })
    return { ...web, connect, unplug: web.switchOff, plug: web.switchOn }
  },
})
