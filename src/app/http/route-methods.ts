import type { RouterRoute } from 'hono/types'
import { descriptionOf } from './describe.ts'

/**
 * The methods of a path, for 405 and its Allow header. Built from the app's own route table, with HEAD for every GET
 * that changes nothing.
 */
export function allowedMethods(routes: readonly RouterRoute[]): (path: string) => string[] {
  const patterns = new Map<string, Set<string>>()
  const getOnly = new Set(routes.filter(({ handler }) => descriptionOf(handler)?.getOnly).map(({ path }) => path))
  for (const { method, path } of routes) {
    if (method === 'ALL') continue
    const methods = patterns.get(path) ?? new Set()
    methods.add(method)
    if (method === 'GET' && !getOnly.has(path)) methods.add('HEAD')
    patterns.set(path, methods)
  }
  const matchers = [...patterns].map(([path, methods]) => ({ regexp: patternOf(path), methods }))
  return (path) =>
    [...new Set(matchers.filter(({ regexp }) => regexp.test(path)).flatMap(({ methods }) => [...methods]))].toSorted()
}

function patternOf(path: string): RegExp {
  const source = path
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('/')
  return new RegExp(`^${source}$`)
}
