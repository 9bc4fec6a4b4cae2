import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { AUDIT_ACTIONS, EXPORT_FORMATS } from '../../src/shared/access/audit-actions.ts'
import { AUTH_PROVIDERS } from '../../src/shared/access/auth-providers.ts'
import { CHANNEL_ROLES } from '../../src/shared/mesh/channels.ts'
import { CHANGE_STATES } from '../../src/shared/mesh/change-states.ts'
import { DELIVERY_STATES, DIRECTIONS } from '../../src/shared/mesh/delivery-states.ts'
import { EVENT_KIND_NAMES } from '../../src/shared/mesh/event-kinds.ts'
import { LINK_KINDS, OWN_KINDS, SOURCE_KINDS } from '../../src/shared/mesh/link-kinds.ts'
import { TRUST_LEVELS, UNREADABLE, TRUSTS } from '../../src/shared/mesh/packets.ts'
import { RESOURCE_NAMES } from '../../src/shared/access/resources.ts'
import { MATCH_MODES, OUTCOMES } from '../../src/shared/automation/rules.ts'
import { SPECIAL_SCOPES } from '../../src/shared/access/token-scopes.ts'
import { ALL_TOKEN_NAMES } from '../../src/shared/automation/tokens.ts'

const ROOT = join(import.meta.dirname, '../..')

/** One more line for each table: where it goes, and which other files the compiler then wants changed. */
const ADDITIONS = [
  {
    name: 'moreResource',
    table: 'src/shared/access/resources.ts',
    begin: 'const RESOURCES = {\n',
    line: 'moreResource: { viewer: NONE, operator: NONE },\n',
    // Which right of MeshMonitor is this one.
    others: ['src/node/moving-in/parts/rights.ts', 'src/web/strings/people/permissions.ts'],
  },
  {
    name: 'moreTransport',
    table: 'src/shared/mesh/link-kinds.ts',
    begin: 'export const SOURCES = {\n',
    line: "moreTransport: { how: 'radio', setting: 'MORE_TRANSPORT=host' },\n",
    others: ['src/node/radio/configured.ts'],
  },
  {
    name: 'moreEvents',
    table: 'src/shared/mesh/event-kinds.ts',
    begin: 'export const EVENT_KINDS = {\n',
    line: "moreEvents: 'nodes',\n",
    others: [],
  },
  {
    name: 'moreScope',
    table: 'src/shared/access/token-scopes.ts',
    begin: 'export const SPECIAL_SCOPES = {\n',
    line: "moreScope: 'admin',\n",
    others: ['src/web/strings/people/permissions.ts'],
  },
  {
    name: 'moreKind',
    // This file lists the files of all kinds, and the other one those of their forms.
    table: 'src/app/automation/rules.ts',
    begin: 'const KINDS = { ',
    line: "moreKind: { ...announce, schema: announce.schema.extend({ kind: z.literal('moreKind') }) }, ",
    others: ['src/web/pages/automation/kinds/kinds.ts'],
  },
  {
    name: 'more_alerts',
    table: 'src/app/alerts/kinds/kinds.ts',
    begin: 'const KINDS = {\n',
    line: "more_alerts: { ...link, schema: link.schema.extend({ kind: z.literal('more_alerts') }) },\n",
    end: "import * as z from 'zod'\n",
    others: ['src/web/pages/alerts/kinds/kinds.ts'],
  },
  {
    name: 'more_destinations',
    table: 'src/shared/alerts/destination-kinds.ts',
    begin: 'export const DESTINATION_KINDS = {\n',
    line: 'more_destinations: { url: { secret: true } },\n',
    others: ['src/app/alerts/destinations/kinds.ts', 'src/web/strings/alerts.ts'],
  },
  {
    name: 'moreToken',
    table: 'src/shared/automation/tokens.ts',
    begin: 'export const TOKENS = {\n',
    line: "moreToken: { meaning: 'One more', widest: 'm' },\n",
    others: ['src/web/strings/automation.ts'],
  },
  {
    name: 'more_action',
    table: 'src/shared/access/audit-actions.ts',
    begin: 'export const AUDIT_ACTIONS = {\n',
    line: "more_action: 'settings',\n",
    others: ['src/web/strings/system/audit.ts'],
  },
  {
    name: 'moreDays',
    table: 'src/app/settings/settings.ts',
    begin: 'const SETTINGS = {\n',
    line: "moreDays: setting({ schema: days, fallback: 1, meaning: 'One more' }),\n",
    others: [],
  },
  {
    name: 'moreSwitch',
    table: 'src/app/settings/settings.ts',
    begin: 'const SETTINGS = {\n',
    line: "moreSwitch: setting({ schema: z.boolean(), fallback: false, meaning: 'One more' }),\n",
    // Its card.
    others: ['src/web/pages/settings/settings.tsx'],
  },
  {
    name: 'MORE_VARIABLE',
    table: 'src/app/config/config.ts',
    begin: 'export const VARIABLES = {\n',
    line: "MORE_VARIABLE: variable(z.string().default(''), 'a text', 'One more'),\n",
    others: [],
  },
  {
    name: 'more_errors',
    table: 'src/app/http/errors.ts',
    begin: 'export const ERRORS = {\n',
    line: "more_errors: [409, 'One more'],\n",
    others: [],
  },
] as const

const scratch = await mkdtemp(join(tmpdir(), 'one-place-'))
afterAll(() => rm(scratch, { recursive: true }))

