import { clone, type JsonValue } from '@bufbuild/protobuf'
import { parseField, parseSecret } from './parse.ts'
import type { RawSection } from './sections.ts'
import { type Leaf, listLeaves, readLeaf, writeLeaves } from './values.ts'

export type SectionInput = {
  /** Nested, by protobuf JSON names; contains only the fields to change. */
  readonly values: Readonly<Record<string, unknown>>
  /** By path; null clears. */
  readonly secrets: Readonly<Record<string, string | null>>
}

export type InputIssue = { readonly path: string; readonly message: string }

/** One field to change. For a secret, `before` and `after` must stay in memory. */
type LeafChange = {
  readonly leaf: Leaf
  readonly before: JsonValue
  readonly after: JsonValue
  readonly value: unknown
}

/** The effect of a change on a section. */
export type SectionPlan = {
  readonly changes: readonly LeafChange[]
  /** The changed parts, complete with everything else that the radio sent in them. */
  readonly section: RawSection
}

export type Planned =
  | { readonly ok: true; readonly plan: SectionPlan }
  | { readonly ok: false; readonly issues: InputIssue[] }

/** Merges a change into a section, which itself is not modified. Issues never repeat a value. */
export function planChange(section: RawSection, input: SectionInput): Planned {
  const leaves = new Map(listLeaves(section).map((leaf) => [leaf.path, leaf]))
  const issues: InputIssue[] = []
  const changes: LeafChange[] = []
  const given = [...flatten(section, input.values, issues)]
  for (const [path, value] of given) takeValue({ path, value, leaf: leaves.get(path) }, changes, issues)
  for (const [path, value] of Object.entries(input.secrets))
    takeSecret({ path, value, leaf: leaves.get(path) }, changes, issues)
  const merged = merge(section, changes)
  if (section.kind === 'channels' && issues.length === 0) checkPrimary(section, merged, issues)
  if (issues.length > 0) return { ok: false, issues }
  return { ok: true, plan: { changes, section: merged } }
}

/** Without a primary channel a radio receives nothing. If there are two, it keeps one at random. */
function checkPrimary(section: RawSection, merged: RawSection, issues: InputIssue[]): void {
  const changed = new Map(merged.parts.map((part) => [part.prefix, part]))
  const parts = section.parts.map((part) => changed.get(part.prefix) ?? part)
  const roles = listLeaves({ ...section, parts }).filter(({ field }) => field.path === 'channels.*.role')
  const primary = roles.filter((leaf) => readLeaf(leaf) === 'PRIMARY')
  if (changed.size > 0 && primary.length !== 1) {
    issues.push({ path: 'values.channels', message: 'exactly one must have the role PRIMARY' })
  }
}

type Given<T> = { readonly path: string; readonly value: T; readonly leaf: Leaf | undefined }

function takeValue({ path, value, leaf }: Given<unknown>, changes: LeafChange[], issues: InputIssue[]): void {
  const at = `values.${path}`
  if (leaf === undefined) return void issues.push({ path: at, message: 'unknown field' })
  if (leaf.field.secret) return void issues.push({ path: at, message: 'a secret: it belongs in secrets' })
  const before = readLeaf(leaf)
  const parsed = parseField(leaf.field, value, before)
  if (!parsed.ok) return void issues.push({ path: at, message: parsed.message })
  const after = valueAfter(leaf, parsed.value)
  if (JSON.stringify(before) === JSON.stringify(after)) return
  if (leaf.field.readOnly) return void issues.push({ path: at, message: 'read-only' })
  changes.push({ leaf, before, after, value: parsed.value })
}

/** Sending a secret always counts as a change, so that nobody can find out whether it was the same as before. */
function takeSecret({ path, value, leaf }: Given<string | null>, changes: LeafChange[], issues: InputIssue[]): void {
  const at = `secrets.${path}`
  if (leaf?.field.secret !== true) return void issues.push({ path: at, message: 'not a secret of this section' })
  const parsed = parseSecret(leaf.field, value)
  if (!parsed.ok) return void issues.push({ path: at, message: parsed.message })
  changes.push({ leaf, before: readLeaf(leaf), after: valueAfter(leaf, parsed.value), value: parsed.value })
}

