import { afterEach, describe, expect, it } from 'vitest'
import { MeshPacket_TransportMechanism } from '../../../src/meshtastic/gen/packet_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import type { RadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { LockdownStatus_State } from '../../../src/meshtastic/gen/stream_pb.ts'
import { encodeText } from '../../../src/meshtastic/link/to-radio.ts'
import type { Connect } from '../../../src/node/radio/connection.ts'
import { createLink, type LinkOptions } from '../../../src/node/radio/link.ts'
import { connectTcp } from '../../../src/node/radio/transports/tcp.ts'
import { readRecordings } from '../../meshtastic/recordings.ts'
import { START } from '../../support/app.ts'
import { packet, telemetry } from '../../support/mesh/mesh.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import {
  fromRadio,
  type RadioDevice,
  type RadioDeviceOptions,
  smallHandshake,
  startRadioDevice,
} from '../../support/radio/device.ts'
import { type WatchedLink, watchLink } from '../../support/radio/watched-link.ts'

const QUICK = { backoffFirstMs: 2, backoffMaxMs: 4 }

const running: { stop(): void | Promise<void> }[] = []

afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.stop()
})

async function startDevice(options?: RadioDeviceOptions): Promise<RadioDevice> {
  const device = await startRadioDevice(options)
  running.push(device)
  return device
}

function startLink(connect: Connect, options: Partial<LinkOptions> = {}): WatchedLink {
  const link = watchLink((events) =>
    createLink({ name: 'test', kind: 'tcp', connect, timings: QUICK, ...options, ...events }),
  )
  running.push(link)
  link.start()
  return link
}

function linkTo(device: RadioDevice, options?: Partial<LinkOptions>): WatchedLink {
  return startLink(connectTcp({ host: '127.0.0.1', port: device.port }), options)
}

function stateNames(link: WatchedLink): string[] {
  return link.states.map(({ state }) => state)
}

function textPayload(text: string): Uint8Array {
  const decoded = { portnum: 1, payload: new TextEncoder().encode(text) } as const
  return fromRadio({
    case: 'packet',
    value: { from: 5, to: BROADCAST, id: 9, rxRssi: -80, payloadVariant: { case: 'decoded', value: decoded } },
  })
}

function isText(text: string): (event: RadioEvent) => boolean {
  return (event) =>
    event.type === 'packet' && event.packet.payload.kind === 'text' && event.packet.payload.text === text
}

const smallHandshakeOfBoot = (boots: number) => (nonce: number) => smallHandshake(nonce, boots)

/** The radio's own telemetry. */
function uptimePayload(uptimeSeconds: number): Uint8Array {
  const said = telemetry({ variant: { case: 'deviceMetrics', value: { uptimeSeconds } } })
  return fromRadio(packet(said, { from: 0xa0cb0001, id: uptimeSeconds }))
}

const AGAIN = /^the radio has restarted, and the connection ended again/

const countPackets = (link: WatchedLink) => link.received.filter(({ event }) => event.type === 'packet').length

