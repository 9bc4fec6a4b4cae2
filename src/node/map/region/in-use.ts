import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Area } from '../../../app/mesh/map/region/area.ts'
import { MAX_ATTRIBUTION } from '../../../shared/limits.ts'
import { hasCode } from '../../disk/error-code.ts'
import { NotPmtiles, openFile } from '../archive.ts'

/** A complete map of a region. */
export type InUse = Area & {
  readonly bytes: number
  /** When it was completed, in milliseconds. */
  readonly t: number
  /** Plain text. */
  readonly attribution: string | null
}

const MAX_PLAIN_METADATA_BYTES = 8 * 1024 * 1024

const unpackBytes = promisify(gunzip)

/** Reads what a map of a region says of itself, once for each file. Null: there is none that can be read. */
export function createInUse(file: string): () => Promise<InUse | null> {
  let known: { readonly etag: string; readonly found: InUse } | null = null
  return async () => {
    const opened = await openFile(file).catch((error: unknown) => {
      if (error instanceof NotPmtiles || hasCode(error, 'ENOENT', 'EACCES', 'EIO')) return null
      throw error
    })
    if (opened === null) return null
    try {
      if (known?.etag !== opened.etag) known = { etag: opened.etag, found: await describe(opened) }
      return known.found
    } finally {
      await opened.close()
    }
  }
}

async function describe({ header, size, changedAt, metadata }: Awaited<ReturnType<typeof openFile>>): Promise<InUse> {
  const [west, south, east, north] = header.bounds
  const told = await metadata()
  return {
    bounds: [west, south, east, north],
    maxZoom: header.maxZoom,
    bytes: size,
    t: changedAt,
    attribution: told === null ? null : await attributionIn(told),
  }
}

async function attributionIn(packed: Uint8Array): Promise<string | null> {
  try {
    const plain = await unpackBytes(packed, { maxOutputLength: MAX_PLAIN_METADATA_BYTES })
    const { attribution }: { attribution?: unknown } = Object(JSON.parse(plain.toString('utf8')))
    return typeof attribution === 'string' ? plainText(attribution) : null
  } catch {
    // Without its attribution it is still a map.
    return null
  }
}

/** Archives have links in their attribution. */
function plainText(html: string): string | null {
  const text = html
    .replaceAll(/<[^<>]*>/g, '')
    .replaceAll('&copy;', '©')
    .replaceAll('&amp;', '&')
    .replaceAll(/[\p{Cc}\p{Cs}<>]/gu, '')
    .trim()
    .slice(0, MAX_ATTRIBUTION)
  return text === '' ? null : text
}
