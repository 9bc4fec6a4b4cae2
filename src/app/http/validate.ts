import { zValidator } from '@hono/zod-validator'
import type { Context, Env, MiddlewareHandler } from 'hono'
import * as z from 'zod'
import { describe } from './describe.ts'
import { oneLine, AppError, type Issue } from './errors.ts'
import { timeField } from './fields.ts'
import { findPrototypeKeys, maySpellPrototype } from './prototype-keys.ts'
import { said } from '../words/words.ts'

const KIB = 1024
/** Bytes of a collector's delivery. */
const MAX_DELIVERY = 1024 * KIB
/** Bytes of any other body. One of a million brackets or keys would hold all other requests for a tenth of a second. */
const MAX_BODY = 256 * KIB
/** The same for a sign-in: anybody may send it as often as they like. */
const MAX_BEFORE_SIGN_IN = 16 * KIB

function maxBytesOf(path: string): number {
  if (path === '/api/ingest') return MAX_DELIVERY
  return path.startsWith('/api/auth/') ? MAX_BEFORE_SIGN_IN : MAX_BODY
}

/** An id in a path: a strict decimal integer, 1 to 2^53 − 1. */
export const idSchema = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, 'a positive integer')
  .transform(Number)
  .refine(Number.isSafeInteger, 'a positive integer')
  .meta({ description: 'ID from a list', examples: ['1'] })
export const idParam = z.object({ id: idSchema })

/** A query parameter that is an integer between two bounds, documented as such. */
export const integerQuery = (min: number, max: number) =>
  z
    .string()
    .refine((text) => /^(?:0|-?[1-9]\d{0,15})$/.test(text), 'an integer')
    .meta({ type: 'integer', minimum: min, maximum: max })
    .transform(Number)
    .pipe(z.int().min(min).max(max))

/** A query parameter that is `true` or `false`. */
export const flagQuery = z.enum(['true', 'false']).transform((text) => text === 'true')

const LAST_MS = 8_640_000_000_000_000
/** RFC 3339 with a zone, or a day, which begins in UTC. */
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/
const WITHOUT_ZONE = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?$/
const TIME_FORM = 'milliseconds since 1970, or a time such as 2026-01-15T12:00:00Z'
const ZONE_MISSING = 'a time needs its zone: Z, or an offset such as +01:00'
const TIME_EXAMPLES = [1_763_800_000_000, '2026-01-15T12:00:00Z']

/** A time in a query: milliseconds since the Unix epoch, or ISO 8601. Becomes milliseconds. */
export const timeQuery = z
  .string()
  .max(40)
  .meta({ type: ['integer', 'string'], maxLength: undefined, examples: TIME_EXAMPLES })
  .transform((text, { addIssue }) => {
    // A plus in a query is a space unless it is encoded.
    const ms = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : readIsoTime(text.replace(/ (?=\d\d:\d\d$)/, '+'))
    if (ms !== null && ms >= 0 && ms <= LAST_MS) return ms
    addIssue({ code: 'custom', message: WITHOUT_ZONE.test(text) ? ZONE_MISSING : TIME_FORM })
    return z.NEVER
  })

/** A time in a body, in the same two forms: a number, or ISO 8601 as a string. Becomes milliseconds. */
export const timeInput = z
  .union([z.int(), z.string().max(40)], { error: TIME_FORM })
  .meta({
    id: 'TimeInput',
    description:
      'Milliseconds since the Unix epoch, or ISO 8601 with its zone; a day such as 2026-01-15 begins at midnight UTC',
    examples: TIME_EXAMPLES,
  })
  .transform((given, { addIssue }) => {
    if (typeof given === 'number') return given
    const ms = readIsoTime(given)
    if (ms !== null && ms >= 0) return ms
    addIssue({ code: 'custom', message: WITHOUT_ZONE.test(given) ? ZONE_MISSING : TIME_FORM })
    return z.NEVER
  })
  .pipe(timeField)

function readIsoTime(text: string): number | null {
  if (!ISO_TIME.test(text)) return null
  const ms = Date.parse(text)
  // Without this check, the 30th of February would become a day in March.
  const isDay = !Number.isNaN(ms) && new Date(Date.parse(text.slice(0, 10))).toISOString().startsWith(text.slice(0, 10))
  return isDay ? ms : null
}

type Target = 'json' | 'param' | 'query'

