import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // A file may have a browser, a build and a service of its own: memory ends before the cores of a big machine do.
    maxWorkers: Math.max(1, Math.min(4, availableParallelism() - 1)),
    // For a machine that is busy with other things: what does not happen fails, late.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
