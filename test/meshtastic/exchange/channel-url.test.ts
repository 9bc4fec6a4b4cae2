import { create, toBinary } from '@bufbuild/protobuf'
import { base64Encode } from '@bufbuild/protobuf/wire'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeChannelUrl, parseChannelUrl } from '../../../src/meshtastic/exchange/channel-url.ts'
import { ChannelSettingsSchema } from '../../../src/meshtastic/gen/channel_pb.ts'
import { ChannelSetSchema } from '../../../src/meshtastic/gen/channel_set_pb.ts'
import {
  Config_LoRaConfig_RegionCode as Region,
  Config_LoRaConfigSchema,
} from '../../../src/meshtastic/gen/config_pb.ts'

/** In the tests of Meshtastic's Android app, which say that the Python library and the firmware agree with it. */
const PUBLISHED = 'CgMSAQESBggBQANIAQ'
/** In example_config.yaml of Meshtastic's Python CLI. */
const OF_CLI = 'https://www.meshtastic.org/e/#CgMSAQESCDgBQANIAVAe'

function read(url: string) {
  const found = parseChannelUrl(url)
  if (!found.ok) throw new Error(found.problem.kind)
  return found.shared
}

const problemOf = (url: string) => {
  const found = parseChannelUrl(url)
  return found.ok ? null : found.problem
}

const urlOf = (channels: readonly { psk?: Uint8Array; name?: string }[]) =>
  `https://meshtastic.org/e/#${base64Encode(
    toBinary(ChannelSetSchema, create(ChannelSetSchema, { settings: channels.map((each) => ({ ...each })) })),
    'url',
  )}`

describe('a published URL', () => {
  it('is read, and written as the same text', () => {
    const url = `https://meshtastic.org/e/#${PUBLISHED}`
    const { channels, lora, isAddOnly } = read(url)
    expect(channels).toMatchObject([{ name: '', psk: Uint8Array.of(1) }])
    expect(lora).toMatchObject({ usePreset: true, hopLimit: 3, txEnabled: true, region: Region.UNSET })
    expect(isAddOnly).toBe(false)
    expect(encodeChannelUrl({ channels, lora, isAddOnly })).toBe(url)
  })

  it('of the CLI has its region and power', () => {
    expect(read(OF_CLI)).toMatchObject({
      channels: [{ psk: Uint8Array.of(1) }],
      lora: { region: Region.US, hopLimit: 3, txEnabled: true, txPower: 30 },
    })
  })

  it.each([
    `HTTPS://MESHTASTIC.ORG/E/#${PUBLISHED}`,
    `HTTPS://mEsHtAsTiC.OrG/e/#${PUBLISHED}`,
    `https://www.meshtastic.org/e/#${PUBLISHED}`,
    `https://meshtastic.org/e#${PUBLISHED}`,
    `https://meshtastic.org/channel/e/#${PUBLISHED}`,
    `  https://meshtastic.org/e/#${PUBLISHED}\n`,
    `meshtastic.org/e/#${PUBLISHED}==`,
  ])('is read as %s', (url) => {
    expect(read(url)).toMatchObject({ channels: [{ name: '' }], lora: { usePreset: true }, isAddOnly: false })
  })

  it.each([
    `https://meshtastic.org/e/?add=true#${PUBLISHED}`,
    `https://meshtastic.org/e/#${PUBLISHED}?add=true`,
    `https://meshtastic.org/e/#${PUBLISHED}?source=ios&add=true`,
  ])('adds as %s, without its LoRa settings', (url) => {
    expect(read(url)).toMatchObject({ channels: [{ name: '' }], lora: null, isAddOnly: true })
  })

  it('that adds is written with the word before the #, where all clients look', () => {
    const { channels, lora } = read(`https://meshtastic.org/e/#${PUBLISHED}`)
    expect(encodeChannelUrl({ channels, lora, isAddOnly: true })).toBe('https://meshtastic.org/e/?add=true#CgMSAQE')
  })
})

it('survives the way there and back, with up to eight channels and LoRa settings', () => {
  const channel = fc.record({
    name: fc.string({ maxLength: 11, unit: 'grapheme-ascii' }),
    psk: fc.constantFrom(0, 1, 16, 32).chain((size) => fc.uint8Array({ minLength: size, maxLength: size })),
    uplinkEnabled: fc.boolean(),
    moduleSettings: fc.record({ positionPrecision: fc.integer({ min: 0, max: 32 }) }),
  })
  const lora = fc.record({ txPower: fc.integer({ min: -9, max: 30 }), hopLimit: fc.integer({ min: 0, max: 7 }) })
  fc.assert(
    fc.property(fc.array(channel, { minLength: 1, maxLength: 8 }), fc.option(lora), (all, settings) => {
      const shared = {
        channels: all.map((each) => create(ChannelSettingsSchema, each)),
        lora: settings === null ? null : create(Config_LoRaConfigSchema, settings),
        isAddOnly: false,
      }
      expect(read(encodeChannelUrl(shared))).toStrictEqual(shared)
    }),
  )
})

describe('a URL that is none of channels is told apart', () => {
  it.each([
    ['', 'not_a_url'],
    ['hello', 'not_a_url'],
    ['https://example.org/e/#CgMSAQE', 'other_site'],
    ['https://meshtastic.org.example.org/e/#CgMSAQE', 'other_site'],
    ['https://user@meshtastic.org/e/#CgMSAQE', 'other_site'],
    ['https://meshtastic.org/v/#CgMSAQE', 'other_kind'],
    ['https://meshtastic.org/d/#CgUYAyIBAQ', 'other_kind'],
    ['https://meshtastic.org/', 'other_kind'],
    ['https://meshtastic.org/e/', 'no_content'],
    ['https://meshtastic.org/e/#', 'no_content'],
    ['https://meshtastic.org/e/#?add=true', 'no_content'],
    ['https://meshtastic.org/e/#!!!', 'unreadable'],
    ['https://meshtastic.org/e/#CgMS', 'unreadable'],
    ['https://meshtastic.org/e/#EgYIAUADSAE', 'no_channels'],
  ])('%s: %s', (url, kind) => {
    expect(problemOf(url)).toStrictEqual({ kind })
  })

  it('with nine channels, a key of another length, or a long name', () => {
    expect(problemOf(urlOf(Array.from({ length: 9 }, () => ({}))))).toStrictEqual({
      kind: 'too_many_channels',
      count: 9,
    })
    expect(problemOf(urlOf([{}, { psk: new Uint8Array(5) }]))).toStrictEqual({ kind: 'key_size', channel: 2, bytes: 5 })
    expect(problemOf(urlOf([{ name: 'twelve bytes' }]))).toStrictEqual({ kind: 'long_name', channel: 1 })
    expect(problemOf(urlOf([{ name: 'ééééé' }]))).toBe(null)
    expect(problemOf(urlOf([{ name: 'éééééé' }]))).toStrictEqual({ kind: 'long_name', channel: 1 })
  })

  it('whatever the text is, and quickly', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl({ withFragments: true, withQueryParameters: true })), (text) => {
        expect(parseChannelUrl(text).ok).toBe(false)
      }),
      { numRuns: 30 },
    )
    expect(problemOf(`https://${'a.'.repeat(2000)}`)).toStrictEqual({ kind: 'other_site' })
  })
})
