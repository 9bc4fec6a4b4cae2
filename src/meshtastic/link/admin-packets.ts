import { create, type DescMessage, toBinary } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import type { SectionKind } from '../config/kinds.ts'
import type { ConfigPart, RawSection } from '../config/sections.ts'
import { AdminMessageSchema } from '../gen/admin_pb.ts'
import { ConfigSchema } from '../gen/config_pb.ts'
import { ModuleConfigSchema } from '../gen/module_config_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { encodeData } from './to-radio.ts'

/**
 * Payloads that set all parts of these sections as one edit: the first begins it, the last makes the radio save and
 * restart. Each is for an admin packet to the radio itself, which needs no passkey from its own client.
 */
export function encodeEdit(sections: readonly RawSection[]): Uint8Array[] {
  const begin = create(AdminMessageSchema, { payloadVariant: { case: 'beginEditSettings', value: true } })
  const commit = create(AdminMessageSchema, { payloadVariant: { case: 'commitEditSettings', value: true } })
  const sets = sections.flatMap((section) => section.parts.map((part) => encodeSet(section, part)))
  return [toBinary(AdminMessageSchema, begin), ...sets, toBinary(AdminMessageSchema, commit)]
}

/** A payload that makes the radio restart without saving anything, after it has answered. */
export function encodeRestart(): Uint8Array {
  const restart = create(AdminMessageSchema, { payloadVariant: { case: 'rebootSeconds', value: 2 } })
  return toBinary(AdminMessageSchema, restart)
}

/** A payload that makes the radio forget a node. */
export function encodeRemoveNode(nodeNum: number): Uint8Array {
  const remove = create(AdminMessageSchema, { payloadVariant: { case: 'removeByNodenum', value: nodeNum } })
  return toBinary(AdminMessageSchema, remove)
}

/** What a radio remembers about a node by order of its owner. */
export type NodeMark = 'favorite' | 'ignored' | 'muted'

const MARKS = {
  favorite: ['removeFavoriteNode', 'setFavoriteNode'],
  ignored: ['removeIgnoredNode', 'setIgnoredNode'],
  // There is no other message: the radio turns the mark over, whatever it was.
  muted: ['toggleMutedNode', 'toggleMutedNode'],
} as const satisfies Record<NodeMark, readonly [string, string]>

/** A payload that makes the radio mark a node, or end the mark. */
export function encodeMark(nodeNum: number, mark: NodeMark, isSet: boolean): Uint8Array {
  const message = create(AdminMessageSchema, { payloadVariant: { case: MARKS[mark][isSet ? 1 : 0], value: nodeNum } })
  return toBinary(AdminMessageSchema, message)
}

/** An encoded ToRadio with an admin message to the radio itself, which answers it with a routing message. */
export function encodeAdminPacket(nodeNum: number, id: number, payload: Uint8Array): Uint8Array {
  // The packet never leaves the radio. If the number belongs to another node, hop limit 0 keeps it from being relayed.
  const way = { to: nodeNum, channel: 0, id, hopLimit: 0, wantAck: false }
  return encodeData({ ...way, port: PortNum.ADMIN_APP, payload, wantResponse: true })
}

/** The field of `AdminMessage` that sets a part, and the message around the part, if any. */
const SETTERS: Readonly<Record<SectionKind, { readonly field: string; readonly around: DescMessage | null }>> = {
  config: { field: 'setConfig', around: ConfigSchema },
  moduleConfig: { field: 'setModuleConfig', around: ModuleConfigSchema },
  owner: { field: 'setOwner', around: null },
  channels: { field: 'setChannel', around: null },
}

function encodeSet({ kind, section }: RawSection, { schema, message: value }: ConfigPart): Uint8Array {
  const { field, around } = SETTERS[kind]
  const part = reflect(schema, value)
  const message = create(AdminMessageSchema)
  const admin = reflect(AdminMessageSchema, message)
  if (around === null) admin.set(fieldOf(AdminMessageSchema, field), part)
  else {
    const config = reflect(around, create(around))
    config.set(fieldOf(around, section), part)
    admin.set(fieldOf(AdminMessageSchema, field), config)
  }
  return toBinary(AdminMessageSchema, message)
}

function fieldOf(schema: DescMessage, name: string) {
  const field = schema.fields.find(({ localName }) => localName === name)
  if (field === undefined) throw new Error(`${schema.typeName} has no field ${name}`)
  return field
}
