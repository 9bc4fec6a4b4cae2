import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { generateKeyPair, sign } from 'curve25519-js'
import { crc32 } from 'node:zlib'
import { type Data, type DataSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { packet } from '../mesh/mesh.ts'
import type { FromRadioVariant } from '../radio/device.ts'

type DataInit = Exclude<MessageInitShape<typeof DataSchema>, Data>
type Around = NonNullable<Parameters<typeof packet>[1]>

/** A node of firmware 2.8: its number is the CRC-32 of its key, and it signs with another implementation's XEdDSA. */
export type Signer = {
  readonly nodeNum: number
  readonly publicKey: Uint8Array
  /** The key as shown by the API. */
  readonly base64: string
  /** Its signature of a packet. */
  sign(content: { readonly from: number; readonly id: number; readonly data: DataInit }): Uint8Array
  /** A packet signed by it. */
  packet(data: DataInit, more?: Around): FromRadioVariant
  /** Its node info, including the key. */
  user(init: MessageInitShape<typeof UserSchema>): DataInit
}

let lastId = 500_000

/** The same seed makes the same node. `nodeNum`: for one whose number does not match its key. */
export function createSigner(seed: number, nodeNum?: number): Signer {
  const keys = generateKeyPair(Uint8Array.from({ length: 32 }, (_, i) => (seed * 31 + i * 7) & 0xff))
  const own = nodeNum ?? crc32(keys.public)
  const signer: Signer = {
    nodeNum: own,
    publicKey: keys.public,
    base64: Buffer.from(keys.public).toString('base64'),
    sign({ from, id, data }) {
      const payload = data.payload ?? new Uint8Array(0)
      const message = Buffer.alloc(12 + payload.length)
      message.writeUInt32LE(from, 0)
      message.writeUInt32LE(id, 4)
      message.writeUInt32LE(data.portnum ?? 0, 8)
      message.set(payload, 12)
      return sign(keys.private, Uint8Array.from(message), undefined)
    },
    packet(data, more = {}) {
      const { from = own, id = ++lastId } = more
      return packet({ ...data, xeddsaSignature: signer.sign({ from, id, data }) }, { from, id, ...more })
    },
    user: (init) => ({
      portnum: PortNum.NODEINFO_APP,
      payload: toBinary(UserSchema, create(UserSchema, { publicKey: keys.public, ...init })),
    }),
  }
  return signer
}
