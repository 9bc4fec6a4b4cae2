import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { Config_LoRaConfig_RegionCode as Region } from '../../../src/meshtastic/gen/config_pb.ts'
import { LockdownStatus_State } from '../../../src/meshtastic/gen/stream_pb.ts'
import { systemClock } from '../../../src/node/clock.ts'
import type { Connect } from '../../../src/node/radio/connection.ts'
import { createLink } from '../../../src/node/radio/link.ts'
import { probe, type Probe } from '../../../src/node/radio/probe/probe.ts'
import { connectHttp } from '../../../src/node/radio/transports/http.ts'
import { connectSerial } from '../../../src/node/radio/transports/serial.ts'
import { connectTcp } from '../../../src/node/radio/transports/tcp.ts'
import { RADIO_PROBLEMS, type RadioProblem } from '../../../src/shared/mesh/radio-problems.ts'
import { START } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { fromRadio, smallHandshake, startRadioDevice } from '../../support/radio/device.ts'
import { startHttpDevice } from '../../support/radio/http-device.ts'
import { readRadio } from '../../support/radio/recorded.ts'
import { startSerialLine } from '../../support/radio/serial-line.ts'
import { watchLink } from '../../support/radio/watched-link.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { portOf } from '../../support/servers/port-of.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

const lora = fromRadio({
  case: 'config',
  value: { payloadVariant: { case: 'lora', value: { region: Region.EU_868, usePreset: true } } },
})

/** My-info, metadata, one channel, two nodes, the region, config_complete. */
const handshake = (nonce: number) => [...smallHandshake(nonce).slice(0, -1), lora, ...smallHandshake(nonce).slice(-1)]

async function startDevice(options: Parameters<typeof startRadioDevice>[0] = { handshake }) {
  const device = await startRadioDevice(options)
  endings.push(() => device.stop())
  return device
}

/** A server that is no radio: what it does with a client, and with the bytes of one. */
async function startOther(onClient: (socket: Socket) => void): Promise<Connect> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onClient(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return connectTcp({ host: '127.0.0.1', port: portOf(server) })
}

const failure = (problem: RadioProblem): Probe => ({ ok: false, problem, reason: RADIO_PROBLEMS[problem] })

/** The result at the end of its time, without waiting for it; `isReady` once the peer has said all that it will say. */
async function probeToTheEnd(connect: Connect, isReady: () => boolean): Promise<Probe> {
  const clock = createManualClock(START)
  const result = probe(connect, { clock })
  await expect.poll(isReady).toBe(true)
  clock.advance(19_999)
  const early = await Promise.race([result.then(() => 'early'), Promise.resolve('on time')])
  expect(early).toBe('on time')
  clock.advance(1)
  return result
}