/** Validates a part of the request; throws `invalid_request` with the issues, one shape for all. */
export function validate<S extends z.ZodType, T extends Target>(target: T, schema: S) {
  const validator = zValidator(target, schema, (result) => {
    if (!result.success) throw invalidRequest(result.error)
  })
  const strict: typeof validator = async (c, next) => {
    // Hono would turn a missing body into an empty object.
    if (target === 'json' && (await readText(c)) === '') throw new AppError('invalid_json', 'Expected a JSON body')
    return validator(c, next)
  }
  return describe(strict, { request: { part: target, schema } })
}

/** A JSON body that may be missing: the input is `without` then. */
export function validateOptionalBody<S extends z.ZodType, W extends object>(
  schema: S,
  without: W,
): MiddlewareHandler<Env, string, { in: { json?: z.input<S> }; out: { json: z.output<S> | W } }> {
  const validator: MiddlewareHandler = async (c, next) => {
    const text = await readText(c)
    c.req.addValidatedData('json', text === '' ? without : readBody(schema, text))
    await next()
  }
  return describe(validator, { request: { part: 'optional-json', schema } })
}

function readBody(schema: z.ZodType, text: string): object {
  const result = schema.safeParse(parseJson(text))
  if (!result.success) throw invalidRequest(result.error)
  return { ...Object(result.data) }
}

/** The text of a body. Throws `invalid_json`, and `invalid_request` for a key that would reach a prototype. */
async function readText(c: Context): Promise<string> {
  const text = await decodeBody(c)
  if (!maySpellPrototype(text)) return text
  const issues = findPrototypeKeys(parseJson(text))
  if (issues.length > 0) throw refusal(issues)
  return text
}

// JSON is UTF-8 (RFC 8259, 8.1). Hono's own parser would store a replacement character for invalid bytes.
async function decodeBody(c: Context): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await c.req.arrayBuffer())
  } catch (error) {
    throw new AppError('invalid_json', 'The body is not UTF-8, or ended early', { cause: error })
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AppError('invalid_json', undefined, { cause: error })
  }
}

/** OpenID providers send a form here. */
const FORM_PATH = '/api/auth/oidc/backchannel-logout'

/** Refuses a body that is not JSON or is too large for its route, before anything reads it. */
export const limitBody: MiddlewareHandler = async (c, next) => {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  const length = c.req.header('content-length')
  const isUntyped = type === undefined && (Number(length ?? 0) > 0 || c.req.header('transfer-encoding') !== undefined)
  const wanted = c.req.path === FORM_PATH ? 'application/x-www-form-urlencoded' : 'application/json'
  if (isUntyped || (type !== undefined && type !== wanted && length !== '0')) {
    throw new AppError('unsupported_media_type', said('A request body must be {wanted}', { wanted }))
  }
  // A body of known length stays unread: the server can then discard it.
  const isMeasured = length !== undefined && c.req.header('transfer-encoding') === undefined
  const most = maxBytesOf(c.req.path)
  if (isMeasured) {
    if (Number(length) > most) throw tooLarge(most)
    return next()
  }
  const { body } = c.req.raw
  if (body !== null) c.req.raw = new Request(c.req.raw, { method: c.req.method, body: await readBounded(body, most) })
  return next()
}

function tooLarge(limit: number, closeConnection = false): AppError {
  return new AppError(
    'payload_too_large',
    said('At most {limit} bytes', { limit }),
    closeConnection ? { closeConnection } : {},
  )
}

async function readBounded(body: ReadableStream<Uint8Array>, most: number): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  const reader = body.getReader()
  for (let size = 0; ;) {
    const { done, value } = await reader.read().catch(refuseCutBody)
    if (done) return new Blob(chunks)
    size += value.length
    if (size > most) {
      // The runtime discards the rest.
      reader.releaseLock()
      // The unread rest would be taken for the next request on this connection.
      throw tooLarge(most, true)
    }
    chunks.push(new Uint8Array(value))
  }
}

function refuseCutBody(cause: unknown): never {
  throw new AppError('invalid_request', 'The body ended early', { cause, closeConnection: true })
}

/** The refusal of input that a schema rejects. */
export function invalidRequest(error: { readonly issues: readonly z.core.$ZodIssue[] }): AppError {
  const issues: Issue[] = error.issues.slice(0, 50).map(({ path, message }) => ({
    path: path.map(String).join('.').slice(0, 200).toWellFormed(),
    message: message.slice(0, 500).toWellFormed(),
  }))
  return refusal(issues)
}

function refusal(issues: readonly Issue[]): AppError {
  return new AppError('invalid_request', oneLine(issues), { issues })
}
