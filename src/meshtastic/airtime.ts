/** The modulation of a radio. */
export type Modulation = {
  /** 7 to 12. */
  readonly spreadFactor: number
  readonly bandwidthKhz: number
  /** 4/5 to 4/8: 5 to 8. */
  readonly codingRate: number
}

/** The parameters of the modem presets (meshtastic.org/docs/overview/radio-settings). */
const PRESETS = {
  SHORT_TURBO: { spreadFactor: 7, bandwidthKhz: 500, codingRate: 5 },
  SHORT_FAST: { spreadFactor: 7, bandwidthKhz: 250, codingRate: 5 },
  SHORT_SLOW: { spreadFactor: 8, bandwidthKhz: 250, codingRate: 5 },
  MEDIUM_FAST: { spreadFactor: 9, bandwidthKhz: 250, codingRate: 5 },
  MEDIUM_SLOW: { spreadFactor: 10, bandwidthKhz: 250, codingRate: 5 },
  MEDIUM_TURBO: { spreadFactor: 9, bandwidthKhz: 500, codingRate: 5 },
  TINY_FAST: { spreadFactor: 7, bandwidthKhz: 15.6, codingRate: 5 },
  TINY_SLOW: { spreadFactor: 8, bandwidthKhz: 15.6, codingRate: 6 },
  LONG_TURBO: { spreadFactor: 11, bandwidthKhz: 500, codingRate: 8 },
  LONG_FAST: { spreadFactor: 11, bandwidthKhz: 250, codingRate: 5 },
  LONG_MODERATE: { spreadFactor: 11, bandwidthKhz: 125, codingRate: 8 },
  LONG_SLOW: { spreadFactor: 12, bandwidthKhz: 125, codingRate: 8 },
  VERY_LONG_SLOW: { spreadFactor: 12, bandwidthKhz: 62.5, codingRate: 8 },
} as const satisfies Record<string, Modulation>

export const DEFAULT_PRESET = 'LONG_FAST'

/** On 2.4 GHz the presets use wider channels: 812.5 kHz instead of 250. */
const WIDE_FACTOR = 3.25

/** Bandwidths in kHz that the settings store rounded to whole numbers. */
const ROUNDED_KHZ: Readonly<Record<number, number>> = {
  31: 31.25,
  62: 62.5,
  200: 203.125,
  400: 406.25,
  800: 812.5,
  1600: 1625,
}

/** The same parameters in a radio's own settings, as in protobuf JSON. */
export type LoraSettings = {
  readonly usePreset: boolean
  readonly modemPreset: string
  readonly region: string
  readonly spreadFactor: number
  readonly bandwidth: number
  readonly codingRate: number
}

/** From the values of the radio's section `lora`, as in `SettingsSection`. */
export function readLora(values: Readonly<Record<string, unknown>>): LoraSettings {
  const number = (name: string) => (typeof values[name] === 'number' ? values[name] : 0)
  const text = (name: string) => (typeof values[name] === 'string' ? values[name] : '')
  return {
    usePreset: values['usePreset'] === true,
    modemPreset: text('modemPreset'),
    region: text('region'),
    spreadFactor: number('spreadFactor'),
    bandwidth: number('bandwidth'),
    codingRate: number('codingRate'),
  }
}

/** The name of the preset, or `custom`, and its modulation; null for settings that are not known here. */
export function modulationOf(lora: LoraSettings): { readonly preset: string; readonly modulation: Modulation } | null {
  if (lora.usePreset) {
    const found = Object.entries(PRESETS).find(([name]) => name === lora.modemPreset)
    if (found === undefined) return null
    const [preset, modulation] = found
    const isWide = lora.region === 'LORA_24'
    return isWide
      ? { preset, modulation: { ...modulation, bandwidthKhz: modulation.bandwidthKhz * WIDE_FACTOR } }
      : { preset, modulation }
  }
  const { spreadFactor, codingRate } = lora
  const bandwidthKhz = ROUNDED_KHZ[lora.bandwidth] ?? lora.bandwidth
  const isKnown = spreadFactor >= 7 && spreadFactor <= 12 && codingRate >= 5 && codingRate <= 8 && bandwidthKhz > 0
  return isKnown ? { preset: 'custom', modulation: { spreadFactor, codingRate, bandwidthKhz } } : null
}

export function presetModulation(preset: keyof typeof PRESETS): Modulation {
  return PRESETS[preset]
}

/** Preamble, in symbols. */
const PREAMBLE_SYMBOLS = 16
/** The radio uses low data rate optimization if a symbol takes longer. */
const LOW_RATE_SYMBOL_MS = 16

/**
 * Airtime of a packet with this many bytes in milliseconds, with an explicit header and a checksum (Semtech AN1200.13,
 * 4).
 */
export function timeOnAirMs(bytes: number, { spreadFactor, bandwidthKhz, codingRate }: Modulation): number {
  const symbolMs = 2 ** spreadFactor / bandwidthKhz
  const lowRate = symbolMs > LOW_RATE_SYMBOL_MS ? 2 : 0
  const bits = 8 * bytes - 4 * spreadFactor + 28 + 16
  const payloadSymbols = 8 + Math.max(0, Math.ceil(bits / (4 * (spreadFactor - lowRate))) * codingRate)
  return (PREAMBLE_SYMBOLS + 4.25 + payloadSymbols) * symbolMs
}

/** Bytes at the start of every packet: addresses, id, flags, channel hash. */
const HEADER_BYTES = 16
/** Port, and a field of flags. */
const DATA_BYTES = 4

/** Bytes on the air for a text of this many bytes. */
export function textPacketBytes(
  textBytes: number,
  { isReply, isReaction, isDirect }: { isReply: boolean; isReaction: boolean; isDirect: boolean },
): number {
  const payload = textBytes + (textBytes < 128 ? 2 : 3)
  // The id of the message that is answered and the mark of a reaction are fields of five bytes. A direct message
  // carries a checksum and a nonce.
  return HEADER_BYTES + DATA_BYTES + payload + (isReply ? 5 : 0) + (isReaction ? 5 : 0) + (isDirect ? 12 : 0)
}

/** Bytes of a traceroute request on the air. It grows with each hop. */
export const TRACEROUTE_BYTES = HEADER_BYTES + DATA_BYTES + 2