describe('probing a radio', () => {
  const TEST_RADIO = {
    ok: true,
    radio: {
      nodeNum: 0xa0cb0001,
      longName: 'Test Radio',
      shortName: 'TR',
      firmwareVersion: '2.8.0.test',
      hwModel: 'HELTEC_V3',
      region: 'EU_868',
    },
  }

  it('says who it is, by TCP, and closes', async () => {
    const device = await startDevice()
    const result = await probe(connectTcp({ host: '127.0.0.1', port: device.port }), { clock: systemClock })
    expect(result).toStrictEqual(TEST_RADIO)
    await device.untilClosed()
  })

  it('says who it is, by a serial port, and closes', async () => {
    const device = await startDevice()
    const line = await startSerialLine(device.port)
    endings.push(() => line.stop())
    const closed = line.untilClosed()
    expect(await probe(connectSerial(line), { clock: systemClock })).toStrictEqual(TEST_RADIO)
    await closed
  })

  it('says who it is, by HTTP, and closes', async () => {
    const device = await startDevice()
    const web = await startHttpDevice(device.port)
    endings.push(() => web.stop())
    const connect = connectHttp({ url: web.url, fingerprint: null, pollMs: 2 })
    expect(await probe(connect, { clock: systemClock })).toStrictEqual(TEST_RADIO)
    await web.untilClosed()
  })

  it('knows the radio of a recording by the beginning of it', async () => {
    const device = await startDevice({ handshake: readRadio('node-B').handshake })
    const result = await probe(connectTcp({ host: '127.0.0.1', port: device.port }), { clock: systemClock })
    expect(result).toMatchObject({
      ok: true,
      radio: { nodeNum: 2037093567, firmwareVersion: '2.8.0.lab', hwModel: 'PORTDUINO', longName: expect.any(String) },
    })
  })

  it('asks once more, because the radio may have been asleep', async () => {
    const device = await startDevice()
    device.setSilent(true)
    const clock = createManualClock(START)
    const result = probe(connectTcp({ host: '127.0.0.1', port: device.port }), { clock })
    await device.next('wantConfigId')
    device.setSilent(false)
    clock.advance(5000)
    expect(await result).toStrictEqual(TEST_RADIO)
  })

  it.each<[string, RadioProblem, () => Promise<Connect> | Connect]>([
    ['a name that nobody knows', 'unknown_name', () => connectTcp({ host: 'radio.invalid', port: 4403 })],
    ['a port where nothing listens', 'refused', async () => connectTcp({ host: '127.0.0.1', port: await freePort() })],
    ['a web address where nothing listens', 'refused', async () => http(`http://127.0.0.1:${await freePort()}`)],
    ['a device that is not plugged in', 'no_device', () => connectSerial({ device: '/dev/serial/by-id/usb-nobody' })],
    ['a file', 'no_serial_port', () => connectSerial({ device: import.meta.filename })],
    ['a client that is thrown out at once', 'busy', () => startOther((socket) => socket.end())],
    ['a server that speaks first', 'not_a_radio', () => startOther((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))],
    [
      'a web server on the port',
      'not_a_radio',
      () => startOther((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))),
    ],
    ['a TCP server that is asked for HTTP', 'not_a_radio', async () => http(await otherUrl('http', '\u0001\u0002'))],
    ['a server without TLS', 'no_tls', async () => http(await otherUrl('https', 'HTTP/1.1 400 Bad Request\r\n\r\n'))],
  ])('names the trouble: %s', async (_name, problem, open) => {
    expect(await probe(await open(), { clock: systemClock })).toStrictEqual(failure(problem))
  })

  const http = (url: string) => connectHttp({ url, fingerprint: null, pollMs: 2 })

  async function otherUrl(scheme: string, answer: string): Promise<string> {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(answer))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    endings.push(() => server.close())
    return `${scheme}://127.0.0.1:${portOf(server)}`
  }

  it('knows a web server that is no radio', async () => {
    const web = await startHttpDevice(await freePort())
    endings.push(() => web.stop())
    web.pretend({ status: 200, type: 'text/html', body: '<title>Router</title>' })
    expect(await probe(http(web.url), { clock: systemClock })).toStrictEqual(failure('not_a_radio'))
    web.pretend({ status: 404, type: 'application/x-protobuf', body: '' })
    expect(await probe(http(web.url), { clock: systemClock })).toStrictEqual(failure('not_a_radio'))
  })

  // MeshCore's companion firmware: MyMesh.cpp (CMD_DEVICE_QUERY, RESP_CODE_DEVICE_INFO) and SerialWifiInterface.cpp. RNode:
  // Framing.h of its firmware (CMD_DETECT).
  it.each<[RadioProblem, (bytes: Buffer) => Uint8Array | null]>([
    [
      'meshcore',
      (bytes) =>
        bytes.subarray(0, 5).equals(Buffer.of(0x3c, 2, 0, 22, 3))
          ? Uint8Array.of(0x3e, 82, 0, 13, ...new Uint8Array(81).fill(0x41))
          : null,
    ],
    ['rnode', (bytes) => (bytes.includes(Buffer.of(0xc0, 8, 0x73, 0xc0)) ? Uint8Array.of(0xc0, 8, 0x46, 0xc0) : null)],
    ['not_a_radio', () => new TextEncoder().encode('$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M*47\r\n')],
    ['no_answer', () => null],
  ])('knows a device of another kind by its answer: %s', async (problem, answer) => {
    let asked = 0
    const connect = await startOther((socket) =>
      socket.once('data', (bytes) => {
        const said = answer(bytes)
        if (said === null) asked += 1
        else socket.write(said, () => (asked += 1))
      }),
    )
    let heard = 0
    const counted: Connect = (events) =>
      connect({
        ...events,
        onData(bytes) {
          heard += bytes.length
          events.onData(bytes)
        },
      })
    const isReady = () => asked > 0 && (problem === 'no_answer' || heard > 3)
    expect(await probeToTheEnd(counted, isReady)).toStrictEqual(failure(problem))
  })

  it('names firmware that is too old, or says nothing about itself', async () => {
    const old = (nonce: number) => [
      fromRadio({ case: 'myInfo', value: { myNodeNum: 1 } }),
      fromRadio({ case: 'metadata', value: { firmwareVersion: '2.2.24.e6a2c06' } }),
      fromRadio({ case: 'configCompleteId', value: nonce }),
    ]
    const older = (nonce: number) => old(nonce).filter((_, index) => index !== 1)
    for (const each of [old, older]) {
      const device = await startDevice({ handshake: each })
      const connect = connectTcp({ host: '127.0.0.1', port: device.port })
      expect(await probe(connect, { clock: systemClock })).toStrictEqual(failure('old_firmware'))
    }
  })

  it('names a radio that is locked, and one that does not finish', async () => {
    const locked = await startDevice({
      handshake: () => [
        fromRadio({ case: 'myInfo', value: { myNodeNum: 1 } }),
        fromRadio({ case: 'lockdownStatus', value: { state: LockdownStatus_State.LOCKED } }),
      ],
    })
    const connect = connectTcp({ host: '127.0.0.1', port: locked.port })
    expect(await probe(connect, { clock: systemClock })).toStrictEqual(failure('locked'))
    const half = await startDevice({ handshake: () => smallHandshake(1).slice(0, 2) })
    let heard = 0
    const counted: Connect = (events) =>
      connectTcp({ host: '127.0.0.1', port: half.port })({
        ...events,
        onData(bytes) {
          heard += 1
          events.onData(bytes)
        },
      })
    expect(await probeToTheEnd(counted, () => heard > 0)).toStrictEqual(failure('unfinished'))
  })

  it('ends in the flood of a device that never stops', async () => {
    const noise = new Uint8Array(65_536).fill(0x41)
    const clock = createManualClock(START)
    let heard = 0
    const connect = await startOther((socket) => {
      const pour = () => {
        while (!socket.destroyed && socket.write(noise));
      }
      socket.on('drain', pour)
      pour()
    })
    const counted: Connect = (events) =>
      connect({
        ...events,
        onData(bytes) {
          heard += bytes.length
          events.onData(bytes)
        },
      })
    const result = probe(counted, { clock })
    await expect.poll(() => heard).toBeGreaterThan(4_000_000)
    clock.advance(20_000)
    expect(await result).toStrictEqual(failure('not_a_radio'))
  })

  it('hears nothing more of a radio that cannot be reached at all', async () => {
    const never: Connect = () => ({ write() {}, destroy() {} })
    expect(await probeToTheEnd(never, () => true)).toStrictEqual(failure('unreachable'))
  })
})

