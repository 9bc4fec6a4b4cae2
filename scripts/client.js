// Writes the typed client of the HTTP API, generated from the OpenAPI document: index.js and index.d.ts.
//   node scripts/client.js            into dist/client/
//   node scripts/client.js DIR        into another folder
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp } from '../src/app/app.ts'
import { openApiDocument } from '../src/app/http/openapi/document.ts'

const { routes } = createApp(() => {
  throw new Error('no request is answered here')
})
const { paths, components } = await openApiDocument(routes)
const dist = process.argv[2] ?? fileURLToPath(new URL('../dist/client/', import.meta.url))
mkdirSync(dist, { recursive: true })
writeFileSync(join(dist, 'index.d.ts'), declarations())
writeFileSync(join(dist, 'index.js'), program())
writeFileSync(join(dist, 'package.json'), '{ "type": "module", "types": "./index.d.ts", "main": "./index.js" }\n')

function declarations() {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema.description)}export type ${name} = ${typeOf(schema, '')}\n`,
  )
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) =>
        `${comment([operation.summary, operation.description].filter(Boolean).join('. '), '  ')}  '${method.toUpperCase()} ${path}': ${operationType(operation)}\n`,
    ),
  )
  return `// Made of the OpenAPI document of the service by \`npm run client\`.

${schemas.join('\n')}
/** The inputs and answers of each request. \`answer\` is null without a body, and a Response if it is not JSON. */
export interface Operations {
${operations.join('')}}

type Given<O> = O extends { request: infer R } ? R : never

export type ClientOptions = {
  /** Where the service is, such as \`https://mesh.example.org\`. */
  baseUrl: string
  /** An API token. Without one, a browser sends its session. */
  token?: string
  fetch?: typeof globalThis.fetch
}

/** A request was refused. */
export class ApiError extends Error {
  /** HTTP status. */
  readonly status: number
  /** Null if the answer did not come from the service, but for example from a proxy. */
  readonly problem: Problem | null
}

/** Sends one request. Throws \`ApiError\` for a refusal. */
export type Client = <K extends keyof Operations>(
  operation: K,
  ...given: {} extends Given<Operations[K]> ? [Given<Operations[K]>?] : [Given<Operations[K]>]
) => Promise<Operations[K]['answer']>

export function createClient(options: ClientOptions): Client
`
}

function operationType({ parameters, requestBody, responses }) {
  const parts = [
    ['path', 'path'],
    ['query', 'query'],
    ['header', 'headers'],
  ].flatMap(([location, name]) => {
    const own = parameters.filter((parameter) => parameter.in === location)
    const fields = own.map(
      ({ name: field, required, description, schema }) =>
        `${comment(description, '        ')}        ${key(field)}${required ? '' : '?'}: ${parameterType(schema)}\n`,
    )
    const optional = own.some(({ required }) => required) ? '' : '?'
    return own.length === 0 ? [] : [`      ${name}${optional}: {\n${fields.join('')}      }\n`]
  })
  const body = requestBody?.content['application/json'].schema
  if (body !== undefined) parts.push(`      body${requestBody.required ? '' : '?'}: ${typeOf(body, '      ')}\n`)
  const good = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const answers = new Set(good.map(([, { content }]) => answerType(content)))
  return `{\n    request: {${parts.length === 0 ? '' : `\n${parts.join('')}    `}}\n    answer: ${[...answers].join(' | ') || 'Response'}\n  }`
}

function answerType(content) {
  if (content === undefined) return 'null'
  const json = content['application/json']
  return json === undefined ? 'Response' : typeOf(json.schema, '    ')
}

/** The type of a value in a URL: digits may also be given as a number. */
function parameterType(schema) {
  const type = typeOf(schema, '        ')
  return type === 'string' ? 'string | number' : type
}

function typeOf(schema, indent) {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1)
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)))
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return union(choices.map((choice) => typeOf(choice, indent)))
  if (schema.allOf !== undefined) return schema.allOf.map((part) => `(${typeOf(part, indent)})`).join(' & ')
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type }, indent)))
  switch (schema.type) {
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    case 'array':
      if (schema.prefixItems !== undefined)
        return `[${schema.prefixItems.map((item) => typeOf(item, indent)).join(', ')}]`
      return `Array<${typeOf(schema.items ?? {}, indent)}>`
    case 'object':
      return objectType(schema, indent)
    default:
      return 'unknown'
  }
}

function objectType({ properties, required = [], additionalProperties }, indent) {
  if (properties === undefined) return `Record<string, ${typeOf(additionalProperties ?? {}, indent)}>`
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(
    ([name, schema]) =>
      `${comment(schema.description, inner)}${inner}${key(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner)}\n`,
  )
  return `{\n${fields.join('')}${indent}}`
}

function union(types) {
  return [...new Set(types)].join(' | ')
}

function key(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
}

function comment(text, indent = '') {
  return text === undefined || text === '' ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`
}

function program() {
  return `// Made by \`npm run client\`; the types stand in index.d.ts.

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? \`HTTP status \${status}\`)
    this.name = 'ApiError'
    this.status = status
    this.problem = problem
  }
}

export function createClient({ baseUrl, token, fetch = globalThis.fetch }) {
  return async (operation, { path = {}, query = {}, headers = {}, body } = {}) => {
    const [method, pattern] = operation.split(' ')
    const filled = pattern.replace(/\\{(\\w+)\\}/g, (_, name) => encodeURIComponent(path[name]))
    const asked = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])))
    const response = await fetch(\`\${baseUrl.replace(/\\/+$/, '')}\${filled}\${asked.size === 0 ? '' : \`?\${asked}\`}\`, {
      method,
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: \`Bearer \${token}\` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const type = response.headers.get('content-type') ?? ''
    if (!response.ok) {
      throw new ApiError(response.status, type.startsWith('application/problem+json') ? await response.json() : null)
    }
    if (response.status === 204) return null
    return type.startsWith('application/json') ? response.json() : response
  }
}
`
}
