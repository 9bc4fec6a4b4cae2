import * as z from 'zod'
import { sha256Hex } from '../base/crypto.ts'
import type { Config } from '../config/config.ts'
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

type Secrets = Pick<Config, 'SESSION_SECRET'>
/** A row that counts its changes. */
type Counted = { readonly id: number; readonly revision: number }

/** Field of answers that stands for the version of a row. */
export const revisionField = z
  .int()
  .describe('Differs after every change of the rule, and says nothing else; in double quotes it is the ETag')

/**
 * What clients get instead of a row's number of changes, which would reveal how often others changed it: 52 bits of a
 * hash that nobody can guess. `table`: the row's table.
 */
export function shownRevision({ SESSION_SECRET: [secret = ''] }: Secrets, table: string, row: Counted): number {
  return hashedRevision(secret, table, row)
}

function hashedRevision(secret: string, table: string, { id, revision }: Counted): number {
  return Number.parseInt(sha256Hex(`revision\n${secret}\n${table} ${id} ${revision}`).slice(0, 13), 16)
}

/** The entity tag of a shown revision. */
export function revisionTag(revision: number): string {
  return `"${revision}"`
}

/** Whether a row has the version that the client wants; its tag may be from before SESSION_SECRET got a new first value. */
export function hasWantedRevision(
  { SESSION_SECRET }: Secrets,
  wanted: Precondition,
  table: string,
  row: Counted,
): boolean {
  return wanted === null || SESSION_SECRET.some((secret) => wanted(revisionTag(hashedRevision(secret, table, row))))
}