describe('a link says the same', () => {
  const linkTo = (connect: Connect) => {
    const link = watchLink((events) =>
      createLink({ name: 'radio', kind: 'tcp', connect, timings: { backoffFirstMs: 2, backoffMaxMs: 4 }, ...events }),
    )
    endings.push(() => link.stop())
    link.start()
    return link
  }

  it('of a device that is no radio', async () => {
    const link = linkTo(await startOther((socket) => socket.end('220 mail.example ESMTP\r\n')))
    expect((await link.until('waiting')).reason).toBe(RADIO_PROBLEMS.not_a_radio)
  })

  it('of a MeshCore radio that tells of a message', async () => {
    const link = linkTo(await startOther((socket) => socket.end(Uint8Array.of(0x3e, 1, 0, 0x83))))
    expect((await link.until('waiting')).reason).toBe(RADIO_PROBLEMS.meshcore)
  })

  it('of firmware that is too old, while it is connected', async () => {
    const device = await startDevice({
      handshake: (nonce) => [
        fromRadio({ case: 'myInfo', value: { myNodeNum: 1 } }),
        fromRadio({ case: 'metadata', value: { firmwareVersion: '2.2.24.e6a2c06' } }),
        fromRadio({ case: 'configCompleteId', value: nonce }),
      ],
    })
    const link = linkTo(connectTcp({ host: '127.0.0.1', port: device.port }))
    expect((await link.until('connected')).reason).toBe(RADIO_PROBLEMS.old_firmware)
  })
})
