import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { encodeEdit } from '../../../src/meshtastic/link/admin-packets.ts'
import { findDiffering, isAsBefore, planChange, type SectionInput } from '../../../src/meshtastic/config/change.ts'
import { listFields } from '../../../src/meshtastic/config/fields.ts'
import {
  createConfigReader,
  ownerSection,
  type RawSection,
  SECTION_SCHEMAS,
  sectionBytes,
  sectionOf,
} from '../../../src/meshtastic/config/sections.ts'
import { viewSection } from '../../../src/meshtastic/config/values.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { AdminMessageSchema } from '../../../src/meshtastic/gen/admin_pb.ts'
import { type Config, Config_LoRaConfigSchema, ConfigSchema } from '../../../src/meshtastic/gen/config_pb.ts'
import { ModuleConfigSchema } from '../../../src/meshtastic/gen/module_config_pb.ts'
import { UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { readRecordings } from '../recordings.ts'

type Variant = Config['payloadVariant']

function config(payloadVariant: Parameters<typeof create<typeof ConfigSchema>>[1]): RawSection {
  const section = sectionOf(create(ConfigSchema, payloadVariant).payloadVariant satisfies Variant)
  if (section === null) throw new Error('no section')
  return section
}

function plan(section: RawSection, input: Partial<SectionInput>) {
  return planChange(section, { values: {}, secrets: {}, ...input })
}

function issuesOf(section: RawSection, input: Partial<SectionInput>) {
  const planned = plan(section, input)
  return planned.ok ? [] : planned.issues
}

/** The message that a change sends. */
function sent(section: RawSection, input: Partial<SectionInput>) {
  const planned = plan(section, input)
  if (!planned.ok) throw new Error(JSON.stringify(planned.issues))
  const [begin, set, commit] = encodeEdit([planned.plan.section]).map((bytes) => fromBinary(AdminMessageSchema, bytes))
  expect([begin?.payloadVariant, commit?.payloadVariant]).toStrictEqual([
    { case: 'beginEditSettings', value: true },
    { case: 'commitEditSettings', value: true },
  ])
  return { variant: set?.payloadVariant, plan: planned.plan }
}

const LORA = config({ payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3 } } })
const NETWORK = config({
  payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'hidden', ntpServer: 'a' } },
})

describe('the fields of settings', () => {
  it('are known for every section, including secrets', () => {
    const names = [...SECTION_SCHEMAS.keys()]
    expect(names).toHaveLength(8 + 17 + 2)
    for (const name of names) expect(listFields(name), name).not.toHaveLength(0)
    const secrets = names.flatMap((name) =>
      listFields(name).flatMap(({ path, secret }) => (secret ? [`${name} ${path}`] : [])),
    )
    expect(secrets.toSorted()).toStrictEqual([
      'bluetooth fixedPin',
      'channels channels.*.settings.psk',
      'meshBeacon broadcastOfferChannel.psk',
      'meshBeacon broadcastOnChannel.psk',
      'mqtt password',
      'network wifiPsk',
      'security privateKey',
    ])
  })

  it('have the information that an editor needs', () => {
    const lora = new Map(listFields('lora').map((field) => [field.path, field]))
    expect(lora.get('region')).toMatchObject({ type: 'enum', risk: 'region', list: false })
    expect(lora.get('region')?.options).toContain('EU_868')
    expect(lora.get('hopLimit')).toMatchObject({ type: 'integer', min: 0, max: 7 })
    expect(lora.get('ignoreIncoming')).toMatchObject({ type: 'integer', list: true, maxItems: 3, max: 0xffffffff })
    expect(lora.get('frequencyOffset')).toMatchObject({ type: 'number' })
    const network = new Map(listFields('network').map((field) => [field.path, field]))
    expect(network.get('ipv4Config.ip')).toMatchObject({ type: 'ipv4', risk: 'link' })
    expect(network.get('enabledProtocols')).toMatchObject({ type: 'flags', options: ['UDP_BROADCAST'], list: false })
    const serial = new Map(listFields('serial').map((field) => [field.path, field]))
    expect(serial.get('baud')).toMatchObject({ type: 'enum', options: expect.arrayContaining(['BAUD_115200']) })
    expect(listFields('no section')).toStrictEqual([])
  })
})