describe('a link to a radio', () => {
  it('wakes the radio, asks for its configuration and then is connected', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    const connected = await link.until('connected')
    expect(stateNames(link)).toStrictEqual(['connecting', 'handshake', 'connected'])
    const wake = Uint8Array.from([...Array(32).fill(0xc3), 0x94, 0xc3, 0])
    expect(device.receivedBytes().slice(0, 35)).toStrictEqual(wake)
    const { payloadVariant } = await device.next('wantConfigId')
    expect(payloadVariant.value).toBeGreaterThan(0)
    expect(connected).toMatchObject({
      reconnects: 0,
      reason: null,
      radio: { nodeNum: 0xa0cb0001, firmwareVersion: '2.8.0.test', hwModel: 'HELTEC_V3', role: 'ROUTER' },
    })
    expect(link.received.map(({ event }) => event.type)).toStrictEqual([
      'my-info',
      'metadata',
      'node-info',
      'node-info',
      'channel',
      'config-complete',
    ])
    await device.next('heartbeat')
    await link.untilEvent(({ type }) => type === 'queue-status')
    expect(link.info().queue).toStrictEqual({ free: 15, maxlen: 16 })
    expect(link.info().lastFrameAt).toBeGreaterThan(0)
  })

  it('passes on the bytes of nodes and packets, but channels without their keys', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    await link.until('connected')
    device.send(textPayload('hello'))
    expect((await link.untilEvent(isText('hello'))).raw).toStrictEqual(textPayload('hello'))
    const channel = link.received.find(({ event }) => event.type === 'channel')?.raw
    // The device also sent a key.
    expect(channel).toStrictEqual(fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { name: '' } } }))
    expect(link.received.find(({ event }) => event.type === 'node-info')?.raw).not.toBeNull()
  })

  it('reads a recorded handshake that arrives byte by byte', async () => {
    const recorded = readRecordings('fromradio')
      .filter(({ source }) => source === 'node-B')
      .slice(0, 45)
    const handshake = (nonce: number) => [
      ...recorded.map(({ bytes }) => bytes),
      fromRadio({ case: 'configCompleteId', value: nonce }),
    ]
    const link = linkTo(await startDevice({ handshake, byteByByte: true }))
    const { radio } = await link.until('connected')
    expect(radio).toStrictEqual({
      nodeNum: 2037093567,
      firmwareVersion: '2.8.0.lab',
      hwModel: 'PORTDUINO',
      role: 'CLIENT',
    })
    expect(link.received).toHaveLength(46)
  })

  it('hears every packet between debug text, noise and half frames', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    await link.until('connected')
    device.sendRaw(new TextEncoder().encode('\u001b[34mINFO\u001b[0m radio — ready\r\n'))
    device.send(textPayload('one'))
    device.sendRaw(Uint8Array.of(0x94, 0xc3, 0xff, 0xff, 0x94, 0x94, 0xc3, 0, 5, 0x12, 0xff))
    device.send(textPayload('two \u0014\u00c3'), textPayload('three'))
    await link.untilEvent(isText('one'))
    await link.untilEvent(isText('three'))
    expect(link.received.filter(({ event }) => event.type === 'packet')).toHaveLength(3)
  })

  it('reconnects after the radio hung up, and says why it was away', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    await link.until('connected')
    device.kick()
    const waiting = await link.until('waiting')
    expect(waiting.reason).toMatch(/^the radio (closed|reset) the connection$/)
    const again = await link.until('connected')
    expect(again).toMatchObject({ reconnects: 1, reason: null })
    expect(device.connections()).toBe(2)
  })

  it('leaves the radio to another client after it was disconnected twice, and tries again later', async () => {
    const device = await startDevice()
    const link = linkTo(device, { timings: { ...QUICK, busyFirstMs: 10 } })
    await link.until('connected')
    device.kick()
    await link.until('connected')
    device.kick()
    const busy = await link.until('busy')
    expect(busy.reason).toBe('another client holds this radio')
    expect(device.connections()).toBe(2)
    await link.until('connected')
    device.kick()
    await link.until('busy')
    expect(device.connections()).toBe(3)
  })

  it('stays with a radio that restarts twice within 30 s and refuses connections meanwhile', async () => {
    const device = await startDevice()
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {}, random: () => 0.5 })
    for (let count = 0; count < 2; count += 1) {
      await link.until('connected')
      await device.switchOff()
      await link.until('waiting')
      clock.advance(5000)
      expect((await link.until('waiting')).reason).toBe('the radio refuses connections; it may be restarting')
      await device.switchOn()
      clock.advance(9000)
    }
    await link.until('connected')
    expect(clock.now() - START).toBeLessThan(30_000)
    expect(stateNames(link)).not.toContain('busy')
  })

  it.each([
    ['its boot count', (boots: number) => smallHandshakeOfBoot(boots), () => []],
    ['its uptime', () => smallHandshake, (boots: number) => [uptimePayload(1000 - boots)]],
  ])('stays with a radio that restarts too quickly to refuse, known by %s', async (_, handshakeOf, saysOf) => {
    let boots = 1
    const device = await startDevice({ handshake: (nonce) => handshakeOf(boots)(nonce) })
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {}, random: () => 0.5 })
    for (; boots <= 5; boots += 1) {
      await link.until('connected')
      const says = saysOf(boots)
      device.send(...says)
      if (says.length > 0) await expect.poll(() => countPackets(link)).toBe(boots)
      device.kick()
      await link.until('waiting')
      // Not more: ten seconds later the attempt would have taken too long.
      clock.advance(500 * 2 ** boots)
    }
    expect((await link.until('connected')).reconnects).toBe(5)
    expect(stateNames(link)).not.toContain('busy')
    expect(link.states.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(AGAIN))
  })

  it('no longer believes in another client once the radio refuses connections', async () => {
    const device = await startDevice()
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {}, random: () => 0.5 })
    await link.until('connected')
    device.kick()
    await link.until('waiting')
    clock.advance(2000)
    await link.until('connected')
    device.kick()
    await link.until('busy')
    await device.switchOff()
    clock.advance(15_000)
    expect((await link.until('waiting')).reason).toBe('the radio refuses connections; it may be restarting')
    await device.switchOn()
    clock.advance(2000)
    await link.until('connected')
    device.kick()
    expect((await link.until('waiting')).reason).toMatch(AGAIN)
  })

  it('says that a radio is locked, and takes none of what it has emptied for real', async () => {
    let isLocked = true
    const status = (state: LockdownStatus_State) => fromRadio({ case: 'lockdownStatus', value: { state } })
    const device = await startDevice({
      handshake: (nonce) =>
        isLocked
          ? [
              fromRadio({ case: 'myInfo', value: { myNodeNum: 0xa0cb0001 } }),
              fromRadio({ case: 'metadata', value: {} }),
              fromRadio({ case: 'channel', value: {} }),
              fromRadio({
                case: 'config',
                value: { payloadVariant: { case: 'lora', value: { region: 1, txEnabled: false } } },
              }),
              fromRadio({ case: 'configCompleteId', value: nonce }),
              status(LockdownStatus_State.LOCKED),
            ]
          : smallHandshake(nonce),
    })
    const messages: string[] = []
    const onMessage: LinkOptions['onMessage'] = ({ payloadVariant }) => messages.push(String(payloadVariant.case))
    const link = linkTo(device, { onMessage })
    expect((await link.until('connected')).reason).toMatch(/^the radio is locked/)
    await expect.poll(() => messages).toContain('lockdownStatus')
    expect(messages).toStrictEqual(['myInfo', 'lockdownStatus'])
    expect(link.info()).toMatchObject({ txEnabled: null, radio: { firmwareVersion: null } })
    isLocked = false
    device.send(status(LockdownStatus_State.UNLOCKED))
    expect(await link.until('connected')).toMatchObject({ reason: null, radio: { firmwareVersion: '2.8.0.test' } })
    expect(messages).toContain('channel')
  })

  it('gives up on a radio that falls silent, and reconnects', async () => {
    const device = await startDevice()
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {} })
    await link.until('connected')
    for (let count = 0; count < 5; count += 1) {
      if (count > 0) clock.advance(60_000)
      await device.next('heartbeat')
      await expect.poll(() => link.info().lastFrameAt).toBe(clock.now())
    }
    expect(link.info()).toMatchObject({ state: 'connected', reconnects: 0 })
    device.setSilent(true)
    clock.advance(150_000)
    expect((await link.until('waiting')).reason).toBe('the radio has gone silent')
    device.setSilent(false)
    clock.advance(2000)
    expect((await link.until('connected')).reconnects).toBe(1)
  })

  it('asks again when the handshake stalls', async () => {
    const nonces: number[] = []
    const handshake = (nonce: number) => {
      nonces.push(nonce)
      return nonces.length === 1 ? smallHandshake(nonce).slice(0, 2) : smallHandshake(nonce)
    }
    const device = await startDevice({ handshake })
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {} })
    await link.untilEvent(({ type }) => type === 'metadata')
    clock.advance(30_000)
    await link.until('connected')
    expect(new Set(nonces).size).toBe(2)
    expect(device.connections()).toBe(1)
  })

  it('reconnects when the handshake never ends', async () => {
    let asked = 0
    const handshake = (nonce: number) => {
      asked += 1
      return asked <= 2 ? [] : smallHandshake(nonce)
    }
    const device = await startDevice({ handshake })
    const clock = createManualClock(START)
    const link = linkTo(device, { clock, timings: {} })
    await device.next('wantConfigId')
    clock.advance(30_000)
    await device.next('wantConfigId')
    clock.advance(30_000)
    expect((await link.until('waiting')).reason).toBe('the handshake has stalled')
    clock.advance(2000)
    await link.until('connected')
    expect(device.connections()).toBe(2)
  })

  it('ignores a config_complete that somebody else asked for', async () => {
    const handshake = (nonce: number) => [
      fromRadio({ case: 'configCompleteId', value: nonce - 1 }),
      ...smallHandshake(nonce),
    ]
    const link = linkTo(await startDevice({ handshake }))
    const { radio } = await link.until('connected')
    expect(radio?.nodeNum).toBe(0xa0cb0001)
  })

  it('reports that nothing listens at the address', async () => {
    const device = await startRadioDevice()
    await device.stop()
    const link = linkTo(device)
    expect((await link.until('waiting')).reason).toBe('the radio refuses connections')
    await link.until('connecting')
    expect(link.info().radio).toBeNull()
  })

  it('shows a restart as a restart, and never as another client', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    for (let count = 0; count < 3; count += 1) {
      await link.until('connected')
      link.expectRestart()
      device.kick()
      expect((await link.until('restarting')).reason).toBe('the radio restarts')
    }
    await link.until('connected')
    expect(stateNames(link)).not.toContain('busy')
    expect(stateNames(link)).not.toContain('waiting')
  })

  it('reads everything again when the radio reports a reboot', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    await link.until('connected')
    device.send(fromRadio({ case: 'rebooted', value: true }))
    await link.until('restarting')
    await link.until('connected')
    expect(device.connections()).toBe(1)
    expect(link.received.filter(({ event }) => event.type === 'config-complete')).toHaveLength(2)
  })

  it('sends when it is connected and refuses when it is not', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    const text = encodeText({ to: BROADCAST, channel: 0, id: 77, hopLimit: 3, wantAck: true, text: 'hi' })
    expect(link.send(text)).toBe(false)
    await link.until('connected')
    expect(link.send(text)).toBe(true)
    expect((await device.next('packet')).payloadVariant.value).toMatchObject({ id: 77 })
    const accepted = await link.untilEvent((event) => event.type === 'queue-status' && event.packetId === 77)
    expect(accepted.event).toMatchObject({ free: 15, maxlen: 16, result: 0 })
    link.stop()
    expect(link.send(text)).toBe(false)
    expect(link.info().state).toBe('stopped')
  })

  it('marks what the radio replays from its memory', async () => {
    const device = await startDevice()
    const link = linkTo(device)
    await link.until('connected')
    const position = { portnum: 3, payload: new Uint8Array(0) } as const
    const way = { transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_LORA } as const
    const value = { from: 6, id: 1, ...way, payloadVariant: { case: 'decoded', value: position } } as const
    device.send(fromRadio({ case: 'packet', value }), fromRadio({ case: 'packet', value: { ...value, rxRssi: -90 } }))
    await link.untilEvent((event) => event.type === 'packet' && event.packet.rssi === -90)
    const flags = link.received.flatMap(({ event }) => (event.type === 'packet' ? [event.replayed] : []))
    expect(flags).toStrictEqual([true, false])
  })
})
