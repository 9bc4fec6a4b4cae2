import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { type Channel, ChannelSchema } from '../gen/channel_pb.ts'
import { ConfigSchema } from '../gen/config_pb.ts'
import { ModuleConfigSchema } from '../gen/module_config_pb.ts'
import { type User, UserSchema } from '../gen/payloads_pb.ts'
import type { FromRadio } from '../gen/stream_pb.ts'
import type { SectionKind } from './kinds.ts'

/** A message of a section: the only one, or one of eight channels. `prefix` precedes the paths of its fields. */
export type ConfigPart = { readonly prefix: string; readonly schema: DescMessage; readonly message: Message }

/** A section as the radio sent it, including secrets and fields newer than our table. It must stay in memory. */
export type RawSection = {
  readonly section: string
  readonly kind: SectionKind
  readonly parts: readonly ConfigPart[]
}

/** All settings that a radio reports in one handshake. */
export type RadioConfig = {
  readonly nodeNum: number
  /** How often the radio has started; 0: not reported. */
  readonly rebootCount: number
  readonly sections: ReadonlyMap<string, RawSection>
}

// Session keys are not settings, and those of the device UI contain a PIN that is not in our table.
const LEFT_OUT: ReadonlySet<string> = new Set(['sessionkey', 'deviceUi'])

const MAX_CHANNELS = 8

/** The messages that make up the sections, by section name. */
export const SECTION_SCHEMAS: ReadonlyMap<string, { readonly kind: SectionKind; readonly schema: DescMessage }> =
  new Map([
    ...listSections('config', ConfigSchema),
    ...listSections('moduleConfig', ModuleConfigSchema),
    ['owner', { kind: 'owner', schema: UserSchema }],
    ['channels', { kind: 'channels', schema: ChannelSchema }],
  ])

function listSections(kind: SectionKind, parent: DescMessage) {
  return parent.fields.flatMap(({ localName, message: schema }) =>
    schema === undefined || LEFT_OUT.has(localName) ? [] : [[localName, { kind, schema }] as const],
  )
}

/** Follows one connection. `take` returns the complete settings at the end of each handshake, otherwise null. */
export function createConfigReader(): { take(message: FromRadio): RadioConfig | null } {
  let about: { readonly nodeNum: number; readonly rebootCount: number } | null = null
  let sections = new Map<string, RawSection>()
  let channels = new Map<number, Channel>()
  return {
    take({ payloadVariant }) {
      const { case: variant, value } = payloadVariant
      switch (variant) {
        case 'myInfo':
          about = { nodeNum: value.myNodeNum, rebootCount: value.rebootCount }
          sections = new Map()
          channels = new Map()
          return null
        case 'nodeInfo':
          if (about !== null && value.num === about.nodeNum && value.user !== undefined) {
            sections.set('owner', ownerSection(value.user))
          }
          return null
        case 'channel':
          if (value.index >= 0 && value.index < MAX_CHANNELS) channels.set(value.index, value)
          return null
        case 'config':
        case 'moduleConfig': {
          const section = sectionOf(value.payloadVariant)
          if (section !== null) sections.set(section.section, section)
          return null
        }
        case 'configCompleteId': {
          if (about === null) return null
          const complete = new Map(sections)
          if (channels.size > 0) complete.set('channels', channelsSection([...channels.values()]))
          return { ...about, sections: complete }
        }
        default:
          return null
      }
    },
  }
}

export function ownerSection(user: User): RawSection {
  return { section: 'owner', kind: 'owner', parts: [{ prefix: '', schema: UserSchema, message: user }] }
}

export function channelsSection(channels: readonly Channel[]): RawSection {
  const parts = channels
    .toSorted((a, b) => a.index - b.index)
    .map((message) => ({ prefix: `channels.${message.index}.`, schema: ChannelSchema, message }))
  return { section: 'channels', kind: 'channels', parts }
}

/** The section in a `Config` or `ModuleConfig`; null if it is not in our table. */
export function sectionOf({ case: section, value }: { case?: string | undefined; value?: unknown }): RawSection | null {
  const known = section === undefined ? undefined : SECTION_SCHEMAS.get(section)
  if (section === undefined || known === undefined || !isMessageOf(known.schema, value)) return null
  return { section, kind: known.kind, parts: [{ prefix: '', schema: known.schema, message: value }] }
}

function isMessageOf(schema: DescMessage, value: unknown): value is Message {
  return typeof value === 'object' && value !== null && '$typeName' in value && value.$typeName === schema.typeName
}

/** Bytes that differ if anything in the section differs, including secrets. */
export function sectionBytes({ parts }: RawSection): Uint8Array {
  const all = parts.map(({ schema, message }) => toBinary(schema, message))
  return Uint8Array.from(all.flatMap((bytes) => [bytes.length & 0xff, bytes.length >> 8, ...bytes]))
}
