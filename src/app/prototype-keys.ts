import type { Issue } from './errors.ts'

const REFUSED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
// The letters of a JSON string have one escape. Most bodies hold none of this, and are not read twice.
const SUSPECT = /__proto__|constructor|prototype|\\u/
const MAX_ISSUES = 50
const MAX_PATH = 200

/** Whether the text of a JSON body has to be looked at by `findPrototypeKeys`. */
export function maySpellPrototype(text: string): boolean {
  return SUSPECT.test(text)
}

/**
 * Where a value out of JSON has keys by which the prototype of an object is reached, in any depth: schemas would drop
 * them without a word. At most 50.
 */
export function findPrototypeKeys(body: unknown): Issue[] {
  const issues: Issue[] = []
  // Not by recursion: JSON may be as deep as a body is long.
  const open: { readonly path: string; readonly value: unknown }[] = [{ path: '', value: body }]
  for (let next = open.pop(); next !== undefined && issues.length < MAX_ISSUES; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [key, value] of Object.entries(next.value)) {
      const path = (next.path === '' ? key : `${next.path}.${key}`).slice(0, MAX_PATH)
      if (REFUSED.has(key)) issues.push({ path: path.toWellFormed(), message: 'a key of this name is refused' })
      if (typeof value === 'object' && value !== null) open.push({ path, value })
    }
  }
  return issues.slice(0, MAX_ISSUES)
}
