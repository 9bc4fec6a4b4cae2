import type { Context } from 'hono'
import type { AppEnv } from '../../base/context.ts'
import { matchesEtag } from '../../http/compression.ts'
import { AppError } from '../../http/errors.ts'
import type { OpenMapArchive } from './archive.ts'
import { readRange } from './byte-range.ts'

export const OCTETS = { mediaType: 'application/octet-stream' }

/** Answers with a map file or a range of it, and closes it. Throws `range_not_satisfiable`. */
export async function sendArchive(c: Context<AppEnv>, archive: OpenMapArchive) {
  const { size, etag } = archive
  const isStale = !matchesEtag(c.req.header('if-range') ?? etag, etag)
  const range = isStale ? null : readRange(c.req.header('range'), size)
  const isKnown = matchesEtag(c.req.header('if-none-match'), etag)
  if (isKnown || range === 'unsatisfiable' || c.req.method === 'HEAD') await archive.close()
  if (isKnown) return c.body(null, 304, { ETag: etag })
  if (range === 'unsatisfiable')
    throw new AppError('range_not_satisfiable', undefined, { contentRange: `bytes */${size}` })
  const { first, last } = range ?? { first: 0, last: size - 1 }
  const headers = {
    'Content-Type': OCTETS.mediaType,
    'Content-Length': String(last - first + 1),
    'Accept-Ranges': 'bytes',
    ETag: etag,
    ...(range !== null && { 'Content-Range': `bytes ${first}-${last}/${size}` }),
  }
  const status = range === null ? 200 : 206
  if (c.req.method === 'HEAD') return c.body(null, status, headers)
  return c.body(archive.stream({ first, last }), status, headers)
}