/** The value as it will be read after writing it. */
function valueAfter(leaf: Leaf, value: unknown): JsonValue {
  const { schema } = leaf.part
  const message = clone(schema, leaf.part.message)
  writeLeaves(schema, message, [{ field: leaf.field, value }])
  return readLeaf({ ...leaf, part: { ...leaf.part, message } })
}

/** A plan that also sets a derived field, which users cannot set. */
export function addDerived(section: RawSection, plan: SectionPlan, path: string, value: unknown): SectionPlan {
  const leaf = listLeaves(section).find((each) => each.path === path)
  if (leaf === undefined) throw new Error(`no field ${path}`)
  const changes = [...plan.changes, { leaf, before: readLeaf(leaf), after: valueAfter(leaf, value), value }]
  return { changes, section: merge(section, changes) }
}

function merge(section: RawSection, changes: readonly LeafChange[]): RawSection {
  const parts = section.parts.flatMap((part) => {
    const writes = changes
      .filter(({ leaf }) => leaf.part === part)
      .map(({ leaf, value }) => ({ field: leaf.field, value }))
    if (writes.length === 0) return []
    const message = clone(part.schema, part.message)
    writeLeaves(part.schema, message, writes)
    return [{ ...part, message }]
  })
  return { ...section, parts }
}

/** Paths and values in the request. */
function* flatten(
  section: RawSection,
  values: SectionInput['values'],
  issues: InputIssue[],
): Iterable<[string, unknown]> {
  if (section.kind !== 'channels') return yield* flattenObject(section, values, '', issues)
  for (const [name, items] of Object.entries(values)) {
    if (name !== 'channels' || !Array.isArray(items))
      issues.push({ path: `values.${name}`, message: 'a list of channels' })
    else yield* flattenChannels(section, items, issues)
  }
}

function* flattenChannels(
  section: RawSection,
  items: readonly unknown[],
  issues: InputIssue[],
): Iterable<[string, unknown]> {
  const seen = new Set<string>()
  for (const item of items) {
    const index: unknown = isObject(item) ? item['index'] : null
    const prefix = `channels.${typeof index === 'number' ? index : '?'}.`
    const isChannel = section.parts.some((part) => part.prefix === prefix)
    if (!isObject(item) || !isChannel || seen.has(prefix)) {
      issues.push({ path: 'values.channels', message: 'each with the index of another channel of the radio' })
      return
    }
    seen.add(prefix)
    yield* flattenObject(section, item, prefix, issues)
  }
}

function* flattenObject(
  section: RawSection,
  object: Readonly<Record<string, unknown>>,
  prefix: string,
  issues: InputIssue[],
): Iterable<[string, unknown]> {
  const leaves = listLeaves(section)
  for (const [name, value] of Object.entries(object)) {
    const path = `${prefix}${name}`
    const hasChildren = leaves.some((leaf) => leaf.path.startsWith(`${path}.`))
    // A name with a dot would be a second path to a field.
    if (name.includes('.')) issues.push({ path: `values.${path}`, message: 'unknown field' })
    else if (hasChildren && isObject(value)) yield* flattenObject(section, value, `${path}.`, issues)
    else yield [path, value]
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Paths of the changed fields that the section, read again, does not have. */
export function findDiffering({ changes }: SectionPlan, readAgain: RawSection): string[] {
  return changes.flatMap(({ leaf: { path }, after }) => (isAt(readAgain, path, after) ? [] : [path]))
}

/** Whether the section, read again, is as it was before the change. */
export function isAsBefore({ changes }: SectionPlan, readAgain: RawSection): boolean {
  return changes.every(({ leaf: { path }, before }) => isAt(readAgain, path, before))
}

function isAt(section: RawSection, path: string, value: JsonValue): boolean {
  const leaf = listLeaves(section).find((each) => each.path === path)
  return leaf !== undefined && JSON.stringify(readLeaf(leaf)) === JSON.stringify(value)
}
