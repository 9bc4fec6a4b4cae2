import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ed25519, x25519 } from '@noble/curves/ed25519.js'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type Data, type DataSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { packet } from './mesh.ts'
import type { FromRadioVariant } from '../radio/device.ts'

type DataInit = Exclude<MessageInitShape<typeof DataSchema>, Data>
type Around = NonNullable<Parameters<typeof packet>[1]>

const { Point } = ed25519

const littleEndian = (bytes: Uint8Array): bigint => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
const hashToScalar = (...parts: readonly Uint8Array[]): bigint =>
  Point.Fn.create(littleEndian(parts.reduce((hash, part) => hash.update(part), createHash('sha512')).digest()))

/**
 * XEdDSA with the private key of X25519 (Signal's specification, section 2.4), from the group's arithmetic alone. The
 * signer negates its key where the point has sign bit 1. `random`: 64 bytes that make each signature another one.
 */
export function signXeddsa(privateKey: Uint8Array, message: Uint8Array, random = new Uint8Array(64)): Uint8Array {
  const k = scalarOf(privateKey)
  return signWith(hasSign(k) ? Point.Fn.neg(k) : k, message, random)
}

/** The older form, which keeps the sign bit of the point in the last bit of the signature. */
export function signOldForm(privateKey: Uint8Array, message: Uint8Array): Uint8Array {
  const k = scalarOf(privateKey)
  const signature = signWith(k, message, new Uint8Array(64))
  return signature.map((byte, at) => (at === 63 && hasSign(k) ? byte | 0x80 : byte))
}

function scalarOf(privateKey: Uint8Array): bigint {
  const clamped = Uint8Array.from(privateKey, (byte, at) =>
    at === 0 ? byte & 0xf8 : at === 31 ? (byte & 0x7f) | 0x40 : byte,
  )
  return Point.Fn.create(littleEndian(clamped))
}

function hasSign(scalar: bigint): boolean {
  return (Point.BASE.multiply(scalar).toBytes()[31] ?? 0) >= 0x80
}

function signWith(a: bigint, message: Uint8Array, random: Uint8Array): Uint8Array {
  const publicKey = Point.BASE.multiply(a).toBytes()
  const prefix = Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 0xfe : 0xff))
  const r = hashToScalar(prefix, Point.Fn.toBytes(a), message, random)
  const commitment = Point.BASE.multiply(r).toBytes()
  const s = Point.Fn.add(r, Point.Fn.mul(hashToScalar(commitment, publicKey, message), a))
  return Uint8Array.from([...commitment, ...Point.Fn.toBytes(s)])
}

/** A node of firmware 2.8: its number is the CRC-32 of its key, and it signs with another implementation's XEdDSA. */
export type Signer = {
  readonly nodeNum: number
  readonly publicKey: Uint8Array
  readonly privateKey: Uint8Array
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
  const privateKey = Uint8Array.from({ length: 32 }, (_, i) => (seed * 31 + i * 7) & 0xff)
  const publicKey = x25519.getPublicKey(privateKey)
  const own = nodeNum ?? crc32(publicKey)
  const signer: Signer = {
    nodeNum: own,
    publicKey,
    privateKey,
    base64: Buffer.from(publicKey).toString('base64'),
    sign({ from, id, data }) {
      const payload = data.payload ?? new Uint8Array(0)
      const message = Buffer.alloc(12 + payload.length)
      message.writeUInt32LE(from, 0)
      message.writeUInt32LE(id, 4)
      message.writeUInt32LE(data.portnum ?? 0, 8)
      message.set(payload, 12)
      return signXeddsa(privateKey, Uint8Array.from(message))
    },
    packet(data, more = {}) {
      const { from = own, id = ++lastId } = more
      return packet({ ...data, xeddsaSignature: signer.sign({ from, id, data }) }, { from, id, ...more })
    },
    user: (init) => ({
      portnum: PortNum.NODEINFO_APP,
      payload: toBinary(UserSchema, create(UserSchema, { publicKey, ...init })),
    }),
  }
  return signer
}
