import { expandPsk, hashChannel } from './crypto/channel.ts'
import { type Channel, Channel_Role } from './gen/channel_pb.ts'
import { type Config_LoRaConfig, Config_LoRaConfig_ModemPreset as Preset } from './gen/config_pb.ts'
import type { FromRadio } from './gen/stream_pb.ts'

/** The number of channel indexes of a radio: 0 to 7. */
export const RADIO_CHANNELS = 8

/**
 * The maximum number of channels stored for one source, besides those with a radio's channel index. Anybody can make up
 * more, so only the last ones heard are kept.
 */
export const MAX_HEARD_CHANNELS = 200

/** The first number for channels without a radio's channel index. */
export const FIRST_NUMBER = 256
const NAMES = 4096
export const MAX_NUMBER = FIRST_NUMBER + NAMES * 256 - 1

/**
 * Identifies a channel across all radios and brokers by its name and its hash, which each of its packets carries. Other
 * channels may have the same hash or the same name, but hardly both. Not secret: the key cannot be derived from it.
 */
export function identifyChannel(hash: number, name: string): string {
  return `${hash}:${name}`
}

/** The name in an identity. */
export function nameIn(identity: string): string {
  return identity.slice(identity.indexOf(':') + 1)
}

/**
 * The number of a channel without a radio's channel index: always the same, from `FIRST_NUMBER` to `MAX_NUMBER`; % 256
 * gives the hash.
 */
export function numberChannel(identity: string): number {
  // FNV-1a: many channels share a hash, but collisions become unlikely with the additional bits of the name.
  const digest = new TextEncoder()
    .encode(nameIn(identity))
    .reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193), 0x811c9dc5)
  return FIRST_NUMBER + ((digest >>> 0) % NAMES) * 256 + Number.parseInt(identity, 10)
}

/** A channel as the radio reported it, including the key, and the resulting identity; null: disabled or unknown. */
export type IdentifiedChannel = { readonly channel: Channel; readonly identity: string | null }

/**
 * Takes all messages of one connection in order and returns the channels that are complete with this one. In a
 * handshake, channels without a name wait for the modem preset, which names them, but not beyond the end of the
 * handshake.
 */
export function createChannelReader(): (message: FromRadio) => readonly IdentifiedChannel[] {
  const slots = new Map<number, Channel>()
  const waiting = new Map<number, Channel>()
  let isHandshake = true
  let preset: string | null = null
  const release = () => {
    const identified = [...waiting.values()].map((channel) => ({
      channel,
      identity: identityOf(channel, slots, preset),
    }))
    waiting.clear()
    isHandshake = false
    return identified
  }
  return ({ payloadVariant: { case: variant, value } }) => {
    switch (variant) {
      case 'myInfo':
        isHandshake = true
        return []
      case 'channel':
        if (value.index < 0 || value.index >= RADIO_CHANNELS) return []
        slots.set(value.index, value)
        waiting.set(value.index, value)
        return isHandshake ? [] : release()
      case 'config':
        if (value.payloadVariant.case !== 'lora') return []
        preset = presetName(value.payloadVariant.value)
        return release()
      case 'configCompleteId':
        return release()
      default:
        return []
    }
  }
}

function identityOf(channel: Channel, slots: ReadonlyMap<number, Channel>, preset: string | null): string | null {
  const name = channel.settings?.name || preset
  const psk = keyOf(channel, slots)
  if (channel.role === Channel_Role.DISABLED || name === null || psk === null || psk.length > 32) return null
  return identifyChannel(hashChannel(name, expandPsk(psk)), name)
}

/** A secondary channel without a key of its own uses that of the primary one. */
function keyOf({ role, settings }: Channel, slots: ReadonlyMap<number, Channel>): Uint8Array | null {
  const psk = settings?.psk ?? new Uint8Array(0)
  if (psk.length > 0 || role !== Channel_Role.SECONDARY) return psk
  const primary = [...slots.values()].find((slot) => slot.role === Channel_Role.PRIMARY)
  return primary === undefined ? null : (primary.settings?.psk ?? psk)
}

/** The firmware's name for a channel without a name; null for a preset newer than our table. */
function presetName({ usePreset, modemPreset }: Config_LoRaConfig): string | null {
  return usePreset ? (PRESET_NAMES.get(modemPreset) ?? null) : 'Custom'
}

/** The firmware's name for a channel without a name, by the number of the modem preset; null for an unknown one. */
export function channelNameOfPreset(preset: number): string | null {
  return [...PRESET_NAMES].find(([known]) => Number(known) === preset)?.[1] ?? null
}

const PRESET_NAMES: ReadonlyMap<Preset, string> = new Map([
  [Preset.LONG_FAST, 'LongFast'],
  [Preset.LONG_SLOW, 'LongSlow'],
  [Preset.VERY_LONG_SLOW, 'VLongSlow'],
  [Preset.MEDIUM_SLOW, 'MediumSlow'],
  [Preset.MEDIUM_FAST, 'MediumFast'],
  [Preset.SHORT_SLOW, 'ShortSlow'],
  [Preset.SHORT_FAST, 'ShortFast'],
  [Preset.LONG_MODERATE, 'LongMod'],
  [Preset.SHORT_TURBO, 'ShortTurbo'],
  [Preset.LONG_TURBO, 'LongTurbo'],
  [Preset.LITE_FAST, 'LiteFast'],
  [Preset.LITE_SLOW, 'LiteSlow'],
  [Preset.NARROW_FAST, 'NarrowFast'],
  [Preset.NARROW_SLOW, 'NarrowSlow'],
  [Preset.TINY_FAST, 'TinyFast'],
  [Preset.TINY_SLOW, 'TinySlow'],
  [Preset.MEDIUM_TURBO, 'MediumTurbo'],
])

/** The names that the firmware gives to channels without one. */
export function presetChannelNames(): readonly string[] {
  return [...PRESET_NAMES.values(), 'Custom']
}
