import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/**
 * The modules of the worker in this folder, compressed, in bytes: those that run when an isolate starts, and all of them.
 */
export function workerSize(folder: string): { readonly start: number; readonly total: number } {
  const started = new Set(['worker.js'])
  for (const name of started) {
    const code = readFileSync(join(folder, name), 'utf8')
    for (const [, next = ''] of code.matchAll(/\b(?:from|import) ?"([^"]+\.js)"/g)) started.add(join(name, '..', next))
  }
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
  return { start: sizeOf(folder, [...started]), total: sizeOf(folder, all) }
}

const sizeOf = (folder: string, names: readonly string[]) =>
  names.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).byteLength, 0)
