import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'
import manifest from '../../package.json' with { type: 'json' }

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

const permissions = z.record(z.string(), z.enum(['read', 'write', 'none']))
const env = z.record(z.string(), z.string())
/** As GitHub documents them: the parts that the workflows here use, and nothing else. */
const step = z.union([
  z.strictObject({
    uses: z.string().regex(/^[\w-]+\/[\w-]+@v\d+$/),
    with: z.record(z.string(), z.unknown()).optional(),
  }),
  z.strictObject({ run: z.string(), env: env.optional() }),
])
const workflow = z.strictObject({
  name: z.string(),
  on: z.strictObject({
    push: z.strictObject({ branches: z.array(z.string()).optional(), tags: z.array(z.string()).optional() }),
    pull_request: z.null().optional(),
  }),
  permissions,
  concurrency: z.strictObject({ group: z.string(), 'cancel-in-progress': z.boolean() }).optional(),
  jobs: z.record(
    z.string(),
    z.strictObject({
      needs: z.string().optional(),
      if: z.string().optional(),
      'runs-on': z.string(),
      'timeout-minutes': z.int().max(90),
      permissions: permissions.optional(),
      env: env.optional(),
      steps: z.array(step).min(1),
    }),
  ),
})

const files = readdirSync(new URL('.github/workflows', root))
const workflows = new Map(files.map((name) => [name, workflow.parse(parse(read(`.github/workflows/${name}`)))]))
const jobsOf = (name: string) => workflows.get(name)?.jobs ?? {}
const commandsOf = (name: string, job: string) =>
  jobsOf(name)[job]?.steps.flatMap((each) => ('run' in each ? [each.run] : []))

test('one workflow checks each push and each pull request, the quick checks first', () => {
  const [only, ...more] = [...workflows].filter(([, { on }]) => 'pull_request' in on)
  expect([only?.[0], more]).toStrictEqual(['check.yml', []])
  expect(only?.[1].on.push.branches).toStrictEqual(['**'])
  expect(commandsOf('check.yml', 'quick')).toStrictEqual([
    'npm ci --no-fund --no-audit',
    'npm run check',
    'npm run test:unit',
  ])
  expect(jobsOf('check.yml')['whole']?.needs).toBe('quick')
  expect(commandsOf('check.yml', 'whole')).toStrictEqual([expect.stringMatching(/ \.ci\/run$/)])
})

test('a release takes every step of its script, after all tests, and the dry run takes them too', () => {
  const script = read('scripts/release.sh')
  const steps = Array.from(script.matchAll(/^ {2}(\w+)\) (\w+)/gm), ([, name = '', run = '']) => ({ name, run }))
  expect(steps.map(({ name }) => name)).toStrictEqual(['version', 'files', 'image', 'publish'])
  const taken = ['whole', 'release'].flatMap((job) => commandsOf('release.yml', job) ?? [])
  expect(taken.flatMap((line) => /^sh scripts\/release\.sh (\w+)/.exec(line)?.[1] ?? [])).toStrictEqual(
    steps.map(({ name }) => name),
  )
  const dryRun = /dry-run\)([^]*?);;/.exec(script)?.[1] ?? ''
  expect(steps.filter(({ run }) => !new RegExp(`^ +${run}$`, 'm').test(dryRun))).toStrictEqual([])
  expect(jobsOf('release.yml')['release']?.needs).toBe('whole')
  expect(commandsOf('release.yml', 'whole')).toContainEqual(expect.stringMatching(/ \.ci\/run$/))
})

test('only the job that publishes may write anything', () => {
  const writers = [...workflows].flatMap(([name, { permissions, jobs }]) => [
    ...(Object.values(permissions).includes('write') ? [name] : []),
    ...Object.entries(jobs).flatMap(([job, each]) =>
      Object.values(each.permissions ?? {}).includes('write') ? [`${name}: ${job}`] : [],
    ),
  ])
  expect(writers).toStrictEqual(['release.yml: release'])
})

test('what the steps run exists, and a shell can read it', () => {
  const lines = [...workflows.keys()].flatMap((name) =>
    Object.keys(jobsOf(name)).flatMap((job) => commandsOf(name, job) ?? []),
  )
  expect(lines.length).toBeGreaterThan(8)
  for (const line of lines) {
    execFileSync('sh', ['-n', '-c', line])
    for (const [, script = ''] of line.matchAll(/npm run ([\w:]+)/g)) expect(manifest.scripts).toHaveProperty([script])
    for (const [path] of line.matchAll(/(?:scripts|\.ci)\/[\w.-]+/g)) expect(existsSync(new URL(path, root))).toBe(true)
  }
})
