import { create, toJson } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { planChange } from '../../../src/meshtastic/config/change.ts'
import { type RawSection, SECTION_SCHEMAS } from '../../../src/meshtastic/config/sections.ts'
import { type Leaf, listLeaves, writeLeaves } from '../../../src/meshtastic/config/values.ts'
import { exportFile, listSecretNames, readFile } from '../../../src/meshtastic/exchange/cli-file.ts'

/** Every section of a radio, with its defaults. */
function emptyRadio(): Map<string, RawSection> {
  return new Map(
    [...SECTION_SCHEMAS].flatMap(([section, { kind, schema }]) =>
      kind === 'channels'
        ? []
        : [[section, { section, kind, parts: [{ prefix: '', schema, message: create(schema) }] }]],
    ),
  )
}

/** A value of each field that is not its default. */
function otherThanDefault({ field, path }: Leaf, at: number): unknown {
  const item = () => {
    switch (field.type) {
      case 'boolean':
        return true
      case 'enum':
        return field.enum?.values.at(-1)?.number
      case 'flags':
        return path === 'powermonEnables' ? 1n : 1
      case 'integer':
        return path === 'fixedPin' ? 123_456 : Math.min(field.max ?? at, at + 1)
      case 'number':
        return 3.5
      case 'string':
        return `is ${at}`.slice(0, field.maxBytes ?? 99)
      case 'bytes':
        return new Uint8Array(field.sizes?.at(-1) ?? 4).fill(at)
      case 'ipv4':
        return 16_777_343
      default:
        return field.type satisfies never
    }
  }
  return field.list ? [item()] : item()
}

function fullRadio(): Map<string, RawSection> {
  const radio = emptyRadio()
  for (const section of radio.values()) {
    const [part] = section.parts
    const writes = listLeaves(section).map((leaf, at) => ({ field: leaf.field, value: otherThanDefault(leaf, at) }))
    if (part !== undefined) writeLeaves(part.schema, part.message, writes)
  }
  return radio
}

const jsonOf = ({ parts: [part] }: RawSection) => (part === undefined ? null : toJson(part.schema, part.message))

it('carries every setting of one radio to another, secrets only by name', () => {
  const from = fullRadio()
  const names = listSecretNames(from)
  expect(names).toStrictEqual([
    'network.wifiPsk',
    'bluetooth.fixedPin',
    'security.privateKey',
    'mqtt.password',
    'meshBeacon.broadcastOfferChannel.psk',
    'meshBeacon.broadcastOnChannel.psk',
  ])
  const to = emptyRadio()
  const read = readFile(exportFile(from, new Set(names), null), to)
  expect(read.leftOut).toStrictEqual([
    { key: 'config.security.publicKey', why: 'derived' },
    { key: 'config.security.isManaged', why: 'managed' },
  ])
  for (const [name, section] of to) {
    const planned = planChange(section, read.inputs.get(name) ?? { values: {}, secrets: {} })
    if (!planned.ok) throw new Error(JSON.stringify(planned.issues))
    const wanted = from.get(name)
    if (wanted === undefined) throw new Error(name)
    const { isManaged: _managed, publicKey: _public, ...rest } = Object(jsonOf(wanted))
    const { isLicensed: _licensed, isUnmessagable: _unmessagable, ...owner } = rest
    expect([name, jsonOf(planned.plan.section)]).toStrictEqual([name, name === 'owner' ? owner : rest])
  }
})

it('has no secret that is not named', () => {
  const from = fullRadio()
  for (const name of [null, ...listSecretNames(from)]) {
    const file = JSON.stringify(exportFile(from, new Set(name === null ? [] : [name]), null))
    const found = ['wifiPsk', 'fixedPin', 'privateKey', 'password'].filter((key) => file.includes(`"${key}"`))
    expect(found).toStrictEqual(name === null || name.endsWith('.psk') ? [] : [name.split('.').at(-1)])
    expect(file.match(/"psk"/g) ?? []).toHaveLength(name?.endsWith('.psk') ? 1 : 0)
  }
})

it('is spelled so that the CLI finds its fields: its names come from the capitals, and items of lists are texts', () => {
  const { config } = exportFile(fullRadio(), new Set(), null)
  expect(config).toMatchObject({
    display: { use_12h_clock: true, compassNorthTop: true },
    lora: { sx126xRxBoostedGain: true, ignoreIncoming: [expect.stringMatching(/^\d+$/)] },
    security: { adminKey: [expect.stringMatching(/^base64:/)] },
    power: { powermonEnables: '1' },
  })
})

it('for a radio that has not reported a section, its keys are named', () => {
  const { inputs, leftOut } = readFile({ owner: 'Hill', config: { lora: { hopLimit: 3 } } }, new Map())
  expect([inputs.size, leftOut]).toStrictEqual([
    0,
    [
      { key: 'owner', why: 'unreported' },
      { key: 'config.lora', why: 'unreported' },
    ],
  ])
})
