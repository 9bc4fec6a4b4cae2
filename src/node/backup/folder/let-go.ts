/** Smaller ones may be constants of a library, and are soon collected. */
const LEAST_BYTES = 8192

/**
 * Gives the memory of bytes that nobody reads any more back at once. Otherwise it stays until the engine collects, which
 * is tens of megabytes later. If they are the end of a larger buffer, nobody may need what is before them either; only
 * Node's pool, whose pieces have different owners, stays.
 */
export function letGo({ buffer, byteOffset, byteLength }: Uint8Array): void {
  const isWhole = byteLength === buffer.byteLength
  const isEnd = byteOffset + byteLength === buffer.byteLength && buffer.byteLength !== Buffer.poolSize
  if ((isWhole || isEnd) && buffer.byteLength >= LEAST_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
