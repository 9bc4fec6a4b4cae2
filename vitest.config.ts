import { availableParallelism, totalmem } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Pure logic on an in-memory database, without files that start a server or wait for real bcrypt. */
const UNIT = [
  'test/app/!(accounts)/**/*.test.ts',
  'test/app/accounts/{access,sessions,tokens,users}/*.test.ts',
  'test/app/accounts/local/*.test.ts',
  'test/app/accounts/passwords/!(passwords).test.ts',
  'test/app/accounts/oidc/parts.test.ts',
  'test/{meshtastic,shared}/**/*.test.ts',
  'test/project/!(one-place).test.ts',
  'test/web/logic/*.test.ts',
  'test/node/backup/{cell-values,schedule}.test.ts',
  'test/node/turns.test.ts',
  'test/edge/reading.test.ts',
]

/** Tests with a peer, such as a provider, a radio or a broker, on the sources: they need no build. */
const PEERS = [
  'test/app/accounts/oidc/!(parts).test.ts',
  'test/contract/*.test.ts',
  'test/node/oidc/*.test.ts',
  'test/node/radio/{link,send}.test.ts',
  'test/node/radio/device-config/*.test.ts',
]

/** These take minutes, but look short: their tests are elsewhere, or are made for many pages. */
const LONG =
  /\/test\/(?:(?:edge|node)\/(?:scenarios|accounts|oidc)|web\/pseudo-languages|node\/moving-in\/import)\.test\.ts$/

const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId)

/** The longest files first: begun last, they would keep one core busy while the other one waits. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is Vitest's, and returns a new one
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

const cores = availableParallelism()

/** Settings that peers and system share. They run in parallel, for which Vitest needs the same number of workers. */
const SIDE_BY_SIDE = {
  // A file may use its own browser and services, up to 1.5 GB, and waits for them half of the time.
  maxWorkers: Math.max(1, Math.min(4, cores + 1, Math.floor(totalmem() / 1.5e9))),
  // For a machine that is busy with other things: at a load of 8 on two cores the longest test took 103 s, and a hook
  // that builds the worker, 47 s of processor time, took 168.
  testTimeout: 240_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 60_000 } },
  sequence: { groupOrder: 1 },
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: UNIT,
          // The files of a worker share their modules: reloading them for each file would take longer than the tests.
          isolate: false,
          maxWorkers: cores,
          // A test fails by its own work, not by the clock of a busy machine. What waits for ever ends after two minutes.
          setupFiles: 'test/support/processor-time.ts',
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 60_000 } },
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'peers',
          include: PEERS,
          isolate: false,
          ...SIDE_BY_SIDE,
        },
      },
      {
        test: {
          name: 'system',
          globalSetup: 'test/support/built/builds.ts',
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...UNIT, ...PEERS],
          ...SIDE_BY_SIDE,
        },
      },
    ],
  },
})
