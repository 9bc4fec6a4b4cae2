import { base64Decode } from '@bufbuild/protobuf/wire'
import { expandPsk } from '../crypto/channel.ts'
import type { ChannelKey } from '../link/mqtt-envelope.ts'
import { parseNodeId } from '../node-id.ts'

/** The radio's own limit is 11, but names of other services may be longer. */
const MAX_NAME_BYTES = 64

/** `name=base64`, as a radio shows its channel key; `AQ==` is the default key. Null for anything else. */
export function parseChannelKey(text: string): ChannelKey | null {
  const [name, psk] = splitPair(text)
  const bytes = decodeKey(psk)
  const isUsable = bytes !== null && [0, 1, 16, 32].includes(bytes.length)
  return !isUsable || new TextEncoder().encode(name).length > MAX_NAME_BYTES ? null : { name, key: expandPsk(bytes) }
}

/** `!a0cb0001=base64`, the private key of a radio. Null for anything else. */
export function parsePrivateKey(text: string): { readonly nodeNum: number; readonly key: Uint8Array } | null {
  const [id, key] = splitPair(text)
  const nodeNum = parseNodeId(id)
  const bytes = decodeKey(key)
  return nodeNum === null || bytes?.length !== 32 ? null : { nodeNum, key: bytes }
}

/** Splits at the first `=`, because a key may end with more of them. */
function splitPair(text: string): readonly [string, string | null] {
  const at = text.indexOf('=')
  return at === -1 ? [text, null] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function decodeKey(text: string | null): Uint8Array | null {
  if (text === null || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return null
  try {
    return base64Decode(text)
  } catch {
    return null
  }
}
