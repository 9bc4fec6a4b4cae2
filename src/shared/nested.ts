// Settings by dotted path, e.g. `ipv4Config.gateway`, and as objects in objects.

/** Whether it has members, and is no list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at a path; undefined: there is none. What an object inherits is not at any path. */
export function valueAt(root: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((at, step) => (isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined), root)
}

export type Nested<Value> = { [name: string]: Value | Nested<Value> }

/**
 * Values by path as objects in objects. Of a value and others below it the later stays. Paths may come from outside:
 * `__proto__` in one is a name like any other.
 */
export function nest<Value>(values: Iterable<readonly [path: string, value: Value]>): Nested<Value> {
  const members = new Map<string, { readonly value: Value } | [path: string, value: Value][]>()
  for (const [path, value] of values) {
    const dot = path.indexOf('.')
    if (dot === -1) {
      members.set(path, { value })
      continue
    }
    const [name, rest] = [path.slice(0, dot), path.slice(dot + 1)]
    const below = members.get(name)
    if (Array.isArray(below)) below.push([rest, value])
    else members.set(name, [[rest, value]])
  }
  // Defines members, where an assignment to `__proto__` would change what the object inherits.
  return Object.fromEntries(
    Array.from(members, ([name, member]) => [name, Array.isArray(member) ? nest(member) : member.value]),
  )
}
