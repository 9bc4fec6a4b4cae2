import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { fitsNodeNum, isWeakKey } from '../../../src/meshtastic/crypto/public-key.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { encodePublicKey } from '../../../src/meshtastic/payload/user.ts'
import { readRecordings } from '../recordings.ts'

it('the node number of firmware 2.8 is the CRC-32 of the public key, as in the recordings', () => {
  const keys = new Map<number, string>()
  for (const { bytes } of readRecordings('fromradio')) {
    const variant = decodeFromRadio(bytes)?.payloadVariant
    if (variant?.case !== 'nodeInfo') continue
    const key = encodePublicKey(variant.value.user?.publicKey ?? new Uint8Array(0))
    if (key !== null) keys.set(variant.value.num, key)
  }
  expect(keys.size).toBe(5)
  for (const [nodeNum, key] of keys) {
    expect(fitsNodeNum(key, nodeNum)).toBe(true)
    expect(fitsNodeNum(key, nodeNum ^ 1)).toBe(false)
  }
})

it('recognises the keys that firmware refuses by their published hashes', () => {
  const file = readFileSync(new URL('../fixtures/low-entropy-keys.json', import.meta.url), 'utf8')
  const hashes: string[] = JSON.parse(file).sha256
  expect(hashes).toHaveLength(24)
  const key = Buffer.alloc(32, 7).toString('base64')
  const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  expect(isWeakKey(key, sha256)).toBe(false)
  // The keys themselves are not published: the hash stands for the key.
  for (const hash of hashes) {
    expect(isWeakKey(key, () => hash)).toBe(true)
  }
  expect(hashes).not.toContain(sha256(Buffer.alloc(32, 7)))
})
