import * as z from 'zod'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { countTextBytes } from '../../../meshtastic/link/to-radio.ts'
import { MAX_TEXT_BYTES } from '../../../shared/limits.ts'
import { DOWNLINK_SECTIONS, MAX_SECTION_JSON } from '../../../shared/mesh/downlink.ts'
import { REQUEST_KINDS } from '../../../shared/mesh/request-kinds.ts'

/** Random hexadecimal digits: the name of a command, or the word with which it is taken. */
export const wordSchema = z.string().regex(/^[\da-f]{32}$/)

const node = z
  .int()
  .min(1)
  .max(BROADCAST - 1)
const path = z.string().min(1).max(100)
const isSmall = (value: unknown) => JSON.stringify(value).length <= MAX_SECTION_JSON
const packetId = z.int().min(1).max(0xffffffff)

/** What a radio shall send or change, by the kind of the command. The collector reads it as from a stranger. */
export const contentSchemas = {
  text: z
    .strictObject({
      text: z
        .string()
        .refine((text) => text.trim() !== '' && text.isWellFormed() && !text.includes('\0'))
        .refine((text) => countTextBytes(text) <= MAX_TEXT_BYTES),
      to: z.int().min(1).max(BROADCAST),
      /** The channel's index in the radio. */
      slot: z.int().min(0).max(7),
      /** Its identity: nothing is sent if the radio has another one there. Null: the radio decides. */
      channel: z.string().max(100).nullable(),
      replyId: packetId.nullable(),
      emoji: z.boolean(),
      wantAck: z.boolean(),
      hopLimit: z.int().min(0).max(7).nullable(),
    })
    .refine(({ emoji, replyId }) => !emoji || replyId !== null)
    .refine(({ wantAck, hopLimit }) => !wantAck || hopLimit !== 0),
  traceroute: z.strictObject({ to: node }),
  request: z.strictObject({ to: node, request: z.enum(REQUEST_KINDS) }),
  settings: z.strictObject({
    section: z.enum(DOWNLINK_SECTIONS),
    /** Nested, only the fields to change. Whatever would be a secret is refused. */
    values: z.record(path, z.json()).refine(isSmall),
    /** By path, of these fields, what they were where somebody changed them. Nothing changes if that is over. */
    before: z.record(path, z.json()).refine(isSmall),
    /** Paths of the risky fields that are confirmed. */
    confirm: z.array(path).max(100),
  }),
} as const

/** A command as a collector gets it. */
export const commandSchema = z
  .object({
    id: wordSchema,
    radio: z.string().min(1).max(300),
    kind: z.string().max(30),
    content: z.unknown().describe('What to send, by kind'),
    packetId: packetId.describe('Id of the packet'),
    askedBy: z.string().regex(/^[^\p{Cc}\p{Cf}\p{Cs}\s]{1,100}$/u),
    expiresInMs: z.int().describe('How long it may still be taken'),
  })
  .meta({ id: 'RadioCommand', description: "What a collector's radio shall send" })
export type Command = z.infer<typeof commandSchema>
