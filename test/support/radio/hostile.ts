import type { MessageInitShape } from '@bufbuild/protobuf'
import type { NodeInfoSchema } from '../../../src/meshtastic/gen/node_pb.ts'
import { MeshPacket_TransportMechanism } from '../../../src/meshtastic/gen/packet_pb.ts'
import { keyBytes, makePacket, type Random, type Sent } from '../mesh/made-up.ts'
import type { Arrival, Entry } from '../mesh/model.ts'
import { fromRadio } from './device.ts'

/** A packet, and how it reached the radio. */
export type OnAir = { readonly sent: Sent; readonly arrival: Arrival }

/** A radio that hears an invented mesh, and remembers what the firmware would remember. */
export type HostileRadio = {
  /** The next packet on the air at `at`, in milliseconds. */
  hear(at: number): OnAir
  /** The same packet by another relay. */
  hearCopy(of: OnAir): OnAir
  /** Its node database. With `style` 2.7 positions and metrics are in it, with 2.8 they come as packets afterwards. */
  entries(): Entry[]
  /** The latest positions and telemetry, as 2.8 repeats them. */
  replays(): OnAir[]
}

export function createHostileRadio(dice: Random, own: number, style: '2.7' | '2.8'): HostileRadio {
  const others: readonly [number, ...number[]] = [11, 0x94c30001, 0xfffffffe, 0xa0cb0002, 0xc3949494, 77, 78]
  const entries = new Map<number, Entry>()
  const latest = new Map<string, OnAir>()
  let nextId = 1 + dice.below(0xffff)

  const listen = (on: OnAir) => {
    const { sent, arrival } = on
    const { from, effect } = sent
    const known = entries.get(from) ?? newEntry(from)
    const isKept = effect.kind === 'place' || effect.kind === 'values'
    if (isKept && from !== own && !arrival.viaMqtt) latest.set(`${from} ${effect.kind}`, on)
    entries.set(from, {
      ...known,
      lastHeard: Math.max(known.lastHeard, arrival.rxTime),
      snr: arrival.rxSnr ?? 0,
      hops: from === own ? null : arrival.hopStart - arrival.hopLimit,
      channel: sent.port === null ? known.channel : sent.channel,
      viaMqtt: arrival.viaMqtt,
      user: effect.kind === 'user' ? effect.user : known.user,
      place: effect.kind === 'place' && style === '2.7' ? effect.place : known.place,
      metrics: { ...known.metrics, ...(effect.kind === 'values' && style === '2.7' ? effect.values : {}) },
    })
  }
  return {
    hear(at) {
      const from = dice.chance(0.05) ? own : dice.pick(others)
      nextId += 1 + dice.below(1000)
      const sent = makePacket(dice, from, nextId, at, others)
      // A clock that is a little behind, or ahead of ours.
      const rxTime = Math.floor(at / 1000) - dice.below(3) + (dice.chance(0.05) ? 60 : 0)
      const on = { sent, arrival: from === own ? ownArrival(rxTime) : anyArrival(dice, rxTime) }
      listen(on)
      return on
    },
    hearCopy: ({ sent, arrival }) => ({
      sent,
      arrival: sent.from === own ? arrival : { ...anyArrival(dice, arrival.rxTime), hopStart: arrival.hopStart },
    }),
    entries: () => [newEntry(own), ...entries.values()].filter(({ nodeNum }, at) => at === 0 || nodeNum !== own),
    replays: () =>
      style === '2.7'
        ? []
        : [...latest.values()].map(({ sent, arrival }) => ({
            sent,
            arrival: { ...arrival, rxRssi: null, hopStart: 0, hopLimit: 0 },
          })),
  }
}

function newEntry(nodeNum: number): Entry {
  const nothing = { user: null, place: null, metrics: {}, hops: null }
  return { nodeNum, lastHeard: 0, snr: 0, channel: 0, viaMqtt: false, ...nothing }
}

/** The radio's own packets never travelled. */
function ownArrival(rxTime: number): Arrival {
  return { rxTime, rxSnr: null, rxRssi: null, hopStart: 0, hopLimit: 3, viaMqtt: false }
}

