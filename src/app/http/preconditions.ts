import * as z from 'zod'
import { describing } from './describe.ts'
import { AppError } from './errors.ts'

/** Whether the client wants to change the version with this entity tag; null: any version. */
export type Precondition = ((etag: string) => boolean) | null

/** Documents that a route honours `If-Match`. */
export const takesIfMatch = describing({
  request: {
    part: 'header',
    schema: z.object({
      'If-Match': z.string().optional().describe('ETag of the version to change; without it the current version'),
    }),
  },
})

/**
 * The requirement of `If-Match` (RFC 9110, 13.1.1). A weak tag never matches. Throws `invalid_request` for an invalid
 * list of entity tags.
 */
export function readIfMatch(header: string | undefined): Precondition {
  const text = header?.trim()
  if (text === undefined || text === '*') return null
  // A tag contains no quotes, though it may contain a comma.
  const tags = text.split(/,(?=\s*(?:W\/)?")/).map((tag) => tag.trim())
  if (!tags.every((tag) => /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag))) {
    const message = '* or entity tags in double quotes'
    throw new AppError('invalid_request', `If-Match: ${message}`, { issues: [{ path: 'If-Match', message }] })
  }
  return (etag) => tags.includes(etag)
}
