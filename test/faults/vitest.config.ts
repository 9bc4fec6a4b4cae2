import { defineConfig } from 'vitest/config'

// Attacks that take minutes, limited in count and time, against loopback only: `npm run test:faults`, apart from `npm
// test`.
export default defineConfig({
  test: {
    include: ['test/faults/*.faults.ts'],
    globalSetup: 'test/support/built/builds.ts',
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 120_000,
  },
})