describe('a change of settings', () => {
  it('keeps everything the radio sent, including fields newer than our table', () => {
    // Field 77 in the section, field 99 in a message inside.
    const inner = new BinaryWriter().tag(1, WireType.Bit32).fixed32(0x0501a8c0).tag(99, WireType.Varint).uint32(7)
    const bytes = new BinaryWriter()
      .tag(3, WireType.LengthDelimited)
      .string('home')
      .tag(4, WireType.LengthDelimited)
      .string('hidden')
      .tag(8, WireType.LengthDelimited)
      .bytes(inner.finish())
      .tag(77, WireType.LengthDelimited)
      .string('of the future')
      .finish()
    const whole = new BinaryWriter().tag(4, WireType.LengthDelimited).bytes(bytes).finish()
    const section = sectionOf(fromBinary(ConfigSchema, whole).payloadVariant)
    if (section === null) throw new Error('no section')
    expect(viewSection(section).values).toMatchObject({ ipv4Config: { ip: '192.168.1.5' } })
    const before = sectionBytes(section)
    const { variant } = sent(section, { values: { ipv4Config: { gateway: '192.168.1.1' } } })
    if (variant?.case !== 'setConfig') throw new Error('no config')
    const again = sectionOf(fromBinary(ConfigSchema, toBinary(ConfigSchema, variant.value)).payloadVariant)
    const network = variant.value.payloadVariant.value
    expect(network).toMatchObject({
      wifiSsid: 'home',
      wifiPsk: 'hidden',
      ipv4Config: { ip: 0x0501a8c0, gateway: 0x0101a8c0 },
    })
    expect(network?.$unknown?.map(({ no }) => no)).toStrictEqual([77])
    expect(Object(network)['ipv4Config'].$unknown.map(({ no }: { no: number }) => no)).toStrictEqual([99])
    expect(again === null ? null : viewSection(again).values).not.toHaveProperty('77')
    expect(sectionBytes(section)).toStrictEqual(before)
  })

  it('finds the differences, and what the radio did with them', () => {
    const { plan: planned, variant } = sent(LORA, { values: { hopLimit: 5, region: 'EU_868', txPower: 0 } })
    expect(planned.changes.map(({ leaf, before, after }) => [leaf.path, before, after])).toStrictEqual([
      ['hopLimit', 3, 5],
    ])
    if (variant?.case !== 'setConfig') throw new Error('no config')
    const taken = sectionOf(variant.value.payloadVariant)
    if (taken === null) throw new Error('no section')
    expect([findDiffering(planned, taken), isAsBefore(planned, taken)]).toStrictEqual([[], false])
    expect([findDiffering(planned, LORA), isAsBefore(planned, LORA)]).toStrictEqual([['hopLimit'], true])
  })

  it.each([
    ['an unknown name', { values: { region: 'ATLANTIS' } }, 'values.region'],
    ['an unknown number that is not the present one', { values: { region: 'UNKNOWN_77' } }, 'values.region'],
    ['a number as a text', { values: { hopLimit: '3' } }, 'values.hopLimit'],
    ['a number too large', { values: { hopLimit: 8 } }, 'values.hopLimit'],
    ['a fraction', { values: { channelNum: 1.5 } }, 'values.channelNum'],
    ['null', { values: { usePreset: null } }, 'values.usePreset'],
    ['no number', { values: { frequencyOffset: 1e39 } }, 'values.frequencyOffset'],
    ['an unknown field', { values: { colour: 'red' } }, 'values.colour'],
    ['a list that is too long', { values: { ignoreIncoming: [1, 2, 3, 4] } }, 'values.ignoreIncoming'],
    ['a list of other things', { values: { ignoreIncoming: [-1] } }, 'values.ignoreIncoming'],
    ['no list', { values: { ignoreIncoming: 4 } }, 'values.ignoreIncoming'],
    ['an invalid secret', { secrets: { region: 'EU_868' } }, 'secrets.region'],
    ['a prototype', { values: JSON.parse('{"__proto__": {"hopLimit": 1}}') }, 'values.__proto__'],
  ])('refuses %s', (_name, input, path) => {
    expect(issuesOf(LORA, input).map((issue) => issue.path)).toStrictEqual([path])
  })

  it('keeps an enum number that is newer than our table', () => {
    const future = config({ payloadVariant: { case: 'lora', value: Object({ region: 77, hopLimit: 3 }) } })
    expect(viewSection(future).values).toMatchObject({ region: 'UNKNOWN_77' })
    expect(issuesOf(future, { values: { region: 'UNKNOWN_78' } })).toHaveLength(1)
    const { variant } = sent(future, { values: { region: 'UNKNOWN_77', hopLimit: 4 } })
    expect(variant).toMatchObject({ value: { payloadVariant: { value: { region: 77, hopLimit: 4 } } } })
  })

  it('limits texts, addresses and secrets, and never repeats a value', () => {
    const texts = [
      [{ values: { wifiSsid: 'ü'.repeat(17) } }, 'values.wifiSsid'],
      [{ values: { ntpServer: 'a\0b' } }, 'values.ntpServer'],
      [{ values: { ipv4Config: { ip: '1.2.3.256' } } }, 'values.ipv4Config.ip'],
      [{ values: { ipv4Config: 'hunter2' } }, 'values.ipv4Config'],
      [{ values: { wifiPsk: 'hunter2' } }, 'values.wifiPsk'],
      [{ secrets: { wifiPsk: 'hunter2'.repeat(10) } }, 'secrets.wifiPsk'],
      [{ secrets: { mqttPassword: 'hunter2' } }, 'secrets.mqttPassword'],
    ] as const
    for (const [input, path] of texts) {
      const issues = issuesOf(NETWORK, input)
      expect(issues.map((issue) => issue.path)).toStrictEqual([path])
      expect(JSON.stringify(issues)).not.toContain('hunter2')
    }
    expect(issuesOf(NETWORK, { values: { wifiSsid: 'ü'.repeat(16) } })).toStrictEqual([])
    const { variant } = sent(NETWORK, { values: { ipv4Config: { ip: '10.0.0.200' } }, secrets: { wifiPsk: null } })
    const value = Object(variant).value.payloadVariant.value
    expect(value).toMatchObject({ wifiPsk: '', wifiSsid: 'home', ipv4Config: { ip: 0xc800000a } })
  })

  it('treats a secret as a change even if it is the same', () => {
    const { plan: planned } = sent(NETWORK, { secrets: { wifiPsk: 'hidden' } })
    expect(planned.changes.map(({ leaf }) => leaf.path)).toStrictEqual(['wifiPsk'])
  })

  it('neither clears nor loses a private key', () => {
    const key = new Uint8Array(32).fill(9)
    const security = config({ payloadVariant: { case: 'security', value: { privateKey: key, publicKey: key } } })
    expect(issuesOf(security, { secrets: { privateKey: null } })).toHaveLength(1)
    expect(issuesOf(security, { secrets: { privateKey: 'AAAA' } })).toHaveLength(1)
    expect(issuesOf(security, { values: { publicKey: 'A'.repeat(43) + '=' } })).toMatchObject([
      { message: 'read-only' },
    ])
    const { variant } = sent(security, { values: { serialEnabled: true } })
    expect(variant).toMatchObject({ value: { payloadVariant: { value: { privateKey: key, serialEnabled: true } } } })
  })

  it('keeps the other fields of an owner', () => {
    const owner = ownerSection(create(UserSchema, { id: '!1', longName: 'A', shortName: 'B', hwModel: 43, role: 2 }))
    const { variant } = sent(owner, { values: { longName: 'Grüße' } })
    expect(variant).toMatchObject({
      case: 'setOwner',
      value: { id: '!1', longName: 'Grüße', shortName: 'B', hwModel: 43, role: 2 },
    })
    expect(issuesOf(owner, { values: { shortName: '12345' } })).toHaveLength(1)
    expect(issuesOf(owner, { values: { longName: 'x'.repeat(40) } })).toHaveLength(1)
  })

  it('writes floats as they were given', () => {
    const power = config({ payloadVariant: { case: 'power', value: { adcMultiplierOverride: 3.2 } } })
    expect(viewSection(power).values).toMatchObject({ adcMultiplierOverride: 3.2 })
    const { plan: planned } = sent(power, { values: { adcMultiplierOverride: 1.7 } })
    expect(viewSection(planned.section).values).toMatchObject({ adcMultiplierOverride: 1.7 })
  })
})

