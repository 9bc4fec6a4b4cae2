import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { RouterRoute } from 'hono/types'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Answer } from '../../src/app/http/describe.ts'
import { ERRORS } from '../../src/app/http/errors.ts'
import { listOperations, openApiDocument, type Operation } from '../../src/app/http/openapi/document.ts'

const problemSchema = z.strictObject({
  type: z.literal('about:blank'),
  title: z.string().min(1),
  status: z.int(),
  code: z.enum(Object.keys(ERRORS)),
  detail: z.string().min(1),
  requestId: z.uuid(),
  issues: z.array(z.strictObject({ path: z.string(), message: z.string().min(1) })).optional(),
  required: z.strictObject({ resource: z.string(), action: z.string() }).optional(),
  ways: z.array(z.string()).optional(),
  confirm: z.array(z.string()).optional(),
  bytes: z.int().optional(),
  limit: z.int().optional(),
})

const documentSchema = z.object({
  paths: z.record(
    z.string(),
    z.record(z.string(), z.object({ responses: z.record(z.string(), z.object({ description: z.string() })) })),
  ),
})

/** Possible answers to any request before a route is found, or without one. */
const WITHOUT_ROUTE = new Set([
  'not_found',
  'method_not_allowed',
  'cross_origin',
  'payload_too_large',
  'unsupported_media_type',
])

type Documented = {
  readonly operations: readonly (Operation & { readonly pattern: RegExp })[]
  readonly paths: Promise<Paths>
}
type Paths = z.infer<typeof documentSchema>['paths']

/** Apps with the same routes document the same. */
const documentedBy = new Map<string, Documented>()

function documentedOf(routes: readonly RouterRoute[]): Documented {
  const key = routes.map(({ method, path }) => `${method} ${path}`).join('\n')
  const known = documentedBy.get(key) ?? {
    operations: listOperations(routes).map((operation) => ({ ...operation, pattern: patternOf(operation.path) })),
    paths: openApiDocument(routes).then((document) => documentSchema.parse(document).paths),
  }
  documentedBy.set(key, known)
  return known
}

/**
 * Checks each answer against the documentation of its route: status, error code, media type, and every key of a JSON
 * body. The answer is left unread.
 */
export function documentCheck(routes: readonly RouterRoute[]) {
  const documented = documentedOf(routes)
  return async (method: string, path: string, answer: Response): Promise<void> => {
    const { operations } = documented
    const paths = await documented.paths
    const name = `${method} ${path}: ${answer.status}`
    expect(answer.headers.get('x-request-id'), `${name} has a request id`).toMatch(/^[\w-]{36}$/)
    expect(answer.headers.get('x-content-type-options'), `${name} has security headers`).toBe('nosniff')
    if (answer.status === 401) expect(answer.headers.get('www-authenticate'), name).toBe('Bearer realm="mesh"')
    if (answer.status === 429) expect(answer.headers.get('retry-after'), name).toMatch(/^[1-9]\d*$/)
    const operation = findOperation(operations, method, path)
    if (method === 'HEAD') return
    if (isProblem(answer)) {
      const codes = operation ? documentedCodes(operation, paths, answer.status) : WITHOUT_ROUTE
      return checkProblem(name, answer, codes)
    }
    if (operation === undefined) throw new Error(`${name} by no route, and no problem response`)
    const answers = operation.descriptions.find((description) => description.answers)?.answers ?? {}
    const isRevalidated = answer.status === 304 && operation.descriptions.some(({ revalidates }) => revalidates)
    const body = isRevalidated ? null : answers[answer.status]
    const inDocument = paths[operation.path.replace(/:(\w+)/g, '{$1}')]?.[operation.method.toLowerCase()]
    expect(Object.keys(inDocument?.responses ?? {}), name).toContain(String(answer.status))
    if (body === undefined) throw new Error(`${name} is not documented by ${operation.path}`)
    await checkBody(name, answer, body)
  }
}

function isProblem(answer: Response): boolean {
  return answer.headers.get('content-type') === 'application/problem+json'
}

function findOperation(operations: Documented['operations'], method: string, path: string): Operation | undefined {
  const pathname = decoded(new URL(path, 'http://localhost').pathname)
  const wanted = method === 'HEAD' ? 'GET' : method
  return operations
    .filter((operation) => operation.method === wanted && operation.pattern.test(pathname))
    .toSorted((a, b) => a.path.split(':').length - b.path.split(':').length)[0]
}

// As Hono does before it looks for a route: what cannot be decoded stays.
function decoded(pathname: string): string {
  try {
    return decodeURI(pathname)
  } catch {
    return pathname
  }
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/:\w+(\\?\{[^}]*\})?/g, '[^/]+')}$`)
}

function documentedCodes(operation: Operation, paths: Paths, status: number): ReadonlySet<string> {
  const path = operation.path.replace(/:(\w+)/g, '{$1}')
  const { responses } = paths[path]?.[operation.method.toLowerCase()] ?? {}
  const byStatus = responses?.[status] ?? (status >= 500 ? responses?.['default'] : undefined)
  return new Set(byStatus?.description.split(', '))
}

async function checkProblem(name: string, answer: Response, documented: ReadonlySet<string>): Promise<void> {
  const problem = problemSchema.parse(await answer.clone().json())
  expect(problem.status, name).toBe(answer.status)
  expect(problem.requestId, name).toBe(answer.headers.get('x-request-id'))
  if (!documented.has(problem.code)) throw new Error(`${name} ${problem.code} is not documented`)
}

async function checkBody(name: string, answer: Response, documented: Answer): Promise<void> {
  const type = answer.headers.get('content-type')?.split(';')[0] ?? null
  if (documented === null) expect(await answer.clone().text(), `${name} has no body`).toBe('')
  else if (documented instanceof z.ZodType) {
    expect(type, name).toBe('application/json')
    const body: unknown = JSON.parse(await unpacked(answer))
    // Parsing drops keys that the schema does not name.
    expect(body, `${name} is as documented`).toStrictEqual(documented.parse(body))
  } else expect([documented.mediaType].flat(), name).toContain(type)
}

/** No server stands between the app and a test, so nothing else decompresses an answer. */
async function unpacked(answer: Response): Promise<string> {
  const bytes = new Uint8Array(await answer.clone().arrayBuffer())
  const encoding = answer.headers.get('content-encoding')
  return (
    encoding === 'zstd' ? zstdDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : Buffer.from(bytes)
  ).toString()
}
