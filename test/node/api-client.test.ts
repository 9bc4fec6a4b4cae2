import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../support/app.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'mesh-client-'))
let app: TestApp
beforeAll(async () => {
  execFileSync(process.execPath, ['scripts/client.js', dir], { cwd: ROOT, stdio: 'pipe' })
  app = await createTestApp()
})
afterAll(() => {
  app.close()
  rmSync(dir, { recursive: true })
})

/** Compiles a program that uses the client; returns the compiler's output. */
function compile(program: string): string {
  const file = join(dir, 'program.ts')
  writeFileSync(file, program)
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024']
  const args = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, '--types', '', '--lib', 'es2024,dom', file]
  return spawnSync(process.execPath, args, { cwd: dir, encoding: 'utf8' }).stdout
}

const BEGIN = `import { ApiError, type Client, createClient, type Node, type Rule } from './index.js'
declare const ask: Client
`

test('its types describe the input and the answer of each route', () => {
  const said = compile(`${BEGIN}
const nodes: Node[] = await ask('GET /api/nodes', { query: { limit: 5, signed: 'true' } })
const { message } = await ask('POST /api/messages', { body: { text: 'hello', channel: 0 } })
const nothing: null = await ask('DELETE /api/nodes/{id}', { path: { id: nodes[0]?.nodeNum ?? message.fromNodeId } })
const archive: ReadableStream | null = (await ask('GET /api/system/backup/download/{name}', { path: { name: 'x' } })).body
const rules: Rule[] = (await ask('GET /api/automation')).automations.map(({ rule }) => rule)
const code: 'queue_full' | undefined = new ApiError().problem?.code === 'queue_full' ? 'queue_full' : undefined
createClient({ baseUrl: 'http://localhost:8080' }) satisfies Client
export { archive, code, nothing, rules }
`)
  expect(said).toBe('')
})

test.each([
  ['a route that does not exist', "await ask('GET /api/nothing')"],
  ['a path without its parameter', "await ask('GET /api/nodes/{id}')"],
  ['a body of another shape', "await ask('POST /api/messages', { body: { txt: 'hello' } })"],
  ['a field that no answer has', "(await ask('GET /api/nodes'))[0]?.name"],
])('its types refuse %s', (_, line) => {
  expect(compile(`${BEGIN}${line}\n`)).toMatch(/program\.ts\(\d+,\d+\): error TS/)
})

test('it sends what the service accepts, and throws on a refusal', async () => {
  const admin = await app.admin()
  const { token } = Object(
    await (await admin.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read', 'nodes:write'] })).json(),
  )
  const { createClient, ApiError } = await import(pathToFileURL(join(dir, 'index.js')).href)
  const fetch = async (url: string, init: RequestInit) => app.request(url.slice('http://mesh.test'.length), init)
  const ask = createClient({ baseUrl: 'http://mesh.test/', token, fetch })
  expect(await ask('GET /api/nodes', { query: { limit: 5, q: undefined } })).toStrictEqual([])
  const refused = await ask('PUT /api/nodes/{id}', { path: { id: '!a0db0001' }, body: { notes: 'a' } }).catch(
    (error: unknown) => error,
  )
  expect(refused).toBeInstanceOf(ApiError)
  expect(refused).toMatchObject({ status: 404, problem: { code: 'node_not_found' } })
  const page: Response = await ask('GET /api/docs')
  expect(await page.text()).toContain('<!doctype html>')
})

test('the example in the documentation compiles', () => {
  const page = readFileSync(join(ROOT, 'docs/api-client.md'), 'utf8')
  const example = /```js\n([^`]*(?:`[^`]+`[^`]*)*?)```/.exec(page)?.[1] ?? ''
  expect(example).toContain('createClient(')
  const program = example.replace('./dist/client/index.js', './index.js').replace('process.env.MESH_TOKEN', "''")
  expect(compile(program)).toBe('')
})
