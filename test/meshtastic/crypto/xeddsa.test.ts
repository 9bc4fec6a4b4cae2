import { describe, expect, it } from 'vitest'
import { createVerifier } from '../../../src/meshtastic/crypto/xeddsa.ts'
import { text } from '../../support/mesh/mesh.ts'
import { createSigner, signOldForm, signXeddsa } from '../../support/mesh/signer.ts'

const verify = createVerifier()
const data = text('who is there?')
const payload = new TextEncoder().encode('who is there?')

describe('signatures of another implementation', () => {
  it.each(Array.from({ length: 16 }, (_, seed) => seed))('match the key they were made with: %i', async (seed) => {
    const signer = createSigner(seed)
    const content = { from: signer.nodeNum, id: 0xfffffff0 + seed, port: 1, payload }
    const signature = signer.sign({ from: content.from, id: content.id, data })
    expect(await verify(signer.publicKey, signature, content)).toBe(true)
    expect(await verify(createSigner(seed + 100).publicKey, signature, content)).toBe(false)
  })

  it('match nothing else', async () => {
    const signer = createSigner(3)
    const content = { from: signer.nodeNum, id: 7, port: 1, payload }
    const signature = signer.sign({ from: content.from, id: content.id, data })
    const others = [
      { ...content, from: content.from ^ 1 },
      { ...content, id: 8 },
      { ...content, port: 4 },
      { ...content, payload: payload.slice(1) },
    ]
    for (const other of others) expect(await verify(signer.publicKey, signature, other)).toBe(false)
    for (const at of [0, 31, 32, 62]) {
      const changed = signature.map((byte, i) => (i === at ? byte ^ 4 : byte))
      expect(await verify(signer.publicKey, changed, content)).toBe(false)
    }
    expect(await verify(signer.publicKey, signature.slice(1), content)).toBe(false)
  })
})

it('rejects keys for which anybody can forge signatures', async () => {
  // Of order 1, 2, 4 and 8 (https://cr.yp.to/ecdh.html#validate), and one that is not a number of the field.
  const weak = [
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000000',
    'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
    '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  ]
  // R is the point of order 1 and s is 0: it matches when the hash of the message is a multiple of the key's order.
  const madeUp = Uint8Array.from({ length: 64 }, (_, i) => (i === 0 ? 1 : 0))
  for (const hex of weak) {
    const publicKey = Uint8Array.from(Buffer.from(hex, 'hex'))
    for (let id = 0; id < 32; id++) {
      expect(await verify(publicKey, madeUp, { from: 1, id, port: 1, payload })).toBe(false)
    }
  }
})

it('accepts every random part of a signature', async () => {
  const signer = createSigner(9)
  const message = Uint8Array.from([1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0x68])
  const content = { from: 1, id: 2, port: 1, payload: Uint8Array.of(0x68) }
  for (const random of [0, 5, 255]) {
    const signature = signXeddsa(signer.privateKey, message, new Uint8Array(64).fill(random))
    expect(await verify(signer.publicKey, signature, content)).toBe(true)
  }
})

it('rejects the older form, which keeps the sign of the key in the last bit, as firmware does', async () => {
  const message = Uint8Array.from([1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, ...payload])
  const content = { from: 1, id: 2, port: 1, payload }
  const signers = Array.from({ length: 12 }, (_, seed) => createSigner(seed))
  const old = signers.map(({ publicKey, privateKey }) => ({ publicKey, signature: signOldForm(privateKey, message) }))
  const marked = old.filter(({ signature }) => (signature[63] ?? 0) >= 0x80)
  expect(marked.length).toBeGreaterThan(0)
  for (const { publicKey, signature } of marked) {
    expect(await verify(publicKey, signature, content)).toBe(false)
    const without = signature.map((byte, at) => (at === 63 ? byte & 0x7f : byte))
    expect(await verify(publicKey, without, content)).toBe(false)
  }
})
