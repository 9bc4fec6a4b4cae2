/** Smaller buffers may share their memory with others. */
const LEAST_BYTES = Buffer.poolSize

/**
 * Gives the memory of bytes that nobody reads any more back at once. Otherwise it stays until the engine collects, which
 * is tens of megabytes later. If they are the end of a larger buffer, nobody may need what is before them either.
 */
export function letGo({ buffer, byteOffset, byteLength }: Uint8Array): void {
  const isEnd = byteOffset + byteLength === buffer.byteLength
  if (isEnd && buffer.byteLength > LEAST_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
