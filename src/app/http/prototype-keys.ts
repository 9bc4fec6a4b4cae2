import type { Issue } from './errors.ts'

const REFUSED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
// Finds every spelling of these keys, because JSON escapes letters only by \u. Most bodies contain none and need not be
// parsed twice.
const SUSPECT = /__proto__|constructor|prototype|\\u/
const MAX_ISSUES = 50
const MAX_PATH = 200

/** Whether the text of a JSON body must be searched by `findPrototypeKeys`. */
export function maySpellPrototype(text: string): boolean {
  return SUSPECT.test(text)
}

/** The path to a value, innermost key first; `length` is that of the whole path, if it does not exceed the limit. */
type Way = { readonly outer: Way | null; readonly key: string | number; readonly length: number }

/**
 * The places of keys in a JSON value that reach the prototype of an object, at any depth: schemas would drop them
 * silently. At most 50.
 */
export function findPrototypeKeys(body: unknown): Issue[] {
  const issues: Issue[] = []
  // Without recursion: JSON may be nested as deep as a body is long. A path is only written out for an error message.
  const open: { readonly way: Way | null; readonly value: object }[] = []
  const enter = (way: Way | null, key: string | number, value: unknown) => {
    if (typeof value === 'object' && value !== null) open.push({ way: further(way, key), value })
  }
  if (typeof body === 'object' && body !== null) open.push({ way: null, value: body })
  for (let next = open.pop(); next !== undefined && issues.length < MAX_ISSUES; next = open.pop()) {
    const { way, value } = next
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) enter(way, at, value[at])
      continue
    }
    for (const [key, item] of Object.entries(value)) {
      if (REFUSED.has(key))
        issues.push({ path: pathOf(further(way, key)), message: 'a key of this name is not allowed' })
      enter(way, key, item)
    }
  }
  return issues.slice(0, MAX_ISSUES)
}

function further(outer: Way | null, key: string | number): Way {
  const length = (outer?.length ?? 0) + 1 + String(key).length
  return outer !== null && outer.length > MAX_PATH ? outer : { outer, key, length }
}

function pathOf(way: Way): string {
  const keys: (string | number)[] = []
  for (let at: Way | null = way; at !== null; at = at.outer) keys.push(at.key)
  return keys.toReversed().join('.').slice(0, MAX_PATH).toWellFormed()
}
