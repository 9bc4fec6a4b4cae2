import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { hashChannel } from '../../src/meshtastic/crypto/channel.ts'
import {
  createChannelReader,
  FIRST_NUMBER,
  identifyChannel,
  MAX_NUMBER,
  numberChannel,
} from '../../src/meshtastic/channel-identity.ts'
import { Channel_Role } from '../../src/meshtastic/gen/channel_pb.ts'
import { Config_LoRaConfig_ModemPreset as Preset } from '../../src/meshtastic/gen/config_pb.ts'
import { FromRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import type { FromRadioVariant } from '../support/radio/device.ts'

const DEFAULT_PSK = Uint8Array.of(1)
const OWN_PSK = new Uint8Array(32).fill(3).fill(5, 0, 1)

const slot = (index: number, role: Channel_Role, psk = DEFAULT_PSK, name = ''): FromRadioVariant => ({
  case: 'channel',
  value: { index, role, settings: { name, psk } },
})
const lora = (modemPreset: Preset, usePreset = true): FromRadioVariant => ({
  case: 'config',
  value: { payloadVariant: { case: 'lora', value: { usePreset, modemPreset } } },
})
const done: FromRadioVariant = { case: 'configCompleteId', value: 5 }
const myInfo: FromRadioVariant = { case: 'myInfo', value: { myNodeNum: 1 } }

/** What each message completes: index and identity. */
function read(variants: readonly FromRadioVariant[]): unknown[] {
  const reader = createChannelReader()
  return variants.map((payloadVariant) =>
    reader(create(FromRadioSchema, { payloadVariant })).map(({ channel, identity }) => [channel.index, identity]),
  )
}

describe('channels of a handshake', () => {
  it('wait for the preset, which names those without a name', () => {
    const own = identifyChannel(hashChannel('Rescue', OWN_PSK), 'Rescue')
    expect(
      read([myInfo, slot(0, 1), slot(1, 2, OWN_PSK, 'Rescue'), slot(2, 0), lora(Preset.LONG_FAST), done]),
    ).toStrictEqual([
      [],
      [],
      [],
      [],
      [
        [0, '8:LongFast'],
        [1, own],
        [2, null],
      ],
      [],
    ])
  })

  it.each([
    [Preset.LONG_FAST, true, 'LongFast'],
    [Preset.LONG_MODERATE, true, 'LongMod'],
    [Preset.SHORT_TURBO, true, 'ShortTurbo'],
    [Preset.LONG_FAST, false, 'Custom'],
  ])('with preset %s in use: %s are called %s', (preset, isInUse, name) => {
    const [, told] = read([slot(0, 1, new Uint8Array(0)), lora(preset, isInUse)])
    expect(told).toStrictEqual([[0, identifyChannel(hashChannel(name, new Uint8Array(0)), name)]])
  })

  it('without a known preset have an identity only if they have a name', () => {
    const named = identifyChannel(hashChannel('Hut', OWN_PSK), 'Hut')
    expect(read([slot(0, 1), slot(1, 2, OWN_PSK, 'Hut'), done])[2]).toStrictEqual([
      [0, null],
      [1, named],
    ])
    expect(read([slot(0, 1), lora(JSON.parse('99'))])[1]).toStrictEqual([[0, null]])
  })

  it('without a key use that of the primary one, even if it has none', () => {
    const none = new Uint8Array(0)
    const shared = read([slot(0, 1, OWN_PSK, 'Main'), slot(1, 2, none, 'Side'), done])[2]
    expect(shared).toContainEqual([1, identifyChannel(hashChannel('Side', OWN_PSK), 'Side')])
    const open = read([slot(0, 1, none, 'Main'), slot(1, 2, none, 'Side'), done])[2]
    expect(open).toContainEqual([1, identifyChannel(hashChannel('Side', none), 'Side')])
    expect(read([slot(1, 2, none, 'Side'), done])[1]).toStrictEqual([[1, null]])
  })

  it('are reported at once after it, and once when it starts again', () => {
    const all = [slot(0, 1), lora(Preset.LONG_FAST), slot(0, 1), myInfo, slot(0, 1), slot(0, 1), lora(Preset.LONG_SLOW)]
    const told = read(all)
    expect(told.slice(0, 6)).toStrictEqual([[], [[0, '8:LongFast']], [[0, '8:LongFast']], [], [], []])
    expect(told[6]).toStrictEqual([[0, '15:LongSlow']])
  })

  it('are limited to eight, with keys of 32 bytes at most', () => {
    expect(read([slot(8, 2), slot(-1, 2), slot(7, 1, new Uint8Array(33), 'Long'), done])[3]).toStrictEqual([[7, null]])
  })
})

it('numbers are the same for the same channel, contain its hash and are never a channel index', () => {
  const numbers = ['LongFast', 'LongSlow', 'Rescue', 'ünïcode 🦊', ''].map((name) =>
    numberChannel(identifyChannel(8, name)),
  )
  expect(new Set(numbers).size).toBe(5)
  expect(numbers.map((number) => number % 256)).toStrictEqual(Array(5).fill(8))
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(FIRST_NUMBER)
  expect(Math.max(...numbers)).toBeLessThanOrEqual(MAX_NUMBER)
  // They are stored in databases.
  expect(numberChannel('8:LongFast')).toBe(826_888)
})
