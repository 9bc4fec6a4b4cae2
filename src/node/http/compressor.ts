import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import type { Compressor, Encoding } from '../../app/http/compression.ts'

type Pack = (bytes: Uint8Array) => Promise<Buffer>

/** Compresses on the thread pool. Node has Zstandard since 22.15. */
export function zlibCompressor(): Compressor {
  const packers = new Map<Encoding, Pack>()
  // Level 1 makes lists of nodes smaller than the next levels do, and smaller than gzip does in six times the time.
  if ('zstdCompress' in zlib) {
    const { ZSTD_c_compressionLevel: level } = zlib.constants
    const zstd = promisify(zlib.zstdCompress)
    packers.set('zstd', (bytes) => zstd(bytes, { params: { [level]: 1 } }))
  }
  const gzip = promisify(zlib.gzip)
  packers.set('gzip', (bytes) => gzip(bytes))
  return {
    encodings: [...packers.keys()],
    compress: async (encoding, bytes) => {
      const pack = packers.get(encoding)
      if (pack === undefined) throw new Error(`no such encoding here: ${encoding}`)
      return new Uint8Array(await pack(bytes))
    },
  }
}