/** A copy of the sources with all additions, so that the compiler does not touch the cache of the real ones. */
async function makeCopy(): Promise<void> {
  await mkdir(join(scratch, 'drizzle'))
  await Promise.all([
    cp(join(ROOT, 'src'), join(scratch, 'src'), { recursive: true }),
    cp(join(ROOT, 'drizzle/meta'), join(scratch, 'drizzle/meta'), { recursive: true }),
    cp(join(ROOT, 'package.json'), join(scratch, 'package.json')),
    cp(join(ROOT, 'tsconfig.base.json'), join(scratch, 'tsconfig.base.json')),
    cp(join(ROOT, 'scripts'), join(scratch, 'scripts'), { recursive: true }),
    symlink(join(ROOT, 'node_modules'), join(scratch, 'node_modules')),
  ])
  for (const project of await readdir(join(scratch, 'src'))) {
    const file = join(scratch, 'src', project, 'tsconfig.json')
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll('../../node_modules/.cache/', '../../cache/'))
  }
  for (const { table, begin, line, ...more } of ADDITIONS) {
    const file = join(scratch, table)
    const text = await readFile(file, 'utf8')
    expect(text.split(begin), table).toHaveLength(2)
    await writeFile(file, text.replace(begin, begin + line) + ('end' in more ? more.end : ''))
  }
}

function compile(): Promise<string[]> {
  const program = join(ROOT, 'node_modules/.bin/tsc')
  const projects = ['node', 'edge', 'web'].map((name) => join(scratch, 'src', name))
  return new Promise((resolve) => {
    execFile(program, ['-b', '--checkers', '1', '--pretty', 'false', ...projects], { cwd: scratch }, (_error, stdout) =>
      resolve(stdout.split('\n').filter((line) => line.includes('error TS'))),
    )
  })
}

test('an addition to a table needs two more files at most, and the compiler names them', async () => {
  await makeCopy()
  const complaints = await compile()
  const found = ADDITIONS.map(({ name }) => {
    const files = complaints.filter((line) => line.includes(name)).map((line) => line.replace(/\(.*/s, ''))
    // Translations are asked for, too; they are never more than texts.
    return { name, others: [...new Set(files)].filter((file) => !file.startsWith('src/web/languages/')) }
  })
  expect(found).toStrictEqual(ADDITIONS.map(({ name, others }) => ({ name, others })))
  for (const { others } of found) expect(others.length).toBeLessThanOrEqual(2)
  expect(complaints.filter((line) => !ADDITIONS.some(({ name }) => line.includes(name)))).toStrictEqual([])
}, 120_000)

test('no table is written down a second time, not even in SQL', async () => {
  const tables: Record<string, readonly string[]> = {
    AUDIT_ACTIONS: Object.keys(AUDIT_ACTIONS),
    AUTH_PROVIDERS,
    CHANGE_STATES,
    CHANNEL_ROLES,
    DIRECTIONS,
    EXPORT_FORMATS,
    TRUST_LEVELS,
    UNREADABLE,
    TRUSTS,
    DELIVERY_STATES,
    EVENT_KIND_NAMES,
    LINK_KINDS,
    OWN_KINDS,
    SOURCE_KINDS,
    RESOURCE_NAMES,
    MATCH_MODES,
    OUTCOMES,
    SPECIAL_SCOPES: Object.keys(SPECIAL_SCOPES),
    ALL_TOKEN_NAMES,
  }
  const all = await readdir(join(ROOT, 'src'), { recursive: true })
  const files = all.filter((name) => /\.tsx?$/.test(name) && !/^shared|\bgen\b/.test(name))
  const copies: string[] = []
  for (const file of files) {
    const text = await readFile(join(ROOT, 'src', file), 'utf8')
    for (const [list] of text.matchAll(/[[(]\s*'\w+'(\s*,\s*'\w+')+\s*,?\s*[\])]|'\w+'(\s*\|\s*'\w+')+/g)) {
      const names = Array.from(list.matchAll(/'(\w+)'/g), ([, name]) => name ?? '').toSorted()
      for (const [table, known] of Object.entries(tables)) {
        if (names.join() === known.toSorted().join()) copies.push(`${file}: ${table} as ${list}`)
      }
    }
  }
  expect(copies).toStrictEqual([])
})

test('rows are inserted by the names of their columns', async () => {
  const files = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) => /\.tsx?$/.test(name))
  const texts = await Promise.all(files.map(async (name) => [name, await readFile(join(ROOT, 'src', name), 'utf8')]))
  const byOrder = texts.filter(([, text = '']) => /\.insert\([^()]+\)\s*\.select\(/.test(text)).map(([name]) => name)
  expect(new Set(byOrder)).toStrictEqual(
    new Set([
      // Copies of the rows of a table, a union, and selects that need something before their first word.
      'app/mesh/ingest/rows/log.ts',
      'app/mesh/nodes/identity/move-history.ts',
      'app/mesh/nodes/identity/renumbering.ts',
      'app/mesh/telemetry/roll-up-runs.ts',
      'app/mesh/telemetry/roll-up.ts',
      'app/search/build.ts',
      'db/runs.ts',
      // These two take the values by name.
      'db/insert-select.ts',
      'db/json-rows.ts',
    ]),
  )
})

test('the length limit of a form field is in src/shared/limits.ts, where the service takes it from', async () => {
  const pages = (await readdir(join(ROOT, 'src/web'), { recursive: true })).filter((name) => name.endsWith('.tsx'))
  const texts = await Promise.all(pages.map((name) => readFile(join(ROOT, 'src/web', name), 'utf8')))
  const all = texts.flatMap((text) => Array.from(text.matchAll(/maxLength=(\S+)/g), ([, limit]) => limit))
  expect(all).toContain('{MAX_NOTES}')
  expect(all.filter((limit) => !/^\{(MAX_\w+|props\.maxLength)\}$/.test(limit ?? ''))).toStrictEqual([])
})
