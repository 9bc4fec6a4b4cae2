import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the shared builds of a run. */
    builds: string
  }
}

let dir: string | undefined

/** Gives a run of the tests a folder for its builds, and all its programs one for what Node has compiled. */
export function setup(project: TestProject): void {
  dir = mkdtempSync(join(tmpdir(), 'mesh-builds-'))
  process.env['NODE_COMPILE_CACHE'] ??= join(dir, 'compiled')
  project.provide('builds', dir)
}

export function teardown(): void {
  if (dir !== undefined) rmSync(dir, { recursive: true })
}
