// Leaves out methods of libraries that no part of the worker names. Nobody calls them: the libraries find methods by
// their names alone, never by names that they put together.
import { parseSync } from 'vite'

/** Names by which the language or the platform calls a method. */
const CALLED_BY_NAME = new Set(
  `constructor then toJSON toString valueOf next return throw start pull cancel transform flush write close abort
  get set has deleteProperty ownKeys apply construct getOwnPropertyDescriptor defineProperty getPrototypeOf`.split(
    /\s+/,
  ),
)

/** The names of methods in modules, not minified, that only unused methods name, or nothing does. */
export function namesOfUnused(modules) {
  const found = modules.map(findMethods)
  const names = new Set(found.flatMap(({ methods }) => methods.map(nameOf)))
  const around = found.flatMap(({ methods, uses }) =>
    uses
      .filter(({ name }) => names.has(name))
      .map(({ name, at }) => ({ name, in: methods.filter(({ start, end }) => start <= at && at < end).map(nameOf) })),
  )
  const used = new Set(CALLED_BY_NAME)
  for (let before = -1; before < used.size;) {
    before = used.size
    for (const use of around) if (use.in.every((name) => used.has(name))) used.add(use.name)
  }
  return new Set([...names].filter((name) => !used.has(name)))
}

/** The methods of a module, and where names are used. */
function findMethods(code) {
  const methods = []
  const keys = new Set()
  const uses = []
  each(parseSync('module.js', code).program, (node) => {
    if (isMethod(node)) {
      methods.push(node)
      keys.add(node.key)
    }
    if (node.type === 'MemberExpression' && !node.computed) uses.push({ name: node.property.name, at: node.start })
    if (node.type === 'Literal' && typeof node.value === 'string' && !keys.has(node))
      uses.push({ name: node.value, at: node.start })
    if (node.type === 'TemplateElement') uses.push({ name: node.value.raw, at: node.start })
    if (node.type === 'ObjectPattern') {
      for (const { key, start } of node.properties)
        if (key?.type === 'Identifier') uses.push({ name: key.name, at: start })
    }
  })
  return { methods, uses }
}

/** Cuts these methods out of libraries. */
export function withoutMethods(names) {
  return {
    name: 'without-methods',
    transform(code, id) {
      if (!id.includes('/node_modules/') || names.size === 0) return null
      const ranges = []
      each(parseSync(id, code).program, (node) => {
        if (!isMethod(node) || !names.has(nameOf(node))) return
        const comma = node.type === 'Property' ? (/^\s*,/.exec(code.slice(node.end))?.[0].length ?? 0) : 0
        // Not one within another one.
        if (ranges.every(([, end]) => end <= node.start)) ranges.push([node.start, node.end + comma])
      })
      if (ranges.length === 0) return null
      return {
        code: ranges.reduceRight((text, [start, end]) => text.slice(0, start) + text.slice(end), code),
        map: null,
      }
    },
  }
}

const nameOf = ({ key }) => key.name ?? key.value

/** A method, accessor or function of an object or class under a plain name. */
function isMethod({ type, computed, kind, key, value, shorthand }) {
  if (computed || !/^(?:Identifier|Literal)$/.test(key?.type) || kind === 'constructor') return false
  if (type === 'MethodDefinition' || type === 'PropertyDefinition') return true
  return type === 'Property' && !shorthand && /^(?:Arrow)?FunctionExpression$/.test(value.type)
}

/** Calls `onNode` for each node, outer ones first. */
export function each(node, onNode) {
  if (Array.isArray(node)) for (const one of node) each(one, onNode)
  else if (typeof node === 'object' && node !== null) {
    if (typeof node.type === 'string') onNode(node)
    for (const one of Object.values(node)) each(one, onNode)
  }
}
