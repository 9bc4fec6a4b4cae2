import { type Data, DataSchema } from '../gen/packet_pb.ts'
import { PortNum, PortNumSchema } from '../gen/ports_pb.ts'
import { contentOf } from '../payload/payload.ts'
import { decodeStrictly } from '../wire-shape.ts'

/**
 * The content of decrypted bytes, or null if the key was wrong. The cipher does not detect a wrong key, so only a known
 * port with a valid payload is accepted.
 */
export function decodeDecrypted(bytes: Uint8Array): Data | null {
  const data = decodeStrictly(DataSchema, bytes)
  return data !== null && PortNumSchema.value[data.portnum] !== undefined && hasValidPayload(data) ? data : null
}

function hasValidPayload({ portnum, payload }: Data): boolean {
  if (portnum === PortNum.UNKNOWN_APP) return false
  const content = contentOf(portnum)
  if (content === 'text') return isText(payload)
  return content === null || decodeStrictly(content, payload) !== null
}

function isText(bytes: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes) !== ''
  } catch {
    return false
  }
}