describe('flags', () => {
  const position = (positionFlags: number) => config({ payloadVariant: { case: 'position', value: { positionFlags } } })
  const shown = (section: RawSection) => viewSection(section).values['positionFlags']
  /** The number that is sent for these flags. */
  const bitsOf = (section: RawSection, positionFlags: readonly string[]) => {
    const { variant } = sent(section, { values: { positionFlags, fixedPosition: true } })
    return Object(variant).value.payloadVariant.value.positionFlags
  }

  it.each([
    [0, []],
    [811, ['ALTITUDE', 'ALTITUDE_MSL', 'DOP', 'SATINVIEW', 'HEADING', 'SPEED']],
    [0x401, ['ALTITUDE', 'UNKNOWN_10']],
    [0xffff_fc00, Array.from({ length: 22 }, (_, index) => `UNKNOWN_${index + 10}`)],
  ])('%i is shown as %j, and means the same when it is sent back', (bits, names) => {
    expect(shown(position(bits))).toStrictEqual(names)
    expect(bitsOf(position(bits), names)).toBe(bits)
  })

  it('are set and cleared by name, in any order', () => {
    expect(bitsOf(position(811), ['SPEED', 'TIMESTAMP', 'SPEED'])).toBe(0x280)
    expect(bitsOf(position(811), [])).toBe(0)
  })

  it('keep unknown bits, whether they are listed or not', () => {
    expect(bitsOf(position(0x8000_0403), ['SPEED'])).toBe(0x8000_0600)
    expect(bitsOf(position(0x8000_0403), ['UNKNOWN_31', 'DOP'])).toBe(0x8000_0408)
    const planned = plan(position(0x401), { values: { positionFlags: ['ALTITUDE'] } })
    expect(planned).toMatchObject({ ok: true, plan: { changes: [] } })
  })

  it.each([
    ['a number', 811],
    ['an unknown flag name', ['ALTITUDE', 'DEPTH']],
    ['a name that is not a flag', ['UNSET']],
    ['a bit that is not set', ['UNKNOWN_11']],
    ['a number for a name', ['UNKNOWN_10', 1]],
    ['null', null],
  ])('refuse %s', (_name, positionFlags) => {
    expect(issuesOf(position(0x401), { values: { positionFlags } })).toMatchObject([{ path: 'values.positionFlags' }])
  })

  it('have 64 bits where the radio has as many', () => {
    const power = config({ payloadVariant: { case: 'power', value: { powermonEnables: (1n << 63n) | 5n } } })
    expect(viewSection(power).values).toMatchObject({
      powermonEnables: ['CPU_DeepSleep', 'Vext1_On', 'UNKNOWN_63'],
    })
    const { variant } = sent(power, { values: { powermonEnables: ['GPS_Active'] } })
    expect(variant).toMatchObject({ value: { payloadVariant: { value: { powermonEnables: (1n << 63n) | 0x800n } } } })
  })
})

