import type { MiddlewareHandler } from 'hono'
import type * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import type { PublicResource } from '../../shared/access/public-access.ts'
import type { Action, Resource } from '../../shared/access/resources.ts'
import type { SpecialScope } from '../../shared/access/token-scopes.ts'

/** Who may use a route. `scope` also admits a bearer token that has it, besides administrators. */
export type Rule =
  | { readonly kind: 'anyone' }
  | {
      readonly kind: 'signed-in'
      readonly tokens: boolean
      readonly temporaryPassword: boolean
      readonly enrolling?: true
    }
  | { readonly kind: 'permission'; readonly resource: Resource; readonly action: Action }
  /** A bearer token that has the scope. */
  | { readonly kind: 'token'; readonly scope: SpecialScope }
  | { readonly kind: 'admin'; readonly scope: SpecialScope | null }

export type RequestPart = 'json' | 'optional-json' | 'param' | 'query' | 'header'

/** An answer: a schema of its JSON body, `null` for none, or one or more media types for other bodies. */
export type Answer = z.ZodType | null | { readonly mediaType: string | readonly string[] }

/** A route's description by a handler in its chain; the API document is built from these alone. */
export type Description = {
  readonly rule?: Rule
  readonly request?: { readonly part: RequestPart; readonly schema: z.ZodType }
  readonly summary?: string
  readonly answers?: Readonly<Record<number, Answer>>
  /** Headers of answers to this route only, and their meaning. */
  readonly headers?: Readonly<Record<string, string>>
  readonly errors?: readonly ErrorCode[]
  /** Also answers anonymous callers while public access shows this resource, or anything. */
  readonly shared?: PublicResource | 'any'
  /** Its answers have an entity tag: 304 for a client that has that version. */
  readonly revalidates?: true
  /** GET by this handler changes something, so HEAD is refused. */
  readonly getOnly?: true
}

const descriptions = new WeakMap<object, Description>()

/** Attaches a description to a handler and returns the handler. */
export function describe<H extends object>(handler: H, description: Description): H {
  descriptions.set(handler, description)
  return handler
}

export function descriptionOf(handler: object): Description | undefined {
  return descriptions.get(handler)
}

const onlyDescriptions = new WeakSet<object>()

/** A handler that does nothing but describe its route. */
export function describing(description: Description): MiddlewareHandler {
  const handler: MiddlewareHandler = (_c, next) => next()
  onlyDescriptions.add(handler)
  return describe(handler, description)
}

/** A route without a rule is public. */
export const anyone = describing({ rule: { kind: 'anyone' } })

/** Whether `describing` made the handler. */
export function isOnlyDescription(handler: object): boolean {
  return onlyDescriptions.has(handler)
}

/** Documents a route: its purpose, its answers, and errors besides those of its rule and its input. */
export function answers(
  summary: string,
  byStatus: Readonly<Record<number, Answer>>,
  errors: readonly ErrorCode[] = [],
): MiddlewareHandler {
  return describing({ summary, answers: byStatus, errors })
}
