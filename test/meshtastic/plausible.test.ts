import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { WaypointSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { MapReportSchema } from '../../src/meshtastic/gen/mqtt_pb.ts'
import type { MeshPacketSchema } from '../../src/meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { FromRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import { numberChannel } from '../../src/meshtastic/channel-identity.ts'
import { isName } from '../../src/meshtastic/plausible.ts'
import { type RadioEvent, toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { nodeStatus, packet, position, telemetry, text, user } from '../support/mesh/mesh.ts'
import type { FromRadioVariant } from '../support/radio/device.ts'

const NOW = Date.UTC(2026, 10, 21, 13)

type PacketInit = MessageInitShape<typeof MeshPacketSchema>

const read = (payloadVariant: FromRadioVariant): RadioEvent =>
  toRadioEvent(create(FromRadioSchema, { payloadVariant }), NOW, false)

function said(data: Parameters<typeof packet>[0], more: Omit<PacketInit, '$typeName' | '$unknown'> = {}) {
  const event = read(packet(data, more))
  if (event.type !== 'packet') throw new Error('no packet')
  return { packet: event.packet, refused: event.refused }
}

it('values that a radio can send are unchanged', () => {
  const most = { hopStart: 7, hopLimit: 7, rxSnr: -20, rxRssi: -128 }
  expect(said(text('hi'), most)).toMatchObject({ refused: undefined, packet: { hopsAway: 0, hopLimit: 7, rssi: -128 } })
  const power = { batteryLevel: 101, voltage: 4.2, channelUtilization: 100, airUtilTx: 0 }
  expect(said(telemetry({ variant: { case: 'deviceMetrics', value: power } })).refused).toBeUndefined()
  expect(said(position({ latitudeI: -900000000, longitudeI: 1800000000, precisionBits: 32 })).refused).toBeUndefined()
  for (const name of ['Łódź 🦉', 'עיר', '👨‍👩‍👧', '🏴󠁧󠁢󠁥󠁮󠁧󠁿 hill', '👩🏽\u200d🚒', 'می\u200cخواهم'])
    expect(said(user({ longName: name })).packet.payload).toMatchObject({ user: { longName: name } })
})

it.each([
  [{ hopStart: 8, hopLimit: 3 }, ['hopStart'], { hopStart: 0, hopLimit: 3, hopsAway: null }],
  [{ hopStart: 7, hopLimit: 4_000_000 }, ['hopLimit'], { hopStart: 7, hopLimit: 0, hopsAway: null }],
  [{ channel: 0xffffff00 }, ['channel'], { channel: 256 }],
  [{ rxSnr: 1000 }, ['snr'], { snr: null, rssi: -70 }],
  [{ rxRssi: 2_000_000 }, ['rssi'], { snr: 6.25, rssi: null }],
])('in a packet with %j the value is left out, and its texts stay', (more, refused, left) => {
  expect(said(text('hi'), more)).toMatchObject({ refused, packet: { ...left, payload: { kind: 'text', text: 'hi' } } })
})

it.each([
  ['Hi\u0007ll', 'Hill'],
  ['\u001b Hill', 'Hill'],
  ['two\nlines', 'twolines'],
  ['\u0007\u202egnol', 'gnol'],
  ['a\u2066b', 'ab'],
  ['Hi\u200bll', 'Hill'],
  ['Hi\u200dll', 'Hill'],
  ['Hill\ufe0f', 'Hill'],
  [`${'x'.repeat(39)}\u200b`, 'x'.repeat(39)],
])('of the name %j, what is hidden is removed and marked, and the rest stays', (longName, left) => {
  const { packet: heard, refused } = said(user({ longName, shortName: 'OK' }))
  expect(refused).toStrictEqual(['longName'])
  expect(heard.payload).toMatchObject({ user: { longName: left, shortName: 'OK', isNameAltered: true } })
})

it.each(['\u0001', '\u3164', '\u202e \u200b', 'x'.repeat(40)])('the name %j is none', (longName) => {
  const { packet: heard, refused } = said(user({ longName, shortName: 'OK' }))
  expect(refused).toStrictEqual(['longName'])
  expect(heard.payload).toMatchObject({ user: { longName: null, shortName: 'OK' } })
  expect(heard.payload).not.toHaveProperty('user.isNameAltered')
})

it('a status is one line: hidden characters are removed, and one that no packet can carry is dropped', () => {
  const status = (words: string) => {
    const { packet: heard, refused } = said(nodeStatus(words))
    return [heard.payload, refused]
  }
  expect(status('At the hut 🏔️ until six')).toStrictEqual([
    { kind: 'status', status: 'At the hut 🏔️ until six' },
    undefined,
  ])
  expect(status('tuo\u202e \nto \u200blunch ')).toStrictEqual([{ kind: 'status', status: 'tuo to lunch' }, ['status']])
  expect(status('')).toStrictEqual([{ kind: 'status', status: '' }, undefined])
  expect(status('x'.repeat(234))).toStrictEqual([{ kind: 'status', status: null }, ['status']])
})

it('a voltage a little below zero is zero: no battery is connected', () => {
  const volts = (voltage: number) => said(telemetry({ variant: { case: 'deviceMetrics', value: { voltage } } }))
  const mains = volts(-0.001)
  expect(mains.refused).toBeUndefined()
  expect(mains.packet.payload).toMatchObject({ metrics: [['deviceMetrics.voltage', 0]] })
  expect(volts(-1).refused).toStrictEqual(['voltage'])
})

it('names that are too long are none', () => {
  expect(said(user({ shortName: '12345' })).refused).toStrictEqual(['shortName'])
  expect([isName('😀'.repeat(39), 39), isName('😀'.repeat(40), 39)]).toStrictEqual([true, false])
})

it('of the names and descriptions of waypoints, what is hidden is removed, and the rest stays', () => {
  const waypoint = (name: string, description: string) => {
    const value = create(WaypointSchema, { id: 5, latitudeI: 1, longitudeI: 1, name, description })
    const { packet: heard, refused } = said({
      portnum: PortNum.WAYPOINT_APP,
      payload: toBinary(WaypointSchema, value),
    })
    return [heard.payload, refused]
  }
  const both = ['waypointName', 'waypointDescription']
  expect(waypoint('Hut\u0007\u202e', 'open\u2067\nuntil six\u0000')).toMatchObject([
    { waypoint: { name: 'Hut', description: 'open\nuntil six' } },
    both,
  ])
  expect(waypoint('Hut 🏔️', 'open\r\n\tagain')).toMatchObject([
    { waypoint: { name: 'Hut 🏔️', description: 'open\r\n\tagain' } },
    undefined,
  ])
  expect(waypoint('x'.repeat(30), '')).toMatchObject([{ waypoint: { name: '' } }, ['waypointName']])
})

it('measurements out of range are left out, the others of the packet stay', () => {
  const value = { batteryLevel: 102, voltage: -1, channelUtilization: 101, airUtilTx: 5, uptimeSeconds: 9 }
  const { packet: heard, refused } = said(telemetry({ variant: { case: 'deviceMetrics', value } }))
  expect(refused).toStrictEqual(['batteryLevel', 'voltage', 'channelUtilization'])
  expect(heard.payload).toMatchObject({
    metrics: [
      ['deviceMetrics.airUtilTx', 5],
      ['deviceMetrics.uptimeSeconds', 9],
    ],
  })
})

it('positions: precision, altitude, and whether the coordinates are valid', () => {
  const { packet: heard, refused } = said(position({ latitudeI: 5, longitudeI: 6, altitude: 2e9, precisionBits: 33 }))
  expect(refused).toStrictEqual(['precisionBits', 'altitude'])
  expect(heard.payload).toMatchObject({ fix: { latitude: 5e-7, altitude: null, precisionBits: null } })
  const nowhere = said(position({ latitudeI: 900000001, longitudeI: 6 }))
  expect(nowhere).toMatchObject({ refused: ['coordinates'], packet: { payload: { fix: null } } })
})

it('map reports of a gateway are checked in the same way', () => {
  const report = {
    longName: 'a\u202eb',
    shortName: 'N',
    firmwareVersion: '2.7\u202e',
    altitude: 2e9,
    positionPrecision: 33,
  }
  const data = { portnum: PortNum.MAP_REPORT_APP, payload: toBinary(MapReportSchema, create(MapReportSchema, report)) }
  const { packet: heard, refused } = said(data)
  expect(refused).toStrictEqual(['longName', 'precisionBits', 'firmwareVersion', 'altitude'])
  expect(heard.payload).toMatchObject({
    report: { longName: 'ab', shortName: 'N', isNameAltered: true, firmwareVersion: null, altitude: null },
  })
})

it('a reaction without an emoji is a reply', () => {
  expect(said(text('\u202e', { emoji: 1, replyId: 5 }))).toMatchObject({
    refused: ['emoji'],
    packet: { isEmoji: false, replyId: 5 },
  })
})

it('the node database of a radio is checked in the same way', () => {
  const value = {
    num: 7,
    user: { longName: 'a\u202eb', shortName: 'N' },
    deviceMetrics: { batteryLevel: 255 },
    position: { latitudeI: 5, longitudeI: 6, precisionBits: 64 },
    hopsAway: 9,
  }
  expect(read({ case: 'nodeInfo', value })).toMatchObject({
    refused: ['longName', 'precisionBits', 'batteryLevel', 'hopsAway'],
    node: {
      user: { longName: 'ab', shortName: 'N', isNameAltered: true },
      fix: { precisionBits: null },
      metrics: [],
      hopsAway: null,
    },
  })
})

it('a channel with an impossible name is unknown at a broker, and unnamed in a radio', () => {
  const named = (index: number, name: string) =>
    read({ case: 'channel', value: { index, role: 2, settings: { name } } })
  expect(named(3, 'Team\u0007')).toMatchObject({ refused: ['channelName'], channel: { index: 3, name: '' } })
  expect(named(numberChannel('8:x'), 'twelve chars')).toMatchObject({ refused: ['channelName'], type: 'other' })
  expect(named(numberChannel('8:x'), 'eleven char').refused).toBeUndefined()
})

it('the firmware version of a radio is checked', () => {
  const version = (firmwareVersion: string) => read({ case: 'metadata', value: { firmwareVersion, hwModel: 43 } })
  expect(version('2.8.0.1a2b3c4').refused).toBeUndefined()
  for (const bad of ['2.8\u202e', '2'.repeat(41)]) {
    const told = { firmwareVersion: null, hwModel: 'HELTEC_V3' }
    expect(version(bad)).toMatchObject({ refused: ['firmwareVersion'], metadata: told })
  }
})
