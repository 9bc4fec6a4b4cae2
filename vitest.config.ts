import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

/** Logic alone, on a database in memory: what has a server of its own or waits for real bcrypt is left out. */
const UNIT = [
  'test/app/!(auth)/**/*.test.ts',
  'test/app/auth/{sessions,tokens}/*.test.ts',
  'test/app/auth/local/!(passwords).test.ts',
  'test/app/auth/oidc/parts.test.ts',
  'test/{meshtastic,shared}/**/*.test.ts',
  'test/project/!(one-place).test.ts',
  'test/web/logic/*.test.ts',
  'test/node/backup/{cell-values,schedule}.test.ts',
]

const cores = availableParallelism()

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: UNIT,
          // The files of a worker share their modules: loading those anew for each takes longer than the tests.
          isolate: false,
          maxWorkers: cores,
          testTimeout: 10_000,
          hookTimeout: 10_000,
          expect: { poll: { timeout: 5000 } },
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...UNIT],
          // A file may have a browser, a build and a service of its own: memory ends before the cores of a big machine do.
          maxWorkers: Math.max(1, Math.min(4, cores - 1)),
          // For a machine that is busy with other things: what does not happen fails, late.
          testTimeout: 240_000,
          hookTimeout: 240_000,
          expect: { poll: { timeout: 60_000 } },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
