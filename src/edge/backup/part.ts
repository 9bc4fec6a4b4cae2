import type { Piece } from './work.ts'

/** A stretch of a table's file, as one member of gzip. */
type OpenPiece = { write(bytes: Uint8Array): Promise<void>; end(): Promise<Piece> }

/** An object of the bucket in the making: pieces, one after another. */
export type Part = {
  begin(): OpenPiece
  /** Bytes of tables so far. */
  read(): number
  /** The object. Every piece has ended. */
  bytes(): Uint8Array
}

export function createPart(object: number): Part {
  const compressed: Uint8Array[] = []
  let length = 0
  let read = 0
  return {
    begin() {
      const gzip = new CompressionStream('gzip')
      const writer = gzip.writable.getWriter()
      const chunks = collect(gzip.readable)
      return {
        write: async (bytes) => {
          read += bytes.length
          await writer.write(new Uint8Array(bytes))
        },
        end: async () => {
          await writer.close()
          const mine = await chunks
          const piece = { object, at: length, bytes: lengthOf(mine) }
          compressed.push(...mine)
          length += piece.bytes
          return piece
        },
      }
    },
    read: () => read,
    bytes: () => {
      const all = new Uint8Array(length)
      let at = 0
      for (const chunk of compressed) {
        all.set(chunk, at)
        at += chunk.length
      }
      return all
    },
  }
}

const lengthOf = (chunks: readonly Uint8Array[]) => chunks.reduce((sum, { length }) => sum + length, 0)

async function collect(stream: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}