describe('reading settings', () => {
  it('accepts a complete recorded handshake', () => {
    const reader = createConfigReader()
    const told = readRecordings('fromradio')
      .filter(({ source }) => source === 'node-B')
      .map(({ bytes }) => decodeFromRadio(bytes))
      .map((message) => (message === null ? null : reader.take(message)))
      .find((each) => each !== null)
    expect(told?.nodeNum).toBe(2_037_093_567)
    const names = [...(told?.sections.keys() ?? [])]
    expect(names).toEqual(
      expect.arrayContaining(['device', 'lora', 'security', 'mqtt', 'telemetry', 'owner', 'channels']),
    )
    for (const section of told?.sections.values() ?? []) {
      const values = JSON.parse(JSON.stringify(viewSection(section).values))
      // Displayed values may be sent back unchanged: none of them is a change.
      const planned = plan(section, { values })
      expect([section.section, planned.ok ? planned.plan.changes : planned.issues]).toStrictEqual([section.section, []])
    }
  })

  it('starts over with each handshake, and knows only reported sections', () => {
    const reader = createConfigReader()
    const take = (payloadVariant: object) => reader.take(Object({ payloadVariant }))
    const lora = create(ConfigSchema, { payloadVariant: { case: 'lora', value: create(Config_LoRaConfigSchema) } })
    expect(take({ case: 'configCompleteId', value: 1 })).toBeNull()
    take({ case: 'myInfo', value: { myNodeNum: 5, rebootCount: 1 } })
    take({ case: 'config', value: lora })
    take({ case: 'myInfo', value: { myNodeNum: 5, rebootCount: 2 } })
    take({ case: 'moduleConfig', value: create(ModuleConfigSchema) })
    const told = take({ case: 'configCompleteId', value: 1 })
    expect([told?.rebootCount, [...(told?.sections.keys() ?? [])]]).toStrictEqual([2, []])
  })
})