/** Off the air: what comes by a broker is weighed besides, which `trust.test.ts` shows. */
function anyArrival(dice: Random, rxTime: number): Arrival {
  const hopStart = 3 + dice.below(5)
  const rxSnr = (1 + dice.below(40)) / 4
  return { rxTime, rxSnr, rxRssi: -40 - dice.below(80), hopStart, hopLimit: dice.below(4), viaMqtt: false }
}

/** As the radio reports it. */
export function packetBytes({ sent, arrival }: OnAir): Uint8Array {
  const { from, to, id, channel, port, payload, data } = sent
  const { rxRssi, rxSnr, ...way } = arrival
  const content =
    port === null
      ? ({ case: 'encrypted', value: payload } as const)
      : ({ case: 'decoded', value: Object({ portnum: port, payload, ...data }) } as const)
  const value = {
    from,
    to,
    id,
    channel,
    ...way,
    rxSnr: rxSnr ?? 0,
    ...(rxRssi !== null && { rxRssi }),
    transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_LORA,
    payloadVariant: content,
  }
  return fromRadio({ case: 'packet', value })
}

export function entryBytes(entry: Entry): Uint8Array {
  const { nodeNum: num, user, lastHeard, snr, hops, channel, viaMqtt, place, metrics } = entry
  const degrees = place === null ? null : { ...place, t: (place.t ?? 0) / 1000 }
  const value: MessageInitShape<typeof NodeInfoSchema> = {
    num,
    lastHeard,
    snr,
    channel,
    viaMqtt,
    ...(hops !== null && { hopsAway: hops }),
    ...(user !== null && { user: Object({ ...user, hwModel: 43, publicKey: keyBytes(user.key) }) }),
    ...(degrees !== null && {
      position: {
        latitudeI: Math.round(degrees.latitude * 1e7),
        longitudeI: Math.round(degrees.longitude * 1e7),
        ...(degrees.altitude !== null && { altitude: degrees.altitude }),
        precisionBits: degrees.precisionBits ?? 0,
        time: degrees.t,
      },
    }),
    ...(Object.keys(metrics).length > 0 && { deviceMetrics: Object(deviceMetrics(metrics)) }),
  }
  return fromRadio({ case: 'nodeInfo', value: Object(value) })
}

function deviceMetrics(metrics: Entry['metrics']): object {
  const own = Object.entries(metrics).filter(([name]) => name.startsWith('deviceMetrics.'))
  return Object.fromEntries(own.map(([name, value]) => [name.slice('deviceMetrics.'.length), value]))
}

const ascii = (text: string) => new TextEncoder().encode(text)

/** Bytes between frames: debug text, false starts of frames, noise. */
export function makeGarbage(dice: Random): Uint8Array {
  return dice.pick<() => Uint8Array>([
    () => ascii('\u001b[34mINFO  \u001b[0m| 12:00:00 9 [Router] — Ã radio — ready\r\n'),
    () => ascii('—'),
    () => Uint8Array.of(0x94),
    () => Uint8Array.of(0x94, 0xc3),
    () => Uint8Array.of(0x94, 0xc3, 0xff, 0xff),
    () => Uint8Array.of(0x94, 0xc3, 0x01, 0x90),
    () => Uint8Array.of(0x94, 0x94, 0xc3, 0, 5, 0x12, 0xff),
    () => Uint8Array.of(0x94, 0xc3, 0, 0),
    () => Uint8Array.of(0xc3, 0xc3, 0xc3),
    () => dice.bytes(1 + dice.below(40)),
  ])()
}

/** Longer than any frame, and not a frame: a decoder waiting for bytes gets enough. */
export const FILLER: Uint8Array = ascii(`${'DEBUG quiet night '.repeat(32)}\r\n`)

/** 0x94 0xC3, the length, the payload. */
export function frame(payload: Uint8Array): Uint8Array {
  return Uint8Array.of(0x94, 0xc3, payload.length >> 8, payload.length & 0xff, ...payload)
}
